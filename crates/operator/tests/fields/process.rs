//! Fields that are the process's configuration: written by the sidecar, and the process is started
//! again once, in its pod; or not, where that can wait.

use keelson_api::node_condition::{NodeCondition, NodeReason};
use keelson_wire::TaskType::{
    ConfigPatch, ConfigValidate, DiscoverPeers, MarkReady, RestartSeid, SnapshotUpload,
};
use serde_json::{Value, json};

use crate::covered::Covered;
use crate::mark::{Change, Mark, look_again, opened, running, said};
use crate::stage::Scene;

pub(crate) const COVERED: Covered = &[
    (
        overrides_are_added_changed_and_removed_with_one_restart_of_the_process_each,
        &["overrides"],
    ),
    (
        another_external_address_restarts_the_process_once,
        &["externalAddress"],
    ),
    (
        peers_are_written_at_once_and_take_effect_at_the_next_start,
        &["peers[].static.addresses"],
    ),
    (
        peers_of_a_cloud_are_looked_for_by_the_sidecar_and_restart_nothing,
        &["peers[].ec2Tags.region", "peers[].ec2Tags.tags"],
    ),
    (
        snapshots_a_full_node_makes_are_configuration_and_publishing_them_is_hot,
        &[
            "fullNode.snapshotGeneration.tendermint.keepRecent",
            "fullNode.snapshotGeneration.tendermint.publish",
        ],
    ),
    (
        snapshots_an_archive_makes_are_configuration_and_publishing_them_is_hot,
        &[
            "archive.snapshotGeneration.tendermint.keepRecent",
            "archive.snapshotGeneration.tendermint.publish",
        ],
    ),
];

/// What the last task of a type was given, as text.
fn given(scene: &Scene, type_: keelson_wire::TaskType) -> String {
    let seen = scene.seen("node");
    let mut all = seen.submitted.iter().rev();
    let last = all.find(|it| it.type_ == type_).expect("such a task");
    serde_json::to_string(&last.params).expect("JSON")
}

#[tokio::test(flavor = "multi_thread")]
async fn overrides_are_added_changed_and_removed_with_one_restart_of_the_process_each() {
    let (scene, _operator) = running("overrides", json!({})).await;
    let key = "network.p2p.max_connections";
    let mut files = Vec::new();
    for value in [json!("4321"), json!("4322"), json!(null)] {
        let mark = Mark::of(&scene, "node").await;
        let change = mark
            .edit(&scene, json!({ "overrides": { key: value } }))
            .await;
        let tasks = [ConfigPatch, ConfigValidate, RestartSeid, MarkReady];
        assert_eq!(change, Change::restarted(&tasks));
        files.push(given(&scene, ConfigPatch));
    }
    assert!(files[0].contains("4321"), "{}", files[0]);
    assert!(files[1].contains("4322"), "{}", files[1]);
    assert!(!files[2].contains("432"), "{}", files[2]);
    assert!(files[2].contains("max-connections"), "{}", files[2]);
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_external_address_restarts_the_process_once() {
    let (scene, _operator) = running("address", json!({})).await;
    for (address, expected) in [
        (json!("node.example.com:26656"), "node.example.com:26656"),
        (json!(null), "\"\""),
    ] {
        let mark = Mark::of(&scene, "node").await;
        let change = mark
            .edit(&scene, json!({ "externalAddress": address }))
            .await;
        let tasks = [ConfigPatch, ConfigValidate, RestartSeid, MarkReady];
        assert_eq!(change, Change::restarted(&tasks));
        assert!(given(&scene, ConfigPatch).contains(expected));
    }
}

fn peer(number: u8) -> Value {
    let address = format!("{}@203.0.113.{number}:26656", "a".repeat(40));
    json!([{ "static": { "addresses": [address] } }])
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_are_written_at_once_and_take_effect_at_the_next_start() {
    let (scene, _operator) = running("peers", json!({ "peers": peer(1) })).await;
    let node = scene.settled("node").await;
    assert_eq!(said(&node, NodeCondition::PeersApplied).status, "True");
    let mark = Mark::of(&scene, "node").await;
    let change = mark.edit(&scene, json!({ "peers": peer(2) })).await;
    assert_eq!(
        change,
        Change::hot(&[DiscoverPeers, ConfigValidate, MarkReady])
    );
    assert!(given(&scene, DiscoverPeers).contains("203.0.113.2"));
    let node = scene.settled("node").await;
    let applied = said(&node, NodeCondition::PeersApplied);
    let reason = NodeReason::EffectiveAtNextStart.as_str();
    assert_eq!(
        (applied.status.as_str(), applied.reason.as_str()),
        ("False", reason)
    );

    // The next start, for whatever reason, is with them.
    scene
        .edit(
            "node",
            json!({ "overrides": { "network.p2p.max_connections": "200" } }),
        )
        .await;
    scene.settled("node").await;
    let reason = NodeReason::PeersCurrent;
    scene
        .until_condition("node", NodeCondition::PeersApplied, true, reason)
        .await;

    // Taken away, an empty list is written.
    let mark = Mark::of(&scene, "node").await;
    let change = mark.edit(&scene, json!({ "peers": null })).await;
    assert_eq!(
        change,
        Change::hot(&[ConfigPatch, ConfigValidate, MarkReady])
    );
    assert!(given(&scene, ConfigPatch).contains("\"persistent-peers\":\"\""));
}

#[tokio::test(flavor = "multi_thread")]
async fn peers_of_a_cloud_are_looked_for_by_the_sidecar_and_restart_nothing() {
    let (scene, _operator) = running("cloud-peers", json!({})).await;
    for (region, tag) in [("us-east-2", "a"), ("eu-west-1", "a"), ("eu-west-1", "b")] {
        let mark = Mark::of(&scene, "node").await;
        let peers = json!([{ "ec2Tags": { "region": region, "tags": { "chain": tag } } }]);
        let change = mark.edit(&scene, json!({ "peers": peers })).await;
        assert_eq!(
            change,
            Change::hot(&[DiscoverPeers, ConfigValidate, MarkReady])
        );
        let given = given(&scene, DiscoverPeers);
        assert!(given.contains(region) && given.contains(tag), "{given}");
    }
}

/// How many uploads the sidecar is at.
fn uploads(scene: &Scene) -> usize {
    let tasks = scene.tasks("node");
    let uploads = tasks.iter().filter(|it| it.type_ == "snapshot-upload");
    uploads.count()
}

async fn publishes(scene: &Scene, mode: &str) {
    let made = |it: Value| json!({ mode: { "snapshotGeneration": { "tendermint": it } } });
    let mark = Mark::of(scene, "node").await;
    let change = mark.edit(scene, made(json!({ "keepRecent": 3 }))).await;
    let tasks = [ConfigPatch, ConfigValidate, RestartSeid, MarkReady];
    assert_eq!(change, Change::restarted(&tasks));
    for (publish, tasks, going) in [
        (json!({}), &[SnapshotUpload][..], 1),
        (json!(null), &[], 0),
        (json!({}), &[SnapshotUpload], 1),
    ] {
        let mark = Mark::of(scene, "node").await;
        let change = mark.edit(scene, made(json!({ "publish": publish }))).await;
        assert_eq!((change, uploads(scene)), (Change::hot(tasks), going));
    }
    // Another edit leaves the upload alone.
    let mark = Mark::of(scene, "node").await;
    let change = mark
        .edit(scene, json!({ "image": "registry.example/seid:v6.1.0" }))
        .await;
    assert_eq!((change, uploads(scene)), (Change::rolled(&[MarkReady]), 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_a_full_node_makes_are_configuration_and_publishing_them_is_hot() {
    let (scene, _operator) = running("publish", json!({})).await;
    publishes(&scene, "fullNode").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_an_archive_makes_are_configuration_and_publishing_them_is_hot() {
    let (scene, _operator) = opened("publish-archive").await;
    scene.archive("node", json!({})).await;
    scene.settled("node").await;
    publishes(&scene, "archive").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_is_born_publishing_uploads_once() {
    let (scene, _operator) = opened("publish-born").await;
    let block =
        json!({ "snapshotGeneration": { "tendermint": { "keepRecent": 2, "publish": {} } } });
    scene.node("node", "fullNode", block, json!({})).await;
    scene.settled("node").await;
    look_again(&scene, "node").await;
    assert_eq!(uploads(&scene), 1);
    assert_eq!(scene.seen("node").begun(SnapshotUpload), 1);
}
