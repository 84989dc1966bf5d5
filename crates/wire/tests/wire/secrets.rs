//! Nothing that may be secret is ever in `Debug`.

use keelson_wire::{Submission, Task, TaskRequest, TaskResult};
use serde_json::{Value, json};

use super::shapes::decode;

#[test]
fn values_of_parameters_and_results_are_not_shown_and_their_names_are() {
    let apply = json!({"mode": "full", "overrides": {"tx_index.psql_conn": "hunter2"}});
    let patch = json!({"files": {"config.toml": {"tx-index": {"psql-conn": "hunter2"}}}});
    for (type_, params, name) in [
        ("config-apply", apply, "tx_index.psql_conn"),
        ("config-patch", patch, "config.toml"),
    ] {
        let task: Task = decode(Task::type_of(type_).expect("a type"), params.clone());
        let shown = format!("{task:?}");
        assert!(shown.contains(name), "{shown}");
        let body = json!({"type": type_, "params": params}).to_string();
        let result: Value = json!({
            "id": "x", "type": type_, "status": "completed", "params": params,
            "result": {"echo": "hunter2"}, "submittedAt": "2026-08-05T12:00:00Z",
        });
        let result: TaskResult = serde_json::from_value(result).expect("a task");
        let submission = Submission::read(body.as_bytes()).expect("a submission");
        let request = TaskRequest::new(None, &task);
        let all = format!("{shown} {result:?} {submission:?} {request:?}");
        assert!(!all.contains("hunter2"), "{all}");
        assert!(all.contains("(not shown)"), "{all}");
    }
}
