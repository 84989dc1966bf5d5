//! Fields that say where a node's first state comes from: once it has come, an edit of them does
//! nothing and is said to.

use keelson_api::node_condition::{NodeCondition, NodeReason};
use serde_json::{Value, json};

use crate::covered::Covered;
use crate::mark::{Change, Mark, opened, said};
use crate::stage::Scene;

pub(crate) const COVERED: Covered = &[
    (
        where_a_first_state_comes_from_changes_nothing_once_it_has_come_and_is_said_not_to,
        &[
            "fullNode.snapshot.s3.targetHeight",
            "fullNode.snapshot.stateSync",
            "fullNode.snapshot.trustPeriod",
            "fullNode.snapshot.backfillBlocks",
            "fullNode.snapshot.bootstrapImage",
            "fullNode.snapshot.rpcServers",
            "replayer.snapshot.s3.targetHeight",
            "replayer.snapshot.stateSync",
            "replayer.snapshot.trustPeriod",
            "replayer.snapshot.backfillBlocks",
            "replayer.snapshot.bootstrapImage",
            "replayer.snapshot.rpcServers",
            "validator.snapshot.s3.targetHeight",
            "validator.snapshot.stateSync",
            "validator.snapshot.trustPeriod",
            "validator.snapshot.backfillBlocks",
            "validator.snapshot.bootstrapImage",
            "validator.snapshot.rpcServers",
        ],
    ),
    (
        a_snapshot_that_is_named_after_the_state_has_come_changes_nothing_and_is_said_not_to,
        &["fullNode.snapshot.stateSync"],
    ),
    (
        a_part_in_a_ceremony_that_is_over_changes_nothing_and_is_said_not_to,
        &[
            "validator.genesisCeremony.chainId",
            "validator.genesisCeremony.stakingAmount",
            "validator.genesisCeremony.accountBalance",
            "validator.genesisCeremony.index",
            "validator.genesisCeremony.genesisParams",
        ],
    ),
];

/// Edits a node that runs, and takes the edit back: neither does anything, and SpecValid says why as
/// long as the edit is there.
async fn does_nothing(scene: &Scene, node: &str, [edit, back]: [Value; 2], reason: NodeReason) {
    let mark = Mark::of(scene, node).await;
    for (spec, reason) in [(edit, reason), (back, NodeReason::Valid)] {
        let change = mark.edit(scene, spec.clone()).await;
        assert_eq!(change, Change::hot(&[]), "{node}: {spec}");
        let settled = scene.settled(node).await;
        let valid = said(&settled, NodeCondition::SpecValid);
        let is = (valid.status.as_str(), valid.reason.as_str());
        assert_eq!(is, ("True", reason.as_str()), "{node}: {spec}");
    }
}

/// Every field of a snapshot that was taken from S3 at height 7, each edited alone, and taken back.
fn snapshot_edits() -> Vec<[Value; 2]> {
    let servers = ["a.example:26657", "b.example:26657"];
    vec![
        [
            json!({ "s3": { "targetHeight": 8 } }),
            json!({ "s3": { "targetHeight": 7 } }),
        ],
        [
            json!({ "s3": null, "stateSync": {} }),
            json!({ "s3": { "targetHeight": 7 }, "stateSync": null }),
        ],
        [
            json!({ "trustPeriod": "24h" }),
            json!({ "trustPeriod": null }),
        ],
        [
            json!({ "backfillBlocks": 10 }),
            json!({ "backfillBlocks": null }),
        ],
        [
            json!({ "bootstrapImage": "registry.example/seid:v5.9.0" }),
            json!({ "bootstrapImage": null }),
        ],
        [
            json!({ "rpcServers": servers }),
            json!({ "rpcServers": null }),
        ],
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn where_a_first_state_comes_from_changes_nothing_once_it_has_come_and_is_said_not_to() {
    let (scene, _operator) = opened("source").await;
    let block = json!({ "snapshot": { "s3": { "targetHeight": 7 } } });
    scene
        .node("full", "fullNode", block.clone(), json!({}))
        .await;
    scene.replayer("replays", 7).await;
    scene.node("validates", "validator", block, json!({})).await;
    let edits = async |node: &str, mode: &str| {
        scene.settled(node).await;
        for edit in snapshot_edits() {
            let edit = edit.map(|it| json!({ mode: { "snapshot": it } }));
            does_nothing(&scene, node, edit, NodeReason::UsedAtSetUp).await;
        }
    };
    tokio::join!(
        edits("full", "fullNode"),
        edits("replays", "replayer"),
        edits("validates", "validator"),
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_that_is_named_after_the_state_has_come_changes_nothing_and_is_said_not_to() {
    let (scene, _operator) = opened("source-late").await;
    scene.full_node("node", json!({})).await;
    scene.settled("node").await;
    let edit = [json!({ "stateSync": {} }), json!(null)];
    let edit = edit.map(|it| json!({ "fullNode": { "snapshot": it } }));
    does_nothing(&scene, "node", edit, NodeReason::UsedAtSetUp).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_in_a_ceremony_that_is_over_changes_nothing_and_is_said_not_to() {
    let (scene, _operator) = opened("ceremony-over").await;
    let part = json!({
        "chainId": "bay-1", "stakingAmount": "10000000usei", "accountBalance": "100usei", "index": 0,
    });
    let block = json!({ "genesisCeremony": part });
    scene.node("node", "validator", block, json!({})).await;
    scene.settled("node").await;
    let [used, unread] = [NodeReason::UsedAtSetUp, NodeReason::DeprecatedField];
    for (field, other, reason) in [
        ("chainId", json!("bay-2"), used),
        ("stakingAmount", json!("20000000usei"), used),
        ("accountBalance", json!("200usei"), used),
        ("index", json!(1), used),
        ("genesisParams", json!("{}"), unread),
    ] {
        let edit = [other, part[field].clone()];
        let edit = edit.map(|it| json!({ "validator": { "genesisCeremony": { field: it } } }));
        does_nothing(&scene, "node", edit, reason).await;
    }
}
