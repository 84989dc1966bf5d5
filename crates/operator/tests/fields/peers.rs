//! Peers found by label: nobody is waited for, and whoever comes is written down without a restart.

use k8s_openapi::api::core::v1::Pod;
use keelson_api::SeiNode;
use keelson_api::node_condition::{NodeCondition, NodeReason};
use keelson_wire::TaskType::DiscoverPeers;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::covered::Covered;
use crate::mark::{Change, Mark, look_again, opened};
use crate::stage::ledger::Seen;
use crate::stage::{Fault, Scene};

pub(crate) const COVERED: Covered = &[
    (
        the_first_node_starts_alone_and_those_that_come_find_each_other_without_a_restart,
        &["peers[].label.selector"],
    ),
    (
        a_label_is_looked_for_in_the_namespace_that_is_named,
        &["peers[].label.namespace"],
    ),
];

fn by_label(namespace: Option<&str>) -> Value {
    json!({ "peers": [{ "label": { "selector": { "chain": "pacific" }, "namespace": namespace } }] })
}

async fn label(scene: &Scene, node: &str, value: Option<&str>) {
    let patch = Patch::Merge(json!({ "metadata": { "labels": { "chain": value } } }));
    let nodes = scene.api::<SeiNode>();
    let labelled = nodes.patch(node, &PatchParams::default(), &patch).await;
    labelled.expect("a label");
}

/// Waits until a node's peers are these nodes, in its status and at its sidecar.
async fn found(scene: &Scene, node: &str, names: &[&str]) {
    let namespace = scene.namespace();
    let hosts = names
        .iter()
        .map(|name| format!("{name}-0.{name}.{namespace}.svc.cluster.local"));
    let hosts: Vec<String> = hosts.collect();
    scene
        .until_status("finding its peers", node, |_, status| {
            status.resolved_peers == hosts && status.plan.is_none()
        })
        .await;
    if let Some(host) = hosts.first() {
        scene
            .until_seen("being told its peers", node, |seen| {
                let last = seen
                    .submitted
                    .iter()
                    .rev()
                    .find(|it| it.type_ == DiscoverPeers);
                last.is_some_and(|it| {
                    serde_json::to_string(&it.params).is_ok_and(|it| it.contains(host))
                })
            })
            .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_node_starts_alone_and_those_that_come_find_each_other_without_a_restart() {
    let (scene, _operator) = opened("label-peers").await;
    scene.full_node("a", by_label(None)).await;
    label(&scene, "a", Some("pacific")).await;
    scene.settled("a").await;
    found(&scene, "a", &[]).await;
    let mark = Mark::of(&scene, "a").await;
    scene.full_node("b", by_label(None)).await;
    label(&scene, "b", Some("pacific")).await;
    found(&scene, "a", &["b"]).await;
    found(&scene, "b", &["a"]).await;
    let reason = NodeReason::EffectiveAtNextStart;
    scene
        .until_condition("a", NodeCondition::PeersApplied, false, reason)
        .await;
    // One that loses its label is found no more.
    label(&scene, "b", None).await;
    found(&scene, "a", &[]).await;
    label(&scene, "b", Some("pacific")).await;
    found(&scene, "a", &["b"]).await;
    // So is one that is deleted.
    scene.delete::<SeiNode>("b").await;
    found(&scene, "a", &[]).await;
    let change = mark.since(&scene).await;
    assert!(change.same_pod, "{change:?}");
    assert_eq!(
        (change.process_starts, change.restarts.len()),
        (0, 0),
        "{change:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_is_looked_for_in_the_namespace_that_is_named() {
    let (scene, _operator) = opened("peers-elsewhere").await;
    scene.full_node("other", json!({})).await;
    label(&scene, "other", Some("pacific")).await;
    scene.full_node("node", by_label(Some("elsewhere"))).await;
    scene.settled("node").await;
    found(&scene, "node", &[]).await;
    let own = scene.namespace().to_owned();
    scene.edit("node", by_label(Some(&own))).await;
    found(&scene, "node", &["other"]).await;
}

/// What of a node's peers is written down, as its status has it.
async fn written(scene: &Scene, node: &str) -> Option<String> {
    let node = scene.api::<SeiNode>().get(node).await.expect("the node");
    let status = node.status.expect("a status");
    status.applied.and_then(|applied| applied.peers)
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_that_were_found_stay_while_they_are_down_and_while_nobody_new_answers() {
    let (scene, _operator) = opened("peers-down").await;
    for name in ["a", "b"] {
        scene.full_node(name, by_label(None)).await;
        label(&scene, name, Some("pacific")).await;
    }
    found(&scene, "a", &["b"]).await;
    found(&scene, "b", &["a"]).await;
    let mark = Mark::of(&scene, "a").await;
    let good = written(&scene, "a").await;
    assert!(good.is_some());

    // A peer whose pod went, and whose next one does not answer, is a peer all the same.
    scene.fault("b", Some(Fault::Refuse));
    scene.delete::<Pod>("b-0").await;
    let gone = |seen: &Seen| seen.deleted.len() == 1;
    scene.until_seen("the end of its pod", "b", gone).await;
    look_again(&scene, "a").await;
    found(&scene, "a", &["b"]).await;
    assert_eq!(mark.since(&scene).await, Change::hot(&[]));

    // One comes, and nobody says who they are: what was good stays written.
    scene.script("a", |script| {
        script.fails(
            DiscoverPeers,
            1000,
            "dnsEndpoints: none of 2 hosts answers with its node id",
        );
    });
    scene.full_node("c", by_label(None)).await;
    label(&scene, "c", Some("pacific")).await;
    scene
        .until_status("an attempt that failed", "a", |_, status| {
            let tasks = status.plan.iter().flat_map(|plan| &plan.tasks);
            let mut errors = tasks.filter_map(|task| task.error.as_ref());
            errors.any(|error| error.contains("none of 2 hosts answers"))
        })
        .await;
    assert_eq!(written(&scene, "a").await, good);
    scene.script("a", |script| script.fails(DiscoverPeers, 0, ""));
    found(&scene, "a", &["b", "c"]).await;
    assert_ne!(written(&scene, "a").await, good);
    let change = mark.since(&scene).await;
    assert!(change.same_pod, "{change:?}");
    assert_eq!((change.process_starts, change.restarts.len()), (0, 0));
}
