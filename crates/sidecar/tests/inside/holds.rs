//! A hold outweighs a release, through crashes and failing stores.

use super::stage::{Folder, SOON, Stage};
use keelson_sidecar::store::Store;
use keelson_wire::{TaskStatus, TaskType};
use rusqlite::Connection;
use std::sync::Arc;

/// A home whose last sidecar died with these tasks running; seconds are their times.
fn stranded(tasks: &[(&str, &str, &str, u32)]) -> Arc<Folder> {
    let folder = Arc::new(Folder::new());
    let path = folder.home().store();
    Store::open(&path).expect("a store").close();
    let connection = Connection::open(path).expect("a file");
    for (id, type_, status, second) in tasks {
        let time = format!("2026-01-01T00:00:{second:02}.000000000Z");
        connection
            .execute(
                "INSERT INTO task_results (id, type, status, params, submitted_at, run) \
                 VALUES (?1, ?2, ?3, 'null', ?4, 1)",
                (id, type_, status, time),
            )
            .expect("a row");
    }
    folder
}

/// Makes every purge fail, as a full disk would, without keeping anything else from being written.
fn break_purges(folder: &Folder) {
    let connection = Connection::open(folder.home().store()).expect("a file");
    let sql = "CREATE TRIGGER no_purge BEFORE DELETE ON task_results WHEN OLD.type = 'mark-ready' \
               BEGIN SELECT RAISE(ABORT, 'told to fail'); END";
    connection.execute_batch(sql).expect("a trigger");
}

#[tokio::test]
async fn a_stranded_release_opens_the_gate() {
    let stage = Stage::over(stranded(&[("r", "mark-ready", "running", 1)]));
    stage.engine.recover(&stage.gate).await.expect("recovered");
    assert_eq!(stage.ended("r").await.status, TaskStatus::Completed);
    assert!(stage.gate.is_open());
}

#[tokio::test]
async fn a_hold_forgets_every_release_and_closes_the_gate() {
    let stage = Stage::new();
    for id in ["r1", "r2"] {
        stage
            .submit_type(id, TaskType::MarkReady)
            .await
            .expect("accepted");
        stage.ended(id).await;
    }
    assert!(stage.gate.is_open());
    stage
        .submit_type("h", TaskType::MarkNotReady)
        .await
        .expect("accepted");
    assert_eq!(stage.ended("h").await.status, TaskStatus::Completed);
    assert!(!stage.gate.is_open());
    assert_eq!(stage.get("r1").await, None);
    assert_eq!(stage.get("r2").await, None);
    let next = Stage::over(stage.end().await);
    next.engine.recover(&next.gate).await.expect("recovered");
    assert!(!next.gate.is_open());
}

#[tokio::test]
async fn a_stranded_hold_and_a_stranded_release_always_end_held() {
    for round in 0..50 {
        let (hold, release) = if round % 2 == 0 { (1, 2) } else { (2, 1) };
        let folder = stranded(&[
            ("h", "mark-not-ready", "running", hold),
            ("r", "mark-ready", "running", release),
        ]);
        let stage = Stage::over(folder);
        stage.engine.recover(&stage.gate).await.expect("recovered");
        assert!(!stage.gate.is_open(), "round {round}");
        assert_eq!(
            stage.get("h").await.expect("a task").status,
            TaskStatus::Completed
        );
        assert_eq!(stage.get("r").await, None);
        stage.end().await;
    }
}

#[tokio::test]
async fn a_release_outlives_a_failed_purge_as_superseded_and_stays_so() {
    let folder = stranded(&[
        ("r", "mark-ready", "running", 1),
        ("h", "mark-not-ready", "running", 2),
    ]);
    break_purges(&folder);
    let mut folder = folder;
    for restart in 0..2 {
        let stage = Stage::over(folder);
        stage.engine.recover(&stage.gate).await.expect("recovered");
        assert!(!stage.gate.is_open(), "restart {restart}");
        let hold = stage.get("h").await.expect("a task");
        assert_eq!(hold.status, TaskStatus::Failed);
        assert!(hold.error.contains("told to fail"), "{}", hold.error);
        let release = stage.get("r").await.expect("a task");
        assert_eq!(
            (release.status, release.error.as_str()),
            (TaskStatus::Failed, "superseded by hold")
        );
        folder = stage.end().await;
    }
}

#[tokio::test]
async fn a_hold_whose_purge_fails_leaves_the_gate_as_it_is_and_says_so() {
    let stage = Stage::new();
    stage
        .submit_type("r", TaskType::MarkReady)
        .await
        .expect("accepted");
    stage.ended("r").await;
    break_purges(&stage.folder);
    stage
        .submit_type("h", TaskType::MarkNotReady)
        .await
        .expect("accepted");
    assert_eq!(stage.ended("h").await.status, TaskStatus::Failed);
    assert!(stage.gate.is_open());
}

#[tokio::test]
async fn nothing_is_taken_up_when_the_store_cannot_be_read() {
    let folder = stranded(&[("r", "mark-ready", "running", 1)]);
    let stage = Stage::over(folder);
    stage.store.close();
    stage
        .engine
        .recover(&stage.gate)
        .await
        .expect_err("refused");
    assert!(!stage.gate.is_open());
    assert_eq!(stage.begins("r"), 0);
}

#[tokio::test]
async fn releases_and_holds_at_once_leave_nothing_running() {
    let stage = Stage::new();
    let mut submitted = Vec::new();
    for index in 0..24 {
        let (id, type_) = match index % 3 {
            0 => (format!("h{index}"), TaskType::MarkNotReady),
            _ => (format!("r{index}"), TaskType::MarkReady),
        };
        let engine = Arc::clone(&stage.engine);
        let task = super::stage::incoming(&id, type_, serde_json::json!({}));
        submitted.push(tokio::spawn(async move { engine.submit(task).await }));
    }
    for it in submitted {
        it.await.expect("no panic").expect("accepted");
    }
    let look = async || match stage.store.running().await {
        Ok(rows) if rows.is_empty() => Ok(()),
        seen => Err(format!("{seen:?}")),
    };
    keelson_testbed::until("the last end", SOON, look)
        .await
        .expect("nothing running");
    stage
        .submit_type("last", TaskType::MarkNotReady)
        .await
        .expect("accepted");
    stage.ended("last").await;
    assert!(!stage.gate.is_open());
    let rows = stage.store.list(100).await.expect("tasks");
    assert!(rows.iter().all(|row| row.type_ != "mark-ready"), "{rows:?}");
}

#[tokio::test]
async fn tasks_of_the_original_that_are_not_there_fail_by_name() {
    let folder = stranded(&[
        ("g", "gov-vote", "running", 1),
        ("p", "mark-ready", "running", 2),
    ]);
    let stage = Stage::over(folder);
    stage.engine.recover(&stage.gate).await.expect("recovered");
    let vote = stage.ended("g").await;
    assert_eq!(vote.error, "no handler registered for task type");
    assert_eq!(stage.ended("p").await.status, TaskStatus::Completed);
}

#[tokio::test]
async fn a_release_that_waits_when_a_hold_comes_is_never_carried_out() {
    let stage = Stage::new();
    stage.submit("busy", "block").await.expect("accepted");
    stage.begun("busy").await;
    stage
        .submit_type("r", TaskType::MarkReady)
        .await
        .expect("accepted");
    let waits = async || match stage.get("r").await.and_then(|task| task.result) {
        Some(result) if result["waitingFor"].is_string() => Ok(()),
        seen => Err(format!("{seen:?}")),
    };
    keelson_testbed::until("the release's wait", SOON, waits)
        .await
        .expect("a wait");
    stage
        .submit_type("h", TaskType::MarkNotReady)
        .await
        .expect("accepted");
    assert_eq!(stage.ended("h").await.status, TaskStatus::Completed);
    stage.script.release.add_permits(1);
    // Whoever comes behind the release gets its lock after it.
    stage.submit("behind", "ok").await.expect("accepted");
    stage.ended("behind").await;
    assert_eq!(stage.begins("r"), 0);
    assert!(!stage.gate.is_open());
}
