//! Plans that fail: what is remembered, how another attempt comes about, and specs that are refused.

use k8s_openapi::api::events::v1::Event;
use keelson_api::SeiNode;
use keelson_api::node_condition::{NodeCondition, NodeReason};
use keelson_api::node_status::NodePhase;
use keelson_wire::TaskType::{ConfigureGenesis, MarkReady};
use kube::api::ListParams;
use serde_json::{Value, json};

use crate::mark::{Change, Mark, annotate, look_again, opened, running, said};
use crate::stage::waiting::Kstatus;
use crate::stage::{Scene, objects};

/// Makes a node whose set-up fails, and waits until it has.
async fn failed(scene: &Scene, name: &str) -> SeiNode {
    scene.script(name, |script| {
        script.fails(ConfigureGenesis, 1000, "there is no genesis file");
    });
    scene.full_node(name, json!({})).await;
    scene.until_phase(name, NodePhase::Failed).await
}

fn heal(scene: &Scene, name: &str) {
    scene.script(name, |script| {
        script.fails(ConfigureGenesis, 0, "");
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_set_up_is_remembered_backed_off_and_tried_again_when_asked() {
    let (scene, _operator) = opened("failed").await;
    let [by_annotation, by_edit] = ["by-annotation", "by-edit"];
    let (node, _) = tokio::join!(failed(&scene, by_annotation), failed(&scene, by_edit));
    let status = node.status.clone().expect("a status");
    let remembered = status.last_failed_plan.expect("the failed plan");
    let task = remembered.task.expect("its task");
    assert_eq!(task.type_, ConfigureGenesis);
    let error = task.error.expect("its error");
    assert!(error.contains("there is no genesis file"), "{error}");
    assert_eq!(status.consecutive_failures, Some(1));
    assert_eq!(status.plan, None);
    let stalled = said(&node, NodeCondition::Stalled);
    assert_eq!(stalled.status, "True");
    assert_eq!(stalled.reason, NodeReason::PlanFailed.as_str());
    assert_eq!(Kstatus::of(&node), Kstatus::Failed);
    assert!(
        stalled.message.contains("there is no genesis file"),
        "{}",
        stalled.message
    );

    // Nothing is begun during the pause, however often it is looked at.
    let begun = scene.seen(by_annotation).submitted.len();
    look_again(&scene, by_annotation).await;
    assert_eq!(scene.seen(by_annotation).submitted.len(), begun);

    heal(&scene, by_annotation);
    annotate(&scene, by_annotation, "sei.io/retry", "1").await;
    heal(&scene, by_edit);
    scene
        .edit(by_edit, json!({ "podLabels": { "team": "a" } }))
        .await;
    for name in [by_annotation, by_edit] {
        let node = scene.until_phase(name, NodePhase::Running).await;
        let node = match said(&node, NodeCondition::Stalled).status.as_str() {
            "False" => node,
            _ => scene.settled(name).await,
        };
        let status = node.status.expect("a status");
        assert_eq!(
            (status.last_failed_plan, status.consecutive_failures),
            (None, None)
        );
    }
    let events = scene.api::<Event>().list(&ListParams::default()).await;
    let events = events.expect("events").items.into_iter();
    let told: Vec<_> = events
        .filter(|it| it.reason.as_deref() == Some("PlanFailed"))
        .collect();
    assert!(!told.is_empty());
    assert!(told.iter().all(|it| it.type_.as_deref() == Some("Warning")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spec_that_cannot_be_carried_out_is_refused_and_what_runs_goes_on() {
    let (scene, _operator) = running("invalid", json!({})).await;
    let mark = Mark::of(&scene, "node").await;
    let tendermint = |it: Value| json!({ "fullNode": { "snapshotGeneration": it } });
    let made = json!({ "tendermint": { "keepRecent": 1, "publish": {} } });
    for (bad, good, named) in [
        (
            json!({ "overrides": { "network.p2p.max_conections": "1" } }),
            json!({ "overrides": null }),
            "network.p2p.max_conections",
        ),
        (tendermint(made), tendermint(json!(null)), "keepRecent"),
    ] {
        // With an edit that would roll, to see that all of it waits.
        let mut edit = bad.clone();
        edit["image"] = json!("registry.example/seid:v6.1.0");
        scene.edit("node", edit).await;
        let (type_, reason) = (NodeCondition::SpecValid, NodeReason::Invalid);
        let node = scene.until_condition("node", type_, false, reason).await;
        let message = said(&node, type_).message;
        assert!(message.contains(named), "{message}");
        assert_eq!(said(&node, NodeCondition::Stalled).status, "True");
        look_again(&scene, "node").await;
        assert_eq!(mark.since(&scene).await, Change::hot(&[]));
        let mut edit = good;
        edit["image"] = json!("registry.example/seid:v6.0.0");
        scene.edit("node", edit).await;
        scene
            .until_condition("node", type_, true, NodeReason::Valid)
            .await;
        scene.settled("node").await;
    }
    assert_eq!(mark.since(&scene).await, Change::hot(&[]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ceremony_and_keys_exclude_each_other() {
    let (scene, _operator) = opened("ceremony").await;
    let key = |name: &str| json!({ "secret": { "secretName": name } });
    let block = json!({
        "genesisCeremony": {}, "signingKey": key("signing"), "nodeKey": key("node"),
    });
    scene.node("node", "validator", block, json!({})).await;
    let (type_, reason) = (NodeCondition::SpecValid, NodeReason::Invalid);
    let node = scene.until_condition("node", type_, false, reason).await;
    assert!(said(&node, type_).message.contains("genesisCeremony"));
    assert_eq!(scene.seen("node").created.len(), 0);
    scene
        .edit("node", json!({ "validator": { "genesisCeremony": null } }))
        .await;
    scene
        .until_condition("node", type_, true, NodeReason::Valid)
        .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_second_node_of_a_signing_key_waits_until_the_first_and_its_pod_are_gone() {
    let (scene, _operator) = opened("one-key").await;
    scene.validator("first", json!({})).await;
    scene.settled("first").await;
    let key = r#"{"priv_key":{"type":"tendermint/PrivKeyEd25519","value":"AA=="}}"#;
    scene
        .secret(&objects::secret("second-node", &[("node_key.json", key)]))
        .await;
    let key = |name: &str| json!({ "secret": { "secretName": name } });
    let block = json!({ "signingKey": key("first-signing"), "nodeKey": key("second-node") });
    scene.node("second", "validator", block, json!({})).await;
    let (type_, reason) = (NodeCondition::SpecValid, NodeReason::SigningKeyInUse);
    let node = scene.until_condition("second", type_, false, reason).await;
    assert!(said(&node, type_).message.contains("SeiNode first"));
    // The first is gone and its pod is not.
    scene.pause("first");
    scene.delete::<SeiNode>("first").await;
    scene
        .until_object("its end", "first", |it: Option<&SeiNode>| it.is_none())
        .await;
    look_again_refused(&scene).await;
    assert_eq!(scene.seen("second").created.len(), 0);
    scene.resume("first");
    scene
        .until_condition("second", type_, true, NodeReason::Valid)
        .await;
    scene.until_phase("second", NodePhase::Running).await;
    assert_eq!(scene.seen("second").process_starts, 1);
    assert_eq!(scene.violations(), Vec::<String>::new());
    let tasks = scene.seen("second").types();
    assert_eq!(tasks.last(), Some(&MarkReady));
}

/// A refused node without a pod makes no request to a sidecar; its generation says it was looked at.
async fn look_again_refused(scene: &Scene) {
    let edited = scene
        .edit("second", json!({ "podLabels": { "look": "again" } }))
        .await;
    let generation = edited.metadata.generation;
    let node = scene
        .until_status("another look", "second", |_, status| {
            status.observed_generation == generation
        })
        .await;
    let valid = said(&node, NodeCondition::SpecValid);
    assert_eq!(valid.reason, NodeReason::SigningKeyInUse.as_str());
}
