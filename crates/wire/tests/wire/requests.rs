//! Submitting: what is accepted, and the text of every refusal.

use keelson_api::task::TaskType;
use keelson_wire::params::SnapshotRestore;
use keelson_wire::{Refusal, Submission, Task, TaskRequest, TaskSubmitResponse};
use serde_json::json;

const ID: &str = "0b7a8b0e-5e6f-5d6a-9d55-0f5d6d4f9a01";

fn read(body: &str) -> Result<Submission, Refusal> {
    Submission::read(body.as_bytes())
}

#[test]
fn what_is_sent_is_what_is_read() {
    let task = Task::SnapshotRestore(SnapshotRestore { target_height: 7 });
    let request = TaskRequest::new(Some(ID.into()), &task);
    let sent = serde_json::to_string(&request).expect("JSON");
    assert_eq!(
        sent,
        format!(r#"{{"id":"{ID}","type":"snapshot-restore","params":{{"targetHeight":7}}}}"#)
    );
    let submission = read(&sent).expect("a submission");
    assert_eq!(submission.id.as_deref(), Some(ID));
    assert_eq!(submission.type_, TaskType::SnapshotRestore);
    assert_eq!(json!(submission.params), json!({"targetHeight": 7}));
}

#[test]
fn absent_null_and_empty_are_the_same_and_only_the_first_value_counts() {
    for body in [
        r#"{"type":"mark-ready"}"#,
        r#"{"id":"","type":"mark-ready","params":null}"#,
        r#"{"id":null,"type":"mark-ready","params":{},"future":1}"#,
        r#"{"type":"mark-ready"} and whatever follows"#,
        r#" {"type":"stop-seid","type":"mark-ready"}"#,
    ] {
        let submission = read(body).expect(body);
        assert_eq!(
            (submission.id, submission.type_),
            (None, TaskType::MarkReady),
            "{body}"
        );
        assert!(submission.params.is_empty());
    }
}

#[test]
fn parameters_are_not_looked_at_when_a_task_is_submitted() {
    let submission = read(r#"{"type":"snapshot-restore","params":{"targetHeight":"x"}}"#);
    let submission = submission.expect("accepted; the task fails later");
    let read = Task::decode(submission.type_, &submission.params).expect("a sidecar's task");
    assert!(read.is_err());
}

#[test]
fn each_refusal_has_the_text_of_the_original() {
    for (body, text) in [
        ("", "invalid request body"),
        ("{", "invalid request body"),
        ("[]", "invalid request body"),
        ("5", "invalid request body"),
        (r#"{"type":5}"#, "invalid request body"),
        (r#"{"id":5,"type":"mark-ready"}"#, "invalid request body"),
        (
            r#"{"type":"mark-ready","params":[]}"#,
            "invalid request body",
        ),
        (
            r#"{"type":"mark-ready","params":"x"}"#,
            "invalid request body",
        ),
        ("null", "type is required"),
        ("{}", "type is required"),
        (r#"{"type":""}"#, "type is required"),
        (r#"{"type":null,"id":"x"}"#, "type is required"),
        (r#"{"type":"frobnicate"}"#, "unknown task type: frobnicate"),
        (r#"{"type":"gov-vote"}"#, "unknown task type: gov-vote"),
        (
            r#"{"type":"ensure-data-pvc"}"#,
            "unknown task type: ensure-data-pvc",
        ),
        (
            r#"{"type":"mark-ready","id":"nope"}"#,
            r#"task ID must be a valid UUID: "nope""#,
        ),
    ] {
        let refusal = read(body).expect_err(body);
        assert_eq!(refusal.to_string(), text, "{body}");
    }
}

#[test]
fn every_form_of_a_uuid_is_an_id_and_stays_as_it_was_written() {
    for id in [
        ID.to_owned(),
        ID.to_uppercase(),
        ID.replace('-', ""),
        format!("{{{ID}}}"),
        format!("urn:uuid:{ID}"),
    ] {
        let submission = read(&json!({"id": id, "type": "mark-ready"}).to_string());
        assert_eq!(submission.expect("a submission").id, Some(id));
    }
}

#[test]
fn an_answer_must_name_a_task() {
    let answer = |id: &str| TaskSubmitResponse { id: id.to_owned() };
    assert_eq!(answer(ID).task_id(), Ok(ID));
    for id in ["", "x", "00000000-0000-0000-0000-000000000000"] {
        let error = answer(id).task_id().expect_err(id).to_string();
        assert!(error.contains("names no task"), "{error}");
    }
}
