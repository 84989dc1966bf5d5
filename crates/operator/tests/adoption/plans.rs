//! Plans the original left in a status: they are dropped, said to be, and the node is looked at anew.

use k8s_openapi::api::batch::v1::Job;
use keelson_api::SeiNode;
use keelson_api::node_condition::{NodeCondition, NodeReason};
use keelson_api::node_status::NodePhase;
use keelson_wire::TaskType;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::operator::Operator;
use crate::original::{Original, platforms};
use crate::stage::{Stage, platform};

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_hung_at_peers_that_are_not_there_gets_on() {
    let Some(original) = Original::read() else {
        return;
    };
    for (name, platform) in platforms() {
        let scene = Stage::shared().await.scene(name).await;
        original.make(&scene, "full-statesync").await;
        original.submit_done(&scene, "full-statesync").await;
        let _operator = Operator::start(&scene, platform).await;
        scene
            .until_phase("full-statesync", NodePhase::Running)
            .await;
        let node = scene.settled("full-statesync").await;
        assert_eq!(node.status.expect("a status").plan, None);
        let events = scene.events("full-statesync", "PlanDropped").await;
        assert_eq!(events.len(), 1, "{events:?}");
        assert!(
            events[0].contains("ec379815-85f2-4a0e-b6c6-b721cba4b602"),
            "{events:?}"
        );
        let seen = scene.seen("full-statesync");
        assert_eq!((seen.created.len(), seen.process_starts), (1, 1), "{name}");
        assert_eq!(seen.restarts.len(), 0);
        assert_eq!(scene.violations(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_override_is_named_and_once_corrected_nothing_is_restored_twice() {
    let Some(original) = Original::read() else {
        return;
    };
    let scene = Stage::shared().await.scene("override").await;
    original.make(&scene, "full-s3").await;
    original.submit_done(&scene, "full-s3").await;
    let [(_, platform), _] = platforms();
    let _operator = Operator::start(&scene, platform).await;
    let node = scene
        .until_condition(
            "full-s3",
            NodeCondition::SpecValid,
            false,
            NodeReason::Invalid,
        )
        .await;
    let status = node.status.expect("a status");
    let said = status.conditions.iter().find(|it| it.type_ == "SpecValid");
    let message = &said.expect("a condition").message;
    assert!(message.contains("p2p.max_num_inbound_peers"), "{message}");
    assert_eq!(status.plan, None);
    assert_eq!(scene.seen("full-s3").created.len(), 1);

    scene
        .edit(
            "full-s3",
            json!({ "overrides": { "p2p.max_num_inbound_peers": null } }),
        )
        .await;
    scene.until_phase("full-s3", NodePhase::Running).await;
    scene.settled("full-s3").await;
    let seen = scene.seen("full-s3");
    assert_eq!(seen.begun(TaskType::SnapshotRestore), 1);
    assert_eq!((seen.created.len(), seen.process_starts), (1, 1));
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bootstrap_under_way_is_gone_on_with_and_nothing_is_restored_twice() {
    let Some(original) = Original::read() else {
        return;
    };
    let scene = Stage::shared().await.scene("replay").await;
    scene.script("bootstrapping", |script| {
        script.replay = std::time::Duration::from_secs(600);
    });
    original.make(&scene, "bootstrapping").await;
    original.submit_done(&scene, "bootstrapping").await;
    scene
        .until_seen("the replay", "bootstrapping", |seen| {
            seen.process_starts == 1
        })
        .await;
    let job = scene.api::<Job>().get("bootstrapping-bootstrap").await;
    let before = job.expect("a Job").uid();
    let [(_, platform), _] = platforms();
    let _operator = Operator::start(&scene, platform).await;
    // It is at the Job, and has not touched what replays.
    scene
        .until_status("the wait for the Job", "bootstrapping", |_, status| {
            let tasks = status.plan.iter().flat_map(|plan| &plan.tasks);
            let mut waits = tasks.filter_map(|it| it.waiting_on.as_deref());
            waits.any(|it| it.contains("bootstrap Job"))
        })
        .await;
    let job = scene.api::<Job>().get("bootstrapping-bootstrap").await;
    assert_eq!(job.expect("a Job").uid(), before);
    let seen = scene.seen("bootstrapping");
    assert_eq!((seen.created.len(), seen.process_starts), (1, 1));
    scene.end_replay("bootstrapping");
    scene.until_phase("bootstrapping", NodePhase::Running).await;
    scene.settled("bootstrapping").await;
    let seen = scene.seen("bootstrapping");
    assert_eq!(seen.begun(TaskType::SnapshotRestore), 1);
    assert_eq!((seen.created.len(), seen.process_starts), (2, 2));
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_an_update_the_original_did_not_live_to_see_is_seen() {
    let Some(original) = Original::read() else {
        return;
    };
    for (name, platform) in platforms() {
        let scene = Stage::shared().await.scene(name).await;
        original.make_edited(&scene).await;
        original.approve(&scene, "archive").await;
        let _operator = Operator::start(&scene, platform).await;
        let node = scene.settled("archive").await;
        let status = node.status.expect("a status");
        assert_eq!(status.plan, None);
        assert_eq!(status.phase, Some(NodePhase::Running));
        assert_eq!(
            status.current_image.as_deref(),
            Some("registry.example/seid:v6.1.0")
        );
        let update = status
            .conditions
            .iter()
            .find(|it| it.type_ == "NodeUpdateInProgress")
            .expect("a condition");
        assert_eq!(
            (update.status.as_str(), update.reason.as_str()),
            ("False", "UpdateComplete")
        );
        let seen = scene.seen("archive");
        assert_eq!((seen.created.len(), seen.process_starts), (1, 1), "{name}");
        assert_eq!(scene.violations(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_with_tasks_nobody_knows_is_dropped_with_an_event() {
    let scene = Stage::shared().await.scene("unknown").await;
    scene.full_node("node", json!({})).await;
    let plan = json!({
        "id": "0f0e0d0c-0000-4000-8000-000000000001", "phase": "Active", "targetPhase": "Running",
        "failedTaskIndex": 1,
        "tasks": [
            { "id": "a", "type": "ensure-data-pvc", "status": "Complete" },
            { "id": "b", "type": "task-of-the-future", "status": "Pending", "params": { "A": 1 } },
        ],
    });
    let nodes = scene.api::<SeiNode>();
    let patch = Patch::Merge(json!({ "status": { "phase": "Initializing", "plan": plan } }));
    let written = nodes
        .patch_status("node", &PatchParams::default(), &patch)
        .await;
    written.expect("a status");
    let _operator = Operator::start(&scene, platform()).await;
    scene.until_phase("node", NodePhase::Running).await;
    scene.settled("node").await;
    let raw = scene.raw_node("node").await;
    assert_eq!(raw["status"]["plan"], serde_json::Value::Null, "{raw}");
    let events = scene.events("node", "PlanDropped").await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert!(events[0].contains("0f0e0d0c"), "{events:?}");
    assert_eq!(scene.violations(), Vec::<String>::new());
}
