//! Fields that no pod and no process ever sees.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use keelson_api::node_condition::{NodeCondition, NodeReason};
use keelson_wire::TaskType::MarkReady;
use serde_json::json;

use crate::covered::Covered;
use crate::mark::{Change, Mark, look_again, opened, running, said};
use crate::stage::objects;

pub(crate) const COVERED: Covered = &[
    (
        the_claim_belongs_to_the_node_only_while_it_shall_go_with_it,
        &["dataVolume.retainOnDelete"],
    ),
    (
        a_paused_node_is_left_as_it_is_until_it_is_resumed,
        &["paused"],
    ),
    (
        an_entrypoint_is_said_to_be_run_by_nobody,
        &["entrypoint.command", "entrypoint.args"],
    ),
    (
        results_of_a_replayer_are_said_to_be_compared_by_nobody,
        &["replayer.resultExport.shadowResult.canonicalRpc"],
    ),
    (
        another_key_of_the_keyring_is_nothing_a_pod_has,
        &["validator.operatorKeyring.secret.keyName"],
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn the_claim_belongs_to_the_node_only_while_it_shall_go_with_it() {
    let (scene, _operator) = running("retain", json!({})).await;
    let mark = Mark::of(&scene, "node").await;
    let claims = scene.api::<PersistentVolumeClaim>();
    for (retain, owners) in [
        (Some(false), 1),
        (Some(true), 0),
        (Some(false), 1),
        (None, 0),
    ] {
        scene
            .edit(
                "node",
                json!({ "dataVolume": { "retainOnDelete": retain } }),
            )
            .await;
        scene.settled("node").await;
        let claim = claims.get("data-node").await.expect("the claim");
        assert_eq!(
            claim.metadata.owner_references.unwrap_or_default().len(),
            owners
        );
    }
    assert_eq!(mark.since(&scene).await, Change::hot(&[]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_node_is_left_as_it_is_until_it_is_resumed() {
    let (scene, _operator) = running("paused", json!({})).await;
    let mark = Mark::of(&scene, "node").await;
    scene
        .edit(
            "node",
            json!({ "paused": true, "image": "registry.example/seid:v6.1.0" }),
        )
        .await;
    let reason = NodeReason::PausedBySpec;
    let node = scene
        .until_condition("node", NodeCondition::Paused, true, reason)
        .await;
    assert_eq!(said(&node, NodeCondition::Reconciling).status, "False");
    assert_eq!(node.status.expect("a status").plan, None);
    look_again(&scene, "node").await;
    assert_eq!(mark.since(&scene).await, Change::hot(&[]));
    let change = mark.edit(&scene, json!({ "paused": false })).await;
    assert_eq!(change, Change::rolled(&[MarkReady]));
    let node = scene.settled("node").await;
    assert_eq!(said(&node, NodeCondition::Paused).status, "False");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_in_the_middle_of_a_roll_holds_it_where_it_is() {
    let (scene, _operator) = running("paused-roll", json!({})).await;
    let mark = Mark::of(&scene, "node").await;
    scene.pause("node");
    scene
        .edit("node", json!({ "image": "registry.example/seid:v6.1.0" }))
        .await;
    scene
        .until_pod("its deletion", "node-0", |pod| {
            pod.metadata.deletion_timestamp.is_some()
        })
        .await;
    scene.edit("node", json!({ "paused": true })).await;
    let reason = NodeReason::PausedBySpec;
    scene
        .until_condition("node", NodeCondition::Paused, true, reason)
        .await;
    scene.resume("node");
    let up = |pod: &Pod| {
        pod.status
            .as_ref()
            .is_some_and(|it| it.phase.as_deref() == Some("Running"))
    };
    scene.until_pod("another one", "node-0", up).await;
    // It is there and asks to be approved, and nobody does.
    look_again(&scene, "node").await;
    look_again(&scene, "node").await;
    let change = mark.since(&scene).await;
    assert_eq!((change.process_starts, change.tasks), (0, Vec::new()));
    let change = mark.edit(&scene, json!({ "paused": false })).await;
    assert_eq!(change, Change::rolled(&[MarkReady]));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_entrypoint_is_said_to_be_run_by_nobody() {
    let (scene, _operator) = running("entrypoint", json!({})).await;
    let mark = Mark::of(&scene, "node").await;
    let change = mark
        .edit(
            &scene,
            json!({ "entrypoint": { "command": ["seid"], "args": ["start"] } }),
        )
        .await;
    assert_eq!(change, Change::hot(&[]));
    let node = scene.settled("node").await;
    let valid = said(&node, NodeCondition::SpecValid);
    assert_eq!(valid.reason, NodeReason::DeprecatedField.as_str());
    assert!(valid.message.contains("entrypoint"), "{}", valid.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn results_of_a_replayer_are_said_to_be_compared_by_nobody() {
    let (scene, _operator) = opened("result-export").await;
    scene.replayer("node", 7).await;
    scene.settled("node").await;
    let mark = Mark::of(&scene, "node").await;
    let export = json!({ "shadowResult": { "canonicalRpc": "rpc.example:26657" } });
    let change = mark
        .edit(&scene, json!({ "replayer": { "resultExport": export } }))
        .await;
    assert_eq!(change, Change::hot(&[]));
    let valid = said(&scene.settled("node").await, NodeCondition::SpecValid);
    assert_eq!(valid.reason, NodeReason::DeprecatedField.as_str());
    assert!(valid.message.contains("resultExport"), "{}", valid.message);
}

#[tokio::test(flavor = "multi_thread")]
async fn another_key_of_the_keyring_is_nothing_a_pod_has() {
    let (scene, _operator) = opened("key-name").await;
    let keyring = [
        ("node_admin.info", "AA=="),
        ("00ff.address", "AA=="),
        ("other.info", "AA=="),
    ];
    scene.secret(&objects::secret("keyring", &keyring)).await;
    let block = json!({ "operatorKeyring": { "secret": { "secretName": "keyring" } } });
    scene.node("node", "validator", block, json!({})).await;
    scene.settled("node").await;
    let mark = Mark::of(&scene, "node").await;
    let edit = json!({ "validator": { "operatorKeyring": { "secret": { "keyName": "other" } } } });
    assert_eq!(mark.edit(&scene, edit).await, Change::hot(&[]));
    let outdated = said(
        &scene.settled("node").await,
        NodeCondition::TemplateOutdated,
    );
    assert_eq!(outdated.status, "False");
}
