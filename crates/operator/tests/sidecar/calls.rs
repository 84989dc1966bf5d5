//! What is sent, and what is made of the answers.

use crate::server::{Reply, Server, answer};
use crate::stage::{NAMESPACE, NODE, OneToken, TOKEN, sidecars, whom, with_tokens};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use keelson_operator::sidecar::{Audience, CallError, Dial, InCluster, Transport, Unanswered};
use keelson_wire::params::SnapshotRestore;
use keelson_wire::{Task, TaskStatus};
use serde_json::{Value, json};
use std::sync::Arc;
use uuid::Uuid;

const ID: Uuid = Uuid::from_u128(0x1234);
const OVER: Transport = Transport::Plaintext;

fn submitted() -> Value {
    json!({ "id": ID.to_string() })
}

#[tokio::test]
async fn a_task_is_submitted_with_its_id_a_token_and_the_name_of_its_pod() {
    let server = Server::plaintext(|_| answer(201, submitted())).await;
    let tokens = Arc::new(OneToken::default());
    let sidecars = with_tokens(&[("pod", server.address)], tokens.clone());
    let task = Task::SnapshotRestore(SnapshotRestore { target_height: 7 });

    let done = sidecars
        .submit(&whom("pod"), &OVER, Audience::Node, ID, &task)
        .await;

    done.expect("a submission");
    let seen = &server.ledger().seen[0];
    assert_eq!(seen.line, "POST /v0/tasks");
    let host = "pacific-0.pacific.sei.svc.cluster.local:8443";
    assert_eq!(seen.header(HOST), Some(host));
    let bearer = format!("Bearer {TOKEN}");
    assert_eq!(seen.header(AUTHORIZATION), Some(bearer.as_str()));
    assert_eq!(seen.header(CONTENT_TYPE), Some("application/json"));
    let body: Value = serde_json::from_slice(&seen.body).expect("JSON");
    let params = json!({ "targetHeight": 7 });
    assert_eq!(
        body,
        json!({ "id": ID.to_string(), "type": "snapshot-restore", "params": params })
    );
    let asked = tokens.asked.lock().expect("a lock").clone();
    assert_eq!(
        asked,
        [(NAMESPACE.to_owned(), NODE.to_owned(), Audience::Node)]
    );
}

#[tokio::test]
async fn a_task_is_read_as_the_sidecar_remembers_it() {
    let server = Server::plaintext(|_| {
        let task = json!({
            "id": ID.to_string(), "type": "mark-ready", "status": "failed", "run": 2, "error": "no disk",
            "submittedAt": "2026-11-15T00:00:00Z",
        });
        answer(200, task)
    })
    .await;
    let sidecars = sidecars(&[("pod", server.address)]);

    let task = sidecars
        .task(&whom("pod"), &OVER, Audience::ApiServer, ID)
        .await;

    let task = task.expect("an answer").expect("a task");
    assert_eq!(task.status, TaskStatus::Failed);
    assert_eq!(task.error, "no disk");
    assert_eq!(server.ledger().seen[0].line, format!("GET /v0/tasks/{ID}"));
}

#[tokio::test]
async fn a_task_the_sidecar_does_not_know_is_no_failure() {
    let unknown = json!({ "error": "task not found" });
    let server = Server::plaintext(move |_| answer(404, &unknown)).await;
    let sidecars = sidecars(&[("pod", server.address)]);
    let pod = whom("pod");

    let task = sidecars.task(&pod, &OVER, Audience::Node, ID).await;
    assert_eq!(task, Ok(None));
    let off = sidecars.call_off(&pod, &OVER, Audience::Node, ID).await;
    assert_eq!(off, Ok(()));
    let line = format!("1 DELETE /v0/tasks/{ID}");
    assert_eq!(server.ledger().lines().last(), Some(&line));
}

#[tokio::test]
async fn a_task_is_called_off() {
    let server = Server::plaintext(|_| answer(204, "")).await;
    let sidecars = sidecars(&[("pod", server.address)]);
    let off = sidecars
        .call_off(&whom("pod"), &OVER, Audience::Node, ID)
        .await;
    assert_eq!(off, Ok(()));
}

#[tokio::test]
async fn the_nodes_id_is_told() {
    let server = Server::plaintext(|_| answer(200, json!({ "nodeId": "ab".repeat(20) }))).await;
    let sidecars = sidecars(&[("pod", server.address)]);
    let id = sidecars.node_id(&whom("pod"), &OVER, Audience::Node).await;
    assert_eq!(id, Ok("ab".repeat(20)));
    assert_eq!(server.ledger().seen[0].line, "GET /v0/node-id");
}

#[tokio::test]
async fn health_is_asked_without_a_token() {
    for (status, ready) in [(200, true), (503, false)] {
        let server = Server::plaintext(move |_| answer(status, "")).await;
        let tokens = Arc::new(OneToken::default());
        let sidecars = with_tokens(&[("pod", server.address)], tokens.clone());

        let health = sidecars.health(&whom("pod"), &OVER).await;

        assert_eq!(health, Ok(ready));
        let seen = &server.ledger().seen[0];
        assert_eq!(seen.line, "GET /v0/healthz");
        assert_eq!(seen.header(AUTHORIZATION), None);
        assert!(tokens.asked.lock().expect("a lock").is_empty());
    }
}

#[tokio::test]
async fn health_is_not_guessed_from_another_answer() {
    for (status, expected) in [
        (401, CallError::Unauthorized),
        (500, failed(500, "it gave no reason")),
        (
            204,
            CallError::Garbled("0 bytes with status 204 are not a readiness".to_owned()),
        ),
    ] {
        let server = Server::plaintext(move |_| answer(status, "")).await;
        let sidecars = sidecars(&[("pod", server.address)]);
        let health = sidecars.health(&whom("pod"), &OVER).await;
        assert_eq!(health, Err(Unanswered(expected)));
    }
}

fn refused(status: u16, error: &str) -> CallError {
    let error = error.to_owned();
    CallError::Refused { status, error }
}

fn failed(status: u16, error: &str) -> CallError {
    let error = error.to_owned();
    CallError::Failed { status, error }
}

#[tokio::test]
async fn every_status_says_whether_trying_again_can_help() {
    let forbidden = "Forbidden (user=x, verb=create)";
    let table = [
        (400, refused(400, "no"), false),
        (404, refused(404, "no"), false),
        (409, refused(409, "no"), false),
        (301, refused(301, "no"), false),
        (403, CallError::Forbidden(forbidden.to_owned()), false),
        (401, CallError::Unauthorized, true),
        (408, failed(408, "no"), true),
        (429, failed(429, "no"), true),
        (500, failed(500, "no"), true),
        (503, failed(503, "no"), true),
    ];
    for (status, expected, passes) in table {
        let server = Server::plaintext(move |_| match status {
            // The proxy's own answers are plain text.
            403 => answer(403, format!("{forbidden}\n")),
            status => answer(status, json!({ "error": "no" })),
        })
        .await;
        let sidecars = sidecars(&[("pod", server.address)]);
        let task = Task::MarkReady;

        let done = sidecars
            .submit(&whom("pod"), &OVER, Audience::Node, ID, &task)
            .await;

        let error = done.expect_err("a failure");
        assert_eq!(error, expected, "{status}");
        assert_eq!(error.passes_by_itself(), passes, "{status}");
        let sentence = error.to_string();
        assert!(!sentence.contains('\n'), "{sentence}");
    }
}

#[tokio::test]
async fn a_token_that_is_not_accepted_is_dropped_and_no_other_answer_drops_one() {
    for (status, dropped) in [(401, 1), (403, 0), (500, 0), (200, 0)] {
        let server = Server::plaintext(move |_| answer(status, "{}")).await;
        let tokens = Arc::new(OneToken::default());
        let sidecars = with_tokens(&[("pod", server.address)], tokens.clone());
        let asked = sidecars.task(&whom("pod"), &OVER, Audience::Node, ID).await;
        asked.expect_err("no task");
        let seen = tokens.dropped.lock().expect("a lock").len();
        assert_eq!(seen, dropped, "{status}");
    }
}

#[tokio::test]
async fn what_the_other_side_says_is_repeated_in_part_and_on_one_line() {
    let long = format!("a\nb\u{7}{}", "c".repeat(10_000));
    let server = Server::plaintext(move |_| answer(500, json!({ "error": long }))).await;
    let sidecars = sidecars(&[("pod", server.address)]);
    let asked = sidecars.task(&whom("pod"), &OVER, Audience::Node, ID).await;
    let error = asked.expect_err("a failure");
    let expected = format!("a b {}", "c".repeat(296));
    assert_eq!(error, failed(500, &expected));
}

#[tokio::test]
async fn an_answer_that_makes_no_sense_is_not_believed_nor_repeated() {
    let other = json!({ "id": Uuid::from_u128(0x99).to_string() });
    let nothing = json!({ "id": "" });
    for body in ["a page", &other.to_string(), &nothing.to_string()] {
        let body = body.to_owned();
        let server = Server::plaintext(move |_| answer(201, &body)).await;
        let sidecars = sidecars(&[("pod", server.address)]);
        let done = sidecars
            .submit(&whom("pod"), &OVER, Audience::Node, ID, &Task::MarkReady)
            .await;
        let error = done.expect_err("a failure");
        assert!(matches!(error, CallError::Garbled(_)), "{error:?}");
        assert!(!error.to_string().contains("a page"), "{error}");
    }
}

#[tokio::test]
async fn an_answer_larger_than_a_mebibyte_is_not_read() {
    let server = Server::plaintext(|_| answer(200, " ".repeat((1 << 20) + 1))).await;
    let sidecars = sidecars(&[("pod", server.address)]);
    let asked = sidecars.task(&whom("pod"), &OVER, Audience::Node, ID).await;
    let error = asked.expect_err("a failure");
    let expected = CallError::Garbled("it is larger than 1048576 bytes".to_owned());
    assert_eq!(error, expected);
}

#[tokio::test]
async fn a_pod_without_an_address_is_not_called_and_no_token_is_asked_for_it() {
    let tokens = Arc::new(OneToken::default());
    let sidecars = with_tokens(&[], tokens.clone());
    let asked = sidecars.task(&whom("pod"), &OVER, Audience::Node, ID).await;
    let error = asked.expect_err("a failure");
    let why = "the pod of sei/pacific has no address yet".to_owned();
    assert_eq!(error, CallError::Unreachable(why));
    assert!(tokens.asked.lock().expect("a lock").is_empty());
}

#[tokio::test]
async fn a_call_nobody_answers_is_unreachable() {
    let server = Server::plaintext(|_| Reply::Cut).await;
    let sidecars = sidecars(&[("pod", server.address)]);
    let asked = sidecars.task(&whom("pod"), &OVER, Audience::Node, ID).await;
    let error = asked.expect_err("a failure");
    assert!(matches!(error, CallError::Unreachable(_)), "{error:?}");
    assert_eq!(
        server.ledger().seen.len(),
        1,
        "a new connection is tried once"
    );
}

#[test]
fn in_the_cluster_a_pod_is_at_its_own_address() {
    let mut pod = whom("pod");
    assert_eq!(InCluster.address(&pod), None);
    pod.ip = Some([10, 0, 0, 7].into());
    assert_eq!(InCluster.address(&pod), Some(([10, 0, 0, 7], 8443).into()));
}
