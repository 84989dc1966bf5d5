//! Sidecars take tasks, hold the gate, and remember both.

use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::Pod;
use keelson_wire::TaskType;
use serde_json::json;

use crate::caller::{Caller, task_id};
use crate::rendered::{apply_all, is_ready, running, uid};
use crate::stage::{Scene, Stage, platform};

/// A scene with one node whose pod runs.
async fn scene(name: &str) -> Scene {
    let scene = Stage::shared().await.scene(name).await;
    let node = scene.full_node("n", json!({})).await;
    apply_all(&scene, &node, &platform()).await;
    running(&scene, "n-0").await;
    scene
}

/// Waits until a task has this status.
async fn until_task(scene: &Scene, id: &str, status: &str) {
    let caller = Caller::new(scene, "n");
    let what = format!("task {id}");
    let look = async || match caller.task(id).await {
        seen if seen == status => Ok(()),
        seen => Err(seen),
    };
    let waited = keelson_testbed::until(&what, Duration::from_secs(20), look).await;
    waited.expect("a task of that status");
}

#[tokio::test]
async fn a_task_runs_once_for_an_id_and_again_only_when_it_failed() {
    let scene = scene("tasks").await;
    let caller = Caller::new(&scene, "n");
    scene.script("n", |it| {
        it.fails(TaskType::ConfigureGenesis, 1, "no bucket")
    });
    let id = task_id(1);
    let submit = async || {
        caller
            .submit(&id, "configure-genesis", json!({}))
            .await
            .status()
    };
    assert_eq!(submit().await, Some(201));
    let failed = caller.get(&format!("/v0/tasks/{id}")).await;
    assert_eq!(failed.body()["status"], "failed");
    assert_eq!(failed.body()["error"], "no bucket");
    assert_eq!(submit().await, Some(201));
    assert_eq!(caller.task(&id).await, "completed");
    assert_eq!(submit().await, Some(201));
    let done = caller.get(&format!("/v0/tasks/{id}")).await;
    assert_eq!(
        done.body()["run"],
        2,
        "what is completed is not begun again"
    );
    let seen = scene.seen("n");
    assert_eq!(seen.types(), [TaskType::ConfigureGenesis; 3]);
    assert_eq!(seen.begun(TaskType::ConfigureGenesis), 2);

    let other = caller.submit(&id, "mark-ready", json!({})).await;
    assert_eq!(other.status(), Some(409), "another type");
    let hash = json!({ "expectedGenesisHash": "aa" });
    let other = caller.submit(&id, "configure-genesis", hash).await;
    assert_eq!(other.status(), Some(409), "other parameters");
    let unknown = caller.submit(&task_id(2), "make-coffee", json!({})).await;
    assert_eq!(unknown.status(), Some(400));
    let list = caller.get("/v0/tasks").await;
    assert_eq!(list.body().as_array().map(Vec::len), Some(1));
    assert_eq!(
        caller.delete(&format!("/v0/tasks/{id}")).await.status(),
        Some(204)
    );
    assert_eq!(
        caller.delete(&format!("/v0/tasks/{id}")).await.status(),
        Some(404)
    );
}

#[tokio::test]
async fn what_sets_a_node_up_closes_the_gate_and_what_changes_it_does_not() {
    let scene = scene("gate").await;
    let caller = Caller::new(&scene, "n");
    let open = async || caller.get("/v0/healthz").await.status() == Some(200);
    let submit = async |number, type_: &str, params| {
        caller
            .submit(&task_id(number), type_, params)
            .await
            .status()
    };
    submit(1, "config-apply", json!({ "mode": "full" })).await;
    submit(2, "mark-ready", json!({})).await;
    assert!(open().await);
    assert_eq!(caller.get("/v0/status").await.body()["status"], "Ready");
    submit(
        3,
        "config-patch",
        json!({ "files": { "app.toml": { "a": 1 } } }),
    )
    .await;
    assert!(open().await, "a patch is for the next start");
    submit(4, "config-apply", json!({ "mode": "full" })).await;
    assert!(open().await, "it is there already");
    submit(5, "config-apply", json!({ "mode": "archive" })).await;
    assert!(!open().await, "written anew");
    assert_eq!(
        caller.get("/v0/status").await.body()["status"],
        "Initializing"
    );
    submit(6, "mark-ready", json!({})).await;
    assert!(open().await);
    submit(7, "mark-not-ready", json!({})).await;
    assert!(!open().await);
    submit(6, "mark-ready", json!({})).await;
    assert!(open().await, "a release that was forgotten releases again");
}

#[tokio::test]
async fn a_patch_carries_the_approval_into_the_next_pod() {
    let scene = scene("carry").await;
    let caller = Caller::new(&scene, "n");
    caller.submit(&task_id(1), "mark-ready", json!({})).await;
    let patch = json!({ "files": { "app.toml": { "a": 1 } } });
    caller.submit(&task_id(2), "config-patch", patch).await;
    let first = scene.until_pod("readiness", "n-0", is_ready).await;
    scene.delete::<Pod>("n-0").await;
    let again = |pod: &Pod| uid(pod) != uid(&first) && is_ready(pod);
    scene.until_pod("another, ready", "n-0", again).await;
}

#[tokio::test]
async fn a_restart_of_the_process_restarts_its_container_and_no_other() {
    let scene = scene("process").await;
    let caller = Caller::new(&scene, "n");
    caller.submit(&task_id(1), "mark-ready", json!({})).await;
    caller.submit(&task_id(2), "restart-seid", json!({})).await;
    scene
        .until_seen("two starts", "n", |seen| seen.process_starts == 2)
        .await;
    let seen = scene.seen("n");
    assert_eq!(
        (seen.restarted("seid"), seen.restarted("sei-sidecar")),
        (1, 0)
    );
    assert_eq!(seen.created.len(), 1);
    let restarted = |pod: &Pod| {
        let statuses = pod
            .status
            .as_ref()
            .and_then(|it| it.container_statuses.as_ref());
        let mut all = statuses.into_iter().flatten();
        is_ready(pod) && all.any(|it| it.name == "seid" && it.restart_count == 1)
    };
    scene.until_pod("a restart", "n-0", restarted).await;
}

#[tokio::test]
async fn a_task_that_is_interrupted_is_taken_up_by_the_next_sidecar() {
    let scene = scene("interrupted").await;
    let caller = Caller::new(&scene, "n");
    scene.script("n", |it| it.hangs(TaskType::SnapshotRestore, true));
    caller
        .submit(
            &task_id(1),
            "snapshot-restore",
            json!({ "targetHeight": 5 }),
        )
        .await;
    caller.submit(&task_id(2), "mark-ready", json!({})).await;
    assert_eq!(caller.task(&task_id(1)).await, "running");
    assert_eq!(
        caller.task(&task_id(2)).await,
        "running",
        "it waits for the data"
    );
    scene.script("n", |it| it.hangs(TaskType::SnapshotRestore, false));
    scene.delete::<Pod>("n-0").await;
    scene
        .until_seen("its end", "n", |seen| seen.deleted.len() == 1)
        .await;
    running(&scene, "n-0").await;
    until_task(&scene, &task_id(2), "completed").await;
    assert_eq!(caller.task(&task_id(1)).await, "completed");
    assert_eq!(scene.seen("n").begun(TaskType::SnapshotRestore), 1);
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn a_slow_task_runs_for_as_long_as_it_is_scripted_to_and_then_fails_if_it_shall() {
    const SLOW: Duration = Duration::from_millis(300);
    let scene = scene("slow-task").await;
    let caller = Caller::new(&scene, "n");
    scene.script("n", |it| {
        it.takes(TaskType::DiscoverPeers, SLOW);
        it.fails(TaskType::DiscoverPeers, 1, "nobody");
    });
    let peers = json!({ "sources": [{ "type": "static", "addresses": ["x@y:1"] }] });
    for end in ["failed", "completed"] {
        let begun = Instant::now();
        caller
            .submit(&task_id(1), "discover-peers", peers.clone())
            .await;
        until_task(&scene, &task_id(1), end).await;
        assert!(begun.elapsed() >= SLOW, "{end} after {:?}", begun.elapsed());
    }
}

#[tokio::test]
async fn what_must_never_happen_to_data_is_written_down() {
    let scene = scene("violations").await;
    let caller = Caller::new(&scene, "n");
    let restore = async |number| {
        let params = json!({ "targetHeight": 5 });
        caller
            .submit(&task_id(number), "snapshot-restore", params)
            .await
    };
    scene.script("n", |it| it.hangs(TaskType::SnapshotRestore, true));
    restore(1).await;
    restore(1).await;
    assert_eq!(
        scene.violations(),
        Vec::<String>::new(),
        "the same again is the same"
    );
    restore(2).await;
    let found = scene.violations();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].contains("while another task had the data"),
        "{found:?}"
    );
    assert_eq!(caller.task(&task_id(1)).await, "running");
    assert_eq!(
        scene.release("n", TaskType::SnapshotRestore),
        1,
        "the other waits"
    );
    assert_eq!(caller.task(&task_id(2)).await, "completed");
    restore(3).await;
    let found = scene.violations();
    assert!(found[1].contains("the volume has it already"), "{found:?}");
    caller.submit(&task_id(4), "mark-ready", json!({})).await;
    caller.submit(&task_id(5), "reset-data", json!({})).await;
    let found = scene.violations();
    assert!(found[2].contains("while the process ran"), "{found:?}");
    assert_eq!(found.len(), 3, "{found:?}");
}

#[tokio::test]
async fn two_processes_with_one_signing_key_are_written_down() {
    let scene = Stage::shared().await.scene("keys").await;
    let platform = platform();
    scene.validator("one", json!({})).await;
    let one = scene.api().get("one").await.expect("a node");
    let block = json!({
        "signingKey": { "secret": { "secretName": "one-signing" } },
        "nodeKey": { "secret": { "secretName": "one-node" } },
    });
    let two = scene.node("two", "validator", block, json!({})).await;
    for (name, node) in [("one", one), ("two", two)] {
        apply_all(&scene, &node, &platform).await;
        running(&scene, &format!("{name}-0")).await;
        let caller = Caller::new(&scene, name);
        caller.submit(&task_id(1), "mark-ready", json!({})).await;
        scene
            .until_seen("a process", name, |seen| seen.process_starts == 1)
            .await;
    }
    let found = scene.violations();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("sign with one key"), "{found:?}");
}
