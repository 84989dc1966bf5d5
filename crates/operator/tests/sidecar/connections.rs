//! Which connections are kept, for whom, how long, and what happens when one is dead.

use crate::server::{Reply, Server, answer};
use crate::stage::{NAMES, authority, sidecars, tls, whom};
use keelson_operator::sidecar::{Audience, CallError, Transport};
use keelson_testbed::until;
use keelson_wire::Task;
use serde_json::json;
use std::time::Duration;
use uuid::Uuid;

const ID: Uuid = Uuid::from_u128(0x1234);
const OVER: Transport = Transport::Plaintext;
const SOON: Duration = Duration::from_secs(20);

#[tokio::test]
async fn calls_to_one_pod_share_a_connection_and_another_pod_has_its_own() {
    let server =
        Server::plaintext(|_| answer(200, json!({ "id": ID.to_string(), "nodeId": "" }))).await;
    let sidecars = sidecars(&[("one", server.address), ("two", server.address)]);
    let task = Task::MarkReady;
    for pod in ["one", "two"].map(whom) {
        sidecars.health(&pod, &OVER).await.expect("an answer");
        let submitted = sidecars.submit(&pod, &OVER, Audience::Node, ID, &task);
        submitted.await.expect("a submission");
        let id = sidecars.node_id(&pod, &OVER, Audience::Node);
        id.await.expect("an id");
    }
    let connections: Vec<_> = server
        .ledger()
        .seen
        .iter()
        .map(|it| it.connection)
        .collect();
    assert_eq!(connections, [1, 1, 1, 2, 2, 2]);
    assert_eq!(sidecars.kept(), 2);
}

#[tokio::test]
async fn calls_at_the_same_time_wait_for_no_connection_and_one_is_kept() {
    let server = Server::plaintext(|_| answer(200, "")).await;
    let sidecars = sidecars(&[("pod", server.address)]);
    let pod = whom("pod");
    let calls = (0..8).map(|_| sidecars.health(&pod, &OVER));
    let answers = futures::future::join_all(calls).await;
    assert!(answers.into_iter().all(|it| it == Ok(true)));
    assert_eq!(sidecars.kept(), 1);
}

#[tokio::test]
async fn a_pod_that_is_gone_is_let_go_of() {
    let server = Server::plaintext(|_| answer(200, "")).await;
    let sidecars = sidecars(&[("one", server.address), ("two", server.address)]);
    for pod in ["one", "two"].map(whom) {
        sidecars.health(&pod, &OVER).await.expect("an answer");
    }
    sidecars.forget("one");
    server.saw("its end", |it| it.closed == 1).await;
    assert_eq!(sidecars.kept(), 1);
}

#[tokio::test]
async fn a_connection_that_waited_for_90_seconds_is_not_used_again() {
    let server = Server::plaintext(|_| answer(200, "")).await;
    let sidecars = sidecars(&[("pod", server.address)]);
    let pod = whom("pod");
    for (wait, connection) in [(0, 1), (89, 1), (90, 2)] {
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(wait)).await;
        tokio::time::resume();
        sidecars.health(&pod, &OVER).await.expect("an answer");
        let seen = server.ledger().seen;
        let last = seen.last().map(|it| it.connection);
        assert_eq!(last, Some(connection), "after {wait} s");
    }
}

#[tokio::test]
async fn a_connection_the_other_side_has_ended_is_replaced() {
    let server = Server::plaintext(|_| answer(201, json!({ "id": ID.to_string() }))).await;
    let sidecars = sidecars(&[("pod", server.address)]);
    let pod = whom("pod");
    for _ in 0..2 {
        let submitted = sidecars.submit(&pod, &OVER, Audience::Node, ID, &Task::MarkReady);
        submitted.await.expect("a submission");
        server.hang_up();
        let noticed = until("the end of the connection", SOON, async || {
            match sidecars.kept() {
                0 => Ok(()),
                kept => Err(format!("{kept} wait")),
            }
        });
        noticed.await.expect("that it is noticed");
    }
    assert_eq!(
        server.ledger().lines(),
        ["1 POST /v0/tasks", "2 POST /v0/tasks"]
    );
}

/// The second request on a connection ends it without an answer.
async fn forgetful() -> Server {
    let seen = std::sync::Mutex::new(Vec::new());
    Server::plaintext(move |request| {
        let mut seen = seen.lock().expect("a lock");
        let again = seen.contains(&request.connection);
        seen.push(request.connection);
        match again {
            true => Reply::Cut,
            false => answer(200, json!({ "id": ID.to_string(), "nodeId": "n" })),
        }
    })
    .await
}

#[tokio::test]
async fn a_question_that_a_kept_connection_swallowed_is_asked_once_more() {
    let server = forgetful().await;
    let sidecars = sidecars(&[("pod", server.address)]);
    let pod = whom("pod");
    sidecars.health(&pod, &OVER).await.expect("an answer");
    let id = sidecars.node_id(&pod, &OVER, Audience::Node).await;
    assert_eq!(id, Ok("n".to_owned()));
    let lines = [
        "1 GET /v0/healthz",
        "1 GET /v0/node-id",
        "2 GET /v0/node-id",
    ];
    assert_eq!(server.ledger().lines(), lines);
}

#[tokio::test]
async fn a_change_that_may_have_arrived_is_not_sent_twice() {
    let server = forgetful().await;
    let sidecars = sidecars(&[("pod", server.address)]);
    let pod = whom("pod");
    for submits in [true, false] {
        sidecars.health(&pod, &OVER).await.expect("an answer");
        let done = match submits {
            true => {
                let task = Task::MarkReady;
                sidecars
                    .submit(&pod, &OVER, Audience::Node, ID, &task)
                    .await
            }
            false => sidecars.call_off(&pod, &OVER, Audience::Node, ID).await,
        };
        assert!(matches!(done, Err(CallError::Unreachable(_))), "{done:?}");
    }
    let delete = format!("2 DELETE /v0/tasks/{ID}");
    let lines = [
        "1 GET /v0/healthz",
        "1 POST /v0/tasks",
        "2 GET /v0/healthz",
        &delete,
    ];
    assert_eq!(server.ledger().lines(), lines);
}

#[tokio::test]
async fn a_kept_connection_is_judged_by_the_pins_of_each_call() {
    let (ours, theirs) = (authority("ours"), authority("theirs"));
    let identity = ours.server(&NAMES).expect("a certificate");
    let server = Server::tls(&identity, |_| answer(200, "")).await;
    let sidecars = sidecars(&[("pod", server.address)]);
    let pod = whom("pod");

    for _ in 0..2 {
        let health = sidecars.health(&pod, &tls(&ours)).await;
        assert_eq!(health, Ok(true));
    }
    assert_eq!(server.ledger().opened, 1);
    let error = sidecars.health(&pod, &tls(&theirs)).await;
    let error = error.expect_err("another authority").0;

    assert!(matches!(error, CallError::Untrusted(_)), "{error:?}");
    assert_eq!(server.ledger().seen.len(), 2, "nothing more was sent");
}

#[tokio::test]
async fn plaintext_and_tls_share_no_connection() {
    let ours = authority("ours");
    let identity = ours.server(&NAMES).expect("a certificate");
    let secure = Server::tls(&identity, |_| answer(200, "")).await;
    let plain = Server::plaintext(|_| answer(200, "")).await;
    let pod = whom("pod");
    let one = sidecars(&[("pod", secure.address)]);
    one.health(&pod, &tls(&ours)).await.expect("an answer");
    // The connection that waits is TLS: a plaintext call does not find it.
    one.health(&pod, &OVER)
        .await
        .expect_err("no plaintext there");
    one.health(&pod, &tls(&ours)).await.expect("an answer");
    assert_eq!(
        secure.ledger().lines(),
        ["1 GET /v0/healthz", "1 GET /v0/healthz"]
    );
    let two = sidecars(&[("pod", plain.address)]);
    two.health(&pod, &OVER).await.expect("an answer");
    let error = two.health(&pod, &tls(&ours)).await;
    let error = error.expect_err("no TLS there").0;
    let why = "it does not speak TLS".to_owned();
    assert_eq!(error, CallError::Untrusted(why));
    assert_eq!(plain.ledger().seen.len(), 1);
}
