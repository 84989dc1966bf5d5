//! A sidecar that hangs costs its own callers their deadline, and nobody else anything.

use crate::server::{Reply, Server, answer};
use crate::stage::{authority, sidecars, tls, whom};
use futures::future::join_all;
use keelson_operator::sidecar::{Audience, CallError, Transport};
use keelson_wire::Task;
use std::net::TcpListener;
use std::time::{Duration, Instant};
use uuid::Uuid;

const ID: Uuid = Uuid::from_u128(0x1234);
const OVER: Transport = Transport::Plaintext;

fn late(what: &'static str, seconds: u64) -> CallError {
    let after = Duration::from_secs(seconds);
    CallError::Deadline { what, after }
}

/// Not before its time, and not long after: a busy machine may take a moment more.
fn took(since: Instant, seconds: u64) {
    let elapsed = since.elapsed();
    let due = Duration::from_secs(seconds);
    assert!(elapsed >= due, "{elapsed:?}");
    assert!(elapsed < due + Duration::from_secs(5), "{elapsed:?}");
}

#[tokio::test]
async fn every_call_has_its_deadline_and_says_which_it_was() {
    let server = Server::plaintext(|_| Reply::Hang).await;
    let sidecars = sidecars(&[("pod", server.address)]);
    let pod = whom("pod");
    let begun = Instant::now();
    let health = async {
        let error = sidecars.health(&pod, &OVER).await.expect_err("a deadline");
        took(begun, 2);
        assert_eq!(error.0, late("asking the sidecar whether it is ready", 2));
    };
    let task = async {
        let asked = sidecars.task(&pod, &OVER, Audience::Node, ID).await;
        took(begun, 5);
        let error = asked.expect_err("a deadline");
        assert_eq!(error, late("reading a task from the sidecar", 5));
    };
    let off = async {
        let done = sidecars.call_off(&pod, &OVER, Audience::Node, ID).await;
        took(begun, 5);
        assert_eq!(done, Err(late("calling off a task of the sidecar", 5)));
    };
    let submit = async {
        let task = Task::MarkReady;
        let done = sidecars
            .submit(&pod, &OVER, Audience::Node, ID, &task)
            .await;
        took(begun, 10);
        assert_eq!(done, Err(late("submitting a task to the sidecar", 10)));
    };
    tokio::join!(health, task, off, submit);
    server.saw("the end of each", |it| it.closed == 4).await;
    assert_eq!(sidecars.kept(), 0);
    let sentence = late("reading a task from the sidecar", 5).to_string();
    assert_eq!(
        sentence,
        "reading a task from the sidecar was not over after 5s"
    );
}

#[tokio::test]
async fn a_handshake_that_is_not_answered_ends_with_the_deadline_of_connecting() {
    // The system accepts, and nobody reads.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let sidecars = sidecars(&[("pod", silent.local_addr().expect("an address"))]);
    let over = tls(&authority("any"));
    let begun = Instant::now();
    let asked = sidecars.task(&whom("pod"), &over, Audience::Node, ID).await;
    took(begun, 2);
    assert_eq!(asked, Err(late("connecting to the sidecar", 2)));
}

#[tokio::test]
async fn one_that_hangs_beside_fifty_delays_none() {
    let hanging = Server::plaintext(|_| Reply::Hang).await;
    let mut healthy = Vec::new();
    for _ in 0..50 {
        healthy.push(Server::plaintext(|_| answer(404, "")).await);
    }
    let names: Vec<_> = (0..50).map(|it| format!("pod-{it}")).collect();
    let mut pods: Vec<_> = names.iter().map(String::as_str).collect();
    let mut at: Vec<_> = healthy.iter().map(|it| it.address).collect();
    pods.push("hanging");
    at.push(hanging.address);
    let places: Vec<_> = pods.iter().copied().zip(at).collect();
    let sidecars = sidecars(&places);

    let stuck: Vec<_> = (0..20)
        .map(|_| {
            let sidecars = sidecars.clone();
            tokio::spawn(async move {
                let task = Task::MarkReady;
                let pod = whom("hanging");
                sidecars
                    .submit(&pod, &OVER, Audience::Node, ID, &task)
                    .await
            })
        })
        .collect();
    hanging
        .saw("every call that will hang", |it| it.seen.len() == 20)
        .await;
    for _ in 0..2 {
        let calls = names.iter().map(|name| {
            let sidecars = &sidecars;
            async move { sidecars.task(&whom(name), &OVER, Audience::Node, ID).await }
        });
        let answers = join_all(calls).await;
        assert!(answers.iter().all(|it| *it == Ok(None)), "{answers:?}");
    }
    assert!(stuck.iter().all(|it| !it.is_finished()), "they still hang");
    assert!(healthy.iter().all(|it| it.ledger().opened == 1));
    for one in stuck {
        one.abort();
    }
    hanging
        .saw("that nobody waits any more", |it| it.closed == 20)
        .await;
}
