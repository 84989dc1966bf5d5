//! Peers found by label: nobody is waited for, and whoever comes is written down without a restart.

use keelson_api::SeiNode;
use keelson_api::node_condition::{NodeCondition, NodeReason};
use keelson_wire::TaskType::DiscoverPeers;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::covered::Covered;
use crate::mark::{Mark, opened};
use crate::stage::Scene;

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
