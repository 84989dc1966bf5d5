//! The engine, with tasks that do as they are told.

use super::stage::{SOON, Stage, incoming};
use keelson_sidecar::engine::Rejection;
use keelson_wire::{TaskStatus, TaskType};
use serde_json::json;
use std::sync::Arc;

fn scrape(stage: &Stage) -> String {
    let registry = stage.metrics.registry(&stage.gate, &stage.ledger);
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry).expect("a text");
    text
}

#[tokio::test]
async fn results_are_kept_for_tasks_that_complete_and_for_those_that_fail() {
    let stage = Stage::new();
    stage.submit("a", "ok").await.expect("accepted");
    let done = stage.ended("a").await;
    assert_eq!(
        (done.status, done.result),
        (TaskStatus::Completed, Some(json!({"word": "ok"})))
    );
    assert!(done.completed_at.is_some());
    stage.submit("b", "fail").await.expect("accepted");
    let done = stage.ended("b").await;
    assert_eq!(done.status, TaskStatus::Failed);
    assert_eq!(done.error, "config-patch: told to fail [hint: look]");
    assert_eq!(
        done.result,
        Some(json!({"retryable": true, "operation": "act"}))
    );
}

#[tokio::test]
async fn what_runs_and_what_is_completed_is_not_begun_again() {
    let stage = Stage::new();
    stage.submit("a", "block").await.expect("accepted");
    stage.begun("a").await;
    stage.submit("a", "block").await.expect("the same");
    stage.script.release.add_permits(1);
    assert_eq!(stage.ended("a").await.status, TaskStatus::Completed);
    stage.submit("a", "block").await.expect("the same");
    assert_eq!(stage.begins("a"), 1);
    assert_eq!(stage.get("a").await.expect("a task").run, 1);
}

#[tokio::test]
async fn what_failed_runs_again_and_again_and_counts() {
    let stage = Stage::new();
    for run in 1..=3 {
        stage.submit("a", "fail").await.expect("accepted");
        let done = stage.ended("a").await;
        assert_eq!((done.status, done.run), (TaskStatus::Failed, run));
    }
    let scraped = scrape(&stage);
    assert!(
        scraped.contains("seictl_task_submissions_total{type=\"config-patch\"} 3"),
        "{scraped}"
    );
    assert!(
        scraped.contains("seictl_task_failures_total{type=\"config-patch\"} 3"),
        "{scraped}"
    );
}

#[tokio::test]
async fn many_who_submit_a_failed_task_at_once_begin_it_once() {
    let stage = Stage::new();
    stage.submit("a", "fail").await.expect("accepted");
    stage.ended("a").await;
    let many = (0..32).map(|_| stage.submit("a", "block"));
    for submitted in futures::future::join_all(many).await {
        submitted.expect("accepted");
    }
    stage.begun("a").await;
    stage.script.release.add_permits(1);
    let done = stage.ended("a").await;
    assert_eq!(
        (done.status, done.run, stage.begins("a")),
        (TaskStatus::Completed, 2, 2)
    );
}

#[tokio::test]
async fn an_id_of_another_task_is_a_conflict() {
    let stage = Stage::new();
    stage.submit("a", "ok").await.expect("accepted");
    let other = stage.submit_type("a", TaskType::MarkReady).await;
    assert!(matches!(other, Err(Rejection::Conflict(_))), "{other:?}");
    let other = stage.submit("a", "fail").await;
    assert!(matches!(other, Err(Rejection::Conflict(_))), "{other:?}");
}

#[tokio::test]
async fn a_long_task_blocks_nobody_who_needs_nothing_it_has() {
    let stage = Stage::new();
    let long = incoming("long", TaskType::SnapshotUpload, json!({}));
    stage.engine.submit(long).await.expect("accepted");
    stage.begun("long").await;
    for index in 0..20 {
        stage
            .submit(&format!("t{index}"), "ok")
            .await
            .expect("accepted");
    }
    for index in 0..20 {
        let done = stage.ended(&format!("t{index}")).await;
        assert_eq!(done.status, TaskStatus::Completed);
    }
    let task = stage.get("long").await.expect("a task");
    assert_eq!(
        (task.status, task.completed_at),
        (TaskStatus::Running, None)
    );
}

#[tokio::test]
async fn two_tasks_never_have_one_lock_and_who_waits_says_for_what() {
    let stage = Stage::new();
    stage.submit("a", "block").await.expect("accepted");
    stage.begun("a").await;
    stage.submit("b", "ok").await.expect("accepted");
    let waits = async || match stage.get("b").await.and_then(|task| task.result) {
        Some(result) if result["waitingFor"].is_string() => Ok(result),
        seen => Err(format!("{seen:?}")),
    };
    let seen = keelson_testbed::until("a wait", SOON, waits)
        .await
        .expect("a wait");
    assert_eq!(
        seen["waitingFor"],
        "a task that has the configuration files"
    );
    assert_eq!(stage.begins("b"), 0);
    stage.script.release.add_permits(1);
    assert_eq!(stage.ended("b").await.status, TaskStatus::Completed);
}

#[tokio::test]
async fn progress_is_shown_while_a_task_runs_and_in_metrics() {
    let stage = Stage::new();
    stage.submit("a", "block").await.expect("accepted");
    stage.begun("a").await;
    let shown = async || match stage.get("a").await.and_then(|task| task.result) {
        Some(result) if result["progress"]["bytes"] == 250 => Ok(result),
        seen => Err(format!("{seen:?}")),
    };
    let seen = keelson_testbed::until("progress", SOON, shown)
        .await
        .expect("progress");
    assert_eq!(seen["progress"]["total"], 1000);
    assert!(seen["progress"]["bytesPerSecond"].is_u64(), "{seen}");
    let scraped = scrape(&stage);
    for line in [
        "keelson_sidecar_tasks_running{type=\"config-patch\"} 1",
        "keelson_sidecar_task_bytes_done{type=\"config-patch\"} 250",
        "keelson_sidecar_task_bytes_total{type=\"config-patch\"} 1000",
    ] {
        assert!(scraped.contains(line), "{scraped}");
    }
    stage.script.release.add_permits(1);
    assert_eq!(
        stage.ended("a").await.result,
        Some(json!({"word": "block"}))
    );
}

#[tokio::test]
async fn what_has_ended_or_was_deleted_is_at_work_no_more() {
    let stage = Stage::new();
    let running = || scrape(&stage).contains("keelson_sidecar_tasks_running{");
    // A row is written a moment before its task is taken out.
    let rests = async || match running() {
        true => Err("something is at work".to_owned()),
        false => Ok(()),
    };
    for (id, word) in [("a", "ok"), ("b", "fail"), ("c", "panic")] {
        stage.submit(id, word).await.expect("accepted");
        stage.ended(id).await;
        let rested = keelson_testbed::until("rest", SOON, rests).await;
        rested.expect(word);
    }
    stage.submit("d", "block").await.expect("accepted");
    stage.begun("d").await;
    assert!(running());
    assert!(stage.engine.delete("d").await.expect("deleted"));
    assert!(!running());
}

#[tokio::test]
async fn a_deleted_task_is_stopped_and_forgotten_and_may_be_submitted_anew() {
    let stage = Stage::new();
    stage.submit("a", "block").await.expect("accepted");
    stage.begun("a").await;
    assert!(stage.engine.delete("a").await.expect("deleted"));
    assert_eq!(
        stage.script.ended.lock().expect("ended").len(),
        1,
        "the work has ended"
    );
    assert_eq!(stage.get("a").await, None);
    assert!(!stage.engine.delete("a").await.expect("an answer"));
    stage.submit("a", "ok").await.expect("accepted");
    let done = stage.ended("a").await;
    assert_eq!((done.status, done.run), (TaskStatus::Completed, 1));
    assert!(
        !scrape(&stage).contains("seictl_task_failures_total"),
        "cancelled is not failed"
    );
}

#[tokio::test]
async fn the_late_end_of_a_deleted_run_touches_nothing_newer() {
    let stage = Stage::new();
    // Deaf to cancellation: the deletion gives up waiting for it and forgets the task all the same.
    stage.submit("a", "deaf").await.expect("accepted");
    stage.begun("a").await;
    assert!(stage.engine.delete("a").await.expect("deleted"));
    stage.submit("a", "block").await.expect("accepted");
    stage.script.release.add_permits(1);
    let ended = async || match stage.script.ended.lock().expect("ended").len() {
        0 => Err("not yet".to_owned()),
        _ => Ok(()),
    };
    keelson_testbed::until("the late end", SOON, ended)
        .await
        .expect("an end");
    let look = async || match stage.begins("a") {
        2 => Ok(()),
        seen => Err(seen.to_string()),
    };
    keelson_testbed::until("the next run", SOON, look)
        .await
        .expect("a run");
    assert_eq!(
        stage.get("a").await.expect("a task").status,
        TaskStatus::Running
    );
    stage.script.release.add_permits(1);
    assert_eq!(
        stage.ended("a").await.result,
        Some(json!({"word": "block"}))
    );
}

#[tokio::test]
async fn a_panic_fails_its_task_and_nothing_else() {
    let stage = Stage::new();
    stage.submit("a", "panic").await.expect("accepted");
    let done = stage.ended("a").await;
    assert_eq!(done.error, "task handler panicked: told to panic");
    let scraped = scrape(&stage);
    assert!(
        scraped.contains("seictl_task_panics_total{type=\"config-patch\"} 1"),
        "{scraped}"
    );
    assert!(
        scraped.contains("seictl_task_failures_total{type=\"config-patch\"} 1"),
        "{scraped}"
    );
    stage.submit("b", "ok").await.expect("accepted");
    assert_eq!(stage.ended("b").await.status, TaskStatus::Completed);
}

#[tokio::test]
async fn a_task_past_its_deadline_fails_and_is_not_taken_for_cancelled() {
    let stage = Stage::new();
    stage
        .submit_type("a", TaskType::SnapshotUploadOnce)
        .await
        .expect("accepted");
    let done = stage.ended("a").await;
    assert_eq!(done.status, TaskStatus::Failed);
    let sentence = "snapshot-upload-once: deadline exceeded: it was not done within 1 s";
    assert_eq!(done.error, sentence);
    assert_eq!(
        stage.script.ended.lock().expect("ended").len(),
        1,
        "it was told to stop, and did"
    );
    let failures = "seictl_task_failures_total{type=\"snapshot-upload-once\"} 1";
    assert!(scrape(&stage).contains(failures));
}

#[tokio::test]
async fn params_that_cannot_be_read_or_make_no_sense_fail_the_task() {
    let stage = Stage::new();
    let bad = incoming(
        "a",
        TaskType::SnapshotRestore,
        json!({"targetHeight": "high"}),
    );
    stage.engine.submit(bad).await.expect("accepted");
    let error = stage.ended("a").await.error;
    assert!(error.starts_with("parsing params:"), "{error}");
    let bad = incoming("b", TaskType::ConfigPatch, json!({}));
    stage.engine.submit(bad).await.expect("accepted");
    assert_eq!(
        stage.ended("b").await.error,
        "config-patch: at least one file is required"
    );
}

#[tokio::test]
async fn what_the_end_interrupts_the_next_sidecar_takes_up_as_the_same_run() {
    let stage = Stage::new();
    stage.submit("a", "fail").await.expect("accepted");
    stage.ended("a").await;
    stage.submit("a", "block").await.expect("accepted");
    stage.submit("done", "ok").await.expect("accepted");
    stage.begun("a").await;
    let before = stage.get("a").await.expect("a task");
    let folder = stage.end().await;

    let next = Stage::over(Arc::clone(&folder));
    let left = next.get("a").await.expect("a task");
    assert_eq!((left.status, left.run), (TaskStatus::Running, 2));
    next.engine.recover(&next.gate).await.expect("recovered");
    next.begun("a").await;
    next.script.release.add_permits(1);
    let done = next.ended("a").await;
    assert_eq!((done.status, done.run), (TaskStatus::Completed, 2));
    assert_eq!(done.submitted_at, before.submitted_at);
    assert!(
        !scrape(&next).contains("seictl_task_submissions_total"),
        "nobody submitted it"
    );
}

#[tokio::test]
async fn a_task_that_was_taken_up_can_be_deleted() {
    let stage = Stage::new();
    stage.submit("a", "block").await.expect("accepted");
    stage.begun("a").await;
    let next = Stage::over(stage.end().await);
    next.engine.recover(&next.gate).await.expect("recovered");
    next.begun("a").await;
    assert!(next.engine.delete("a").await.expect("deleted"));
    assert_eq!(next.get("a").await, None);
}

#[tokio::test]
async fn nothing_is_accepted_when_the_end_has_begun() {
    let stage = Stage::new();
    assert!(stage.engine.drain(SOON).await);
    assert_eq!(stage.submit("a", "ok").await, Err(Rejection::Ending));
}

#[tokio::test]
async fn a_result_the_store_refuses_is_written_as_soon_as_it_can_be() {
    let stage = Stage::new();
    stage.submit("a", "block").await.expect("accepted");
    stage.begun("a").await;
    // Another process has the file and lets go only after the engine's first try has failed.
    let path = stage.folder.home().store();
    let other = rusqlite::Connection::open(path).expect("a connection");
    other.execute_batch("BEGIN IMMEDIATE").expect("the file");
    stage.script.release.add_permits(1);
    tokio::task::spawn_blocking(move || {
        std::thread::sleep(std::time::Duration::from_secs(6));
        other.execute_batch("ROLLBACK").expect("let go");
    })
    .await
    .expect("no panic");
    assert_eq!(stage.ended("a").await.status, TaskStatus::Completed);
    assert_eq!(stage.begins("a"), 1);
}

#[tokio::test]
async fn a_deletion_the_store_refuses_leaves_the_row_and_may_be_tried_again() {
    let stage = Stage::new();
    stage.submit("a", "block").await.expect("accepted");
    stage.begun("a").await;
    let path = stage.folder.home().store();
    let other = rusqlite::Connection::open(path).expect("a connection");
    other.execute_batch("BEGIN IMMEDIATE").expect("the file");
    stage.engine.delete("a").await.expect_err("refused");
    other.execute_batch("ROLLBACK").expect("let go");
    let left = stage.get("a").await.expect("a task");
    assert_eq!(left.status, TaskStatus::Running);
    assert!(stage.engine.delete("a").await.expect("deleted"));
    assert_eq!(stage.get("a").await, None);
}
