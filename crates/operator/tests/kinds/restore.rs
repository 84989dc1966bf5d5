//! A snapshot that is being restored: terabytes, which nobody fetches twice for an edit beside it.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::Pod;
use keelson_wire::TaskType;
use serde_json::{Value, json};

use crate::operator::Operator;
use crate::stage::{Scene, Stage, platform};

fn from_s3(height: i64) -> Value {
    json!({ "snapshot": { "s3": { "targetHeight": height } } })
}

/// Waits until a node's restore is under way in its pod number so many.
async fn restoring_in(scene: &Scene, pods: usize) {
    scene
        .until_seen("the pod", "node", |seen| seen.created.len() == pods)
        .await;
    scene
        .until_status("the restore", "node", |_, status| {
            let plan = status.plan.as_ref();
            let tasks = plan.map(|plan| plan.tasks.as_slice()).unwrap_or_default();
            let restore = tasks
                .iter()
                .find(|it| it.type_ == TaskType::SnapshotRestore);
            let waits = restore.and_then(|it| it.waiting_on.as_deref());
            waits.is_some_and(|it| it.contains("snapshot-restore"))
        })
        .await;
}

/// The ids and heights restores were submitted under.
fn restores(scene: &Scene) -> BTreeSet<(String, String)> {
    let submitted = scene.seen("node").submitted.into_iter();
    submitted
        .filter(|it| it.type_ == TaskType::SnapshotRestore)
        .map(|it| (it.id, it.params["targetHeight"].to_string()))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_is_begun_once_whatever_else_happens_to_the_node() {
    let scene = Stage::shared().await.scene("restore").await;
    let operator = Operator::start(&scene, platform()).await;
    scene.script("node", |script| {
        script.hangs(TaskType::SnapshotRestore, true);
    });
    scene
        .node("node", "fullNode", from_s3(1000), json!({}))
        .await;
    restoring_in(&scene, 1).await;

    // Edits beside it: each is another pod, and the sidecar there goes on with what was begun.
    scene
        .edit("node", json!({ "podLabels": { "team": "rpc" } }))
        .await;
    restoring_in(&scene, 2).await;
    scene
        .edit("node", json!({ "image": "registry.example/seid:v6.1.0" }))
        .await;
    restoring_in(&scene, 3).await;
    // One that is about the process alone replaces nothing.
    scene
        .edit("node", json!({ "overrides": { "evm.http_port": "8545" } }))
        .await;
    restoring_in(&scene, 3).await;

    // A machine that is drained.
    scene.delete::<Pod>("node-0").await;
    restoring_in(&scene, 4).await;

    // Another operator.
    drop(operator);
    let _operator = Operator::start(&scene, platform()).await;
    scene
        .edit("node", json!({ "podLabels": { "team": "archive" } }))
        .await;
    restoring_in(&scene, 5).await;
    assert_eq!(scene.seen("node").begun(TaskType::SnapshotRestore), 1);

    scene.script("node", |script| {
        script.hangs(TaskType::SnapshotRestore, false);
    });
    scene.delete::<Pod>("node-0").await;
    let node = scene.settled("node").await;
    let status = node.status.expect("a status");
    assert_eq!(
        status.current_image.as_deref(),
        Some("registry.example/seid:v6.1.0")
    );
    let seen = scene.seen("node");
    assert_eq!(seen.begun(TaskType::SnapshotRestore), 1);
    assert_eq!(restores(&scene).len(), 1, "{:?}", restores(&scene));
    assert_eq!(seen.process_starts, 1);
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_height_calls_the_restore_off_before_it_begins_its_own() {
    let scene = Stage::shared().await.scene("height").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene.script("node", |script| {
        script.hangs(TaskType::SnapshotRestore, true);
    });
    scene
        .node("node", "fullNode", from_s3(1000), json!({}))
        .await;
    restoring_in(&scene, 1).await;
    scene.script("node", |script| {
        script.hangs(TaskType::SnapshotRestore, false);
    });
    scene
        .edit("node", json!({ "fullNode": from_s3(2000) }))
        .await;
    scene.settled("node").await;
    let heights: Vec<_> = restores(&scene).into_iter().map(|it| it.1).collect();
    assert_eq!(heights.len(), 2, "{heights:?}");
    assert_eq!(scene.seen("node").created.len(), 1);
    // The stage says so where one is begun while another has the data.
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restore_that_failed_is_tried_again_under_another_name() {
    let scene = Stage::shared().await.scene("again").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene.script("node", |script| {
        script.fails(TaskType::SnapshotRestore, 2, "the bucket is away");
    });
    scene
        .node("node", "fullNode", from_s3(1000), json!({}))
        .await;
    let node = scene.settled("node").await;
    assert_eq!(restores(&scene).len(), 3);
    assert_eq!(scene.seen("node").begun(TaskType::SnapshotRestore), 3);
    let status = node.status.expect("a status");
    assert_eq!(status.consecutive_failures, None);
    assert_eq!(scene.violations(), Vec::<String>::new());
}
