//! Answers, field by field.

use keelson_wire::{
    ErrorResponse, Failure, NodeIdResponse, NoopReason, Object, Readiness, ResetDataResult,
    SnapshotUploadResult, StatusResponse, TaskResult, TaskStatus, TaskSubmitResponse,
    UploadOutcome,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn both_ways<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: T, wire: Value) {
    assert_eq!(serde_json::to_value(&value).expect("JSON"), wire);
    assert_eq!(serde_json::from_value::<T>(wire).expect("an answer"), value);
}

fn running() -> TaskResult {
    TaskResult {
        id: "0b7a8b0e-5e6f-5d6a-9d55-0f5d6d4f9a01".into(),
        type_: "snapshot-restore".into(),
        status: TaskStatus::Running,
        run: 1,
        params: Object::new(),
        result: None,
        error: String::new(),
        submitted_by: None,
        submitted_at: "2026-08-05T12:00:00.123456789Z".parse().expect("a time"),
        completed_at: None,
    }
}

#[test]
fn small_answers_are_in_the_shape_of_the_original() {
    both_ways(
        ErrorResponse {
            error: "task not found".into(),
        },
        json!({"error": "task not found"}),
    );
    both_ways(
        StatusResponse {
            status: Readiness::Initializing,
        },
        json!({"status": "Initializing"}),
    );
    both_ways(
        StatusResponse {
            status: Readiness::Ready,
        },
        json!({"status": "Ready"}),
    );
    both_ways(
        NodeIdResponse {
            node_id: "ab".repeat(20),
        },
        json!({"nodeId": "ab".repeat(20)}),
    );
    both_ways(TaskSubmitResponse { id: "x".into() }, json!({"id": "x"}));
    both_ways(
        ResetDataResult { wiped_bytes: -1 },
        json!({"wipedBytes": -1}),
    );
    both_ways(
        Failure {
            retryable: true,
            operation: "download".into(),
        },
        json!({"retryable": true, "operation": "download"}),
    );
    let noop = |reason| SnapshotUploadResult {
        outcome: UploadOutcome::Noop,
        noop_reason: Some(reason),
        height: None,
        key: None,
    };
    both_ways(
        noop(NoopReason::FewerThanTwoSnapshots),
        json!({"outcome": "noop", "noopReason": "fewer-than-2-snapshots"}),
    );
    both_ways(
        noop(NoopReason::AlreadyUploaded),
        json!({"outcome": "noop", "noopReason": "already-uploaded"}),
    );
    both_ways(
        SnapshotUploadResult {
            outcome: UploadOutcome::Uploaded,
            noop_reason: None,
            height: Some(2000),
            key: Some("arctic-1/state-sync/2000.tar.gz".into()),
        },
        json!({"outcome": "uploaded", "height": 2000, "key": "arctic-1/state-sync/2000.tar.gz"}),
    );
    both_ways(
        SnapshotUploadResult {
            outcome: UploadOutcome::Error,
            noop_reason: None,
            height: None,
            key: None,
        },
        json!({"outcome": "error"}),
    );
}

#[test]
fn a_running_task_has_only_what_is_known_of_it() {
    both_ways(
        running(),
        json!({
            "id": "0b7a8b0e-5e6f-5d6a-9d55-0f5d6d4f9a01", "type": "snapshot-restore",
            "status": "running", "run": 1, "submittedAt": "2026-08-05T12:00:00.123456789Z",
        }),
    );
}

#[test]
fn a_failed_task_may_have_a_result_and_every_field_has_its_name() {
    let failed = TaskResult {
        status: TaskStatus::Failed,
        run: 3,
        params: super::shapes::object(json!({"targetHeight": 7})),
        result: Some(json!({"retryable": true, "operation": "list"})),
        error: "snapshot-restore: S3: slow down".into(),
        submitted_by: Some("system:serviceaccount:sei:keelson-sidecar-client".into()),
        completed_at: Some("2026-08-05T12:00:01Z".parse().expect("a time")),
        ..running()
    };
    both_ways(
        failed,
        json!({
            "id": "0b7a8b0e-5e6f-5d6a-9d55-0f5d6d4f9a01", "type": "snapshot-restore",
            "status": "failed", "run": 3, "params": {"targetHeight": 7},
            "result": {"retryable": true, "operation": "list"},
            "error": "snapshot-restore: S3: slow down",
            "submittedBy": "system:serviceaccount:sei:keelson-sidecar-client",
            "submittedAt": "2026-08-05T12:00:00.123456789Z", "completedAt": "2026-08-05T12:00:01Z",
        }),
    );
}

#[test]
fn answers_of_others_are_understood() {
    let older = json!({"id": "x", "type": "from-the-future", "status": "completed",
        "params": null, "error": null, "result": null, "nextRunAt": "ignored",
        "submittedAt": "2026-08-05T14:00:00.5+02:00", "completedAt": null});
    let task: TaskResult = serde_json::from_value(older).expect("a task");
    assert_eq!(task.run, 1, "an older sidecar counts no runs");
    assert_eq!(task.type_, "from-the-future");
    assert_eq!(task.submitted_at.to_string(), "2026-08-05T12:00:00.5Z");
    assert_eq!((task.result, task.completed_at), (None, None));
    for status in ["cancelled", "pending", "Running"] {
        assert!(
            serde_json::from_value::<TaskStatus>(json!(status)).is_err(),
            "{status}"
        );
    }
}

#[test]
fn the_words_for_a_state_are_the_same_everywhere() {
    for (status, terminal) in [
        (TaskStatus::Running, false),
        (TaskStatus::Completed, true),
        (TaskStatus::Failed, true),
    ] {
        assert_eq!(serde_json::to_value(status).expect("JSON"), status.as_str());
        assert_eq!(status.is_terminal(), terminal);
    }
}
