//! Nodes that get their data by themselves.

use keelson_api::task::PlanKind;
use keelson_wire::TaskType;
use serde_json::json;

use crate::diary::{Diary, configured, runs_by};
use crate::operator::Operator;
use crate::stage::{Stage, platform};

#[tokio::test(flavor = "multi_thread")]
async fn a_full_node_without_a_snapshot_is_configured_and_approved() {
    let scene = Stage::shared().await.scene("base").await;
    let _operator = Operator::start(&scene, platform()).await;
    let diary = Diary::of(&scene, "node");
    scene.full_node("node", json!({})).await;
    let plan = "ensure-data-pvc apply-rbac-proxy-config apply-network-policy apply-statefulset \
                apply-service observe-image configure-genesis config-apply config-validate \
                mark-ready";
    runs_by(
        &scene,
        &diary,
        "node",
        (PlanKind::Init, plan),
        &configured("full"),
    )
    .await;
    let seen = scene.seen("node");
    assert_eq!((seen.created.len(), seen.process_starts), (1, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_node_by_state_sync_is_told_what_to_trust() {
    let scene = Stage::shared().await.scene("sync").await;
    let _operator = Operator::start(&scene, platform()).await;
    let diary = Diary::of(&scene, "node");
    let snapshot = json!({ "stateSync": {}, "trustPeriod": "168h0m0s", "backfillBlocks": 7 });
    let address = format!("{}@203.0.113.1:26656", "a".repeat(40));
    let peers = json!([{ "static": { "addresses": [address] } }]);
    scene
        .node(
            "node",
            "fullNode",
            json!({ "snapshot": snapshot }),
            json!({ "peers": peers }),
        )
        .await;
    let plan = "ensure-data-pvc apply-rbac-proxy-config apply-network-policy apply-statefulset \
                apply-service observe-image configure-genesis config-apply discover-peers \
                configure-state-sync config-validate mark-ready";
    let mut asked = configured("full");
    let sources = json!([{ "type": "static", "addresses": [address] }]);
    asked.insert(2, ("discover-peers", json!({ "sources": sources })));
    let sync = json!({ "trustPeriod": "168h0m0s", "backfillBlocks": 7 });
    asked.insert(3, ("configure-state-sync", sync));
    runs_by(&scene, &diary, "node", (PlanKind::Init, plan), &asked).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_node_from_s3_restores_before_it_is_configured() {
    let scene = Stage::shared().await.scene("s3").await;
    let _operator = Operator::start(&scene, platform()).await;
    let diary = Diary::of(&scene, "node");
    let snapshot = json!({ "snapshot": { "s3": { "targetHeight": 1000 } } });
    scene.node("node", "fullNode", snapshot, json!({})).await;
    let plan = "ensure-data-pvc apply-rbac-proxy-config apply-network-policy apply-statefulset \
                apply-service observe-image snapshot-restore configure-genesis config-apply \
                configure-state-sync config-validate mark-ready";
    let mut asked = configured("full");
    asked.insert(0, ("snapshot-restore", json!({ "targetHeight": 1000 })));
    asked.insert(
        3,
        ("configure-state-sync", json!({ "useLocalSnapshot": true })),
    );
    runs_by(&scene, &diary, "node", (PlanKind::Init, plan), &asked).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_that_publishes_uploads_before_it_is_approved() {
    let scene = Stage::shared().await.scene("archive").await;
    let _operator = Operator::start(&scene, platform()).await;
    let diary = Diary::of(&scene, "node");
    let made = json!({ "tendermint": { "keepRecent": 3, "publish": {} } });
    scene
        .node(
            "node",
            "archive",
            json!({ "snapshotGeneration": made }),
            json!({}),
        )
        .await;
    let plan = "ensure-data-pvc apply-rbac-proxy-config apply-network-policy apply-statefulset \
                apply-service observe-image configure-genesis config-apply config-validate \
                snapshot-upload mark-ready";
    let mut asked = configured("archive");
    let overrides = json!({
        "storage.snapshot_interval": "2000", "storage.snapshot_keep_recent": "3",
    });
    asked[1].1["overrides"] = overrides;
    asked.insert(3, ("snapshot-upload", json!({})));
    runs_by(&scene, &diary, "node", (PlanKind::Init, plan), &asked).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replayer_restores_and_follows_its_peers() {
    let scene = Stage::shared().await.scene("replayer").await;
    let _operator = Operator::start(&scene, platform()).await;
    let diary = Diary::of(&scene, "node");
    scene.replayer("node", 500).await;
    let plan = "ensure-data-pvc apply-rbac-proxy-config apply-network-policy apply-statefulset \
                apply-service observe-image snapshot-restore configure-genesis config-apply \
                discover-peers configure-state-sync config-validate mark-ready";
    let address = format!("{}@203.0.113.1:26656", "0".repeat(40));
    let sources = json!([{ "type": "static", "addresses": [address] }]);
    let mut asked = configured("full");
    asked[1].1["overrides"] = json!({
        "storage.state_commit.async_commit_buffer": "100",
        "storage.state_commit.memiavl.snapshot_keep_recent": "2",
        "storage.state_commit.memiavl.snapshot_min_time_interval": "3600",
    });
    asked.insert(0, ("snapshot-restore", json!({ "targetHeight": 500 })));
    asked.insert(3, ("discover-peers", json!({ "sources": sources })));
    asked.insert(
        4,
        ("configure-state-sync", json!({ "useLocalSnapshot": true })),
    );
    runs_by(&scene, &diary, "node", (PlanKind::Init, plan), &asked).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_that_fails_its_check_is_not_approved() {
    let scene = Stage::shared().await.scene("check").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene.script("node", |script| {
        script.fails(TaskType::ConfigValidate, 2, "p2p.laddr is no address");
    });
    scene.full_node("node", json!({})).await;
    scene
        .until_status("what is wrong", "node", |_, status| {
            let tasks = status.plan.iter().flat_map(|plan| &plan.tasks);
            let mut errors = tasks.filter_map(|it| it.error.as_deref());
            errors.any(|it| it.contains("p2p.laddr"))
        })
        .await;
    scene.settled("node").await;
    assert_eq!(
        scene.seen("node").types(),
        [
            TaskType::ConfigureGenesis,
            TaskType::ConfigApply,
            TaskType::ConfigValidate,
            TaskType::ConfigValidate,
            TaskType::ConfigValidate,
            TaskType::MarkReady,
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_a_ceremony_adds_its_part_and_takes_its_peers_from_it() {
    let scene = Stage::shared().await.scene("genesis").await;
    let _operator = Operator::start(&scene, platform()).await;
    let diary = Diary::of(&scene, "member-0");
    // The others of the ceremony come late: there is no genesis file yet.
    scene.script("member-0", |script| {
        script.fails(TaskType::ConfigureGenesis, 2, "NoSuchKey");
    });
    let ceremony = json!({ "genesisCeremony": {
        "chainId": "bay-1", "stakingAmount": "10000000usei", "accountBalance": "100usei", "index": 0,
    }});
    scene
        .node("member-0", "validator", ceremony, json!({}))
        .await;
    let plan = "ensure-data-pvc apply-rbac-proxy-config apply-network-policy apply-statefulset \
                apply-service observe-image generate-identity generate-gentx \
                upload-genesis-artifacts configure-genesis config-apply set-genesis-peers \
                config-validate mark-ready";
    let asked = [
        (
            "generate-identity",
            json!({ "chainId": "bay-1", "moniker": "member-0" }),
        ),
        (
            "generate-gentx",
            json!({
                "chainId": "bay-1", "stakingAmount": "10000000usei", "accountBalance": "100usei",
            }),
        ),
        (
            "upload-genesis-artifacts",
            json!({ "nodeName": "member-0" }),
        ),
        ("configure-genesis", json!({})),
        ("configure-genesis", json!({})),
        ("configure-genesis", json!({})),
        ("config-apply", json!({ "mode": "validator" })),
        ("set-genesis-peers", json!({})),
        ("config-validate", json!({})),
        ("mark-ready", json!({})),
    ];
    runs_by(
        &scene,
        &diary,
        "member-0",
        (PlanKind::Genesis, plan),
        &asked,
    )
    .await;
    // What failed was tried again under names of its own.
    let submitted = scene.seen("member-0").submitted;
    let ids: std::collections::BTreeSet<_> = submitted.iter().map(|it| &it.id).collect();
    assert_eq!(ids.len(), submitted.len());
}
