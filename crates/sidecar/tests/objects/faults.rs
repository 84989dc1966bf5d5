//! Every class of fault, its sentence, and what is tried again.

use super::gateway::{ACCESS_KEY, IMPATIENT, Kind, SECRET_KEY, Store};
use keelson_sidecar::objects::{self, Fault, Objects, Patience};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// A server that gives these answers, one after the other, and the last one for ever; and how often
/// it was asked.
fn scripted(answers: &'static [(u16, &'static str)]) -> (u16, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            if !stream.read(&mut request).is_ok_and(|read| read > 0) {
                continue;
            }
            let turn = count.fetch_add(1, Ordering::SeqCst);
            let (status, body) = answers[turn.min(answers.len() - 1)];
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nETag: \"1\"\r\n\
                 Last-Modified: Sun, 15 Nov 2026 00:00:00 GMT\r\nConnection: close\r\n\r\n{body}"
            );
        }
    });
    (port, asked)
}

fn at(port: u16) -> Objects {
    let mut store = Store::new(Kind::PathStyle);
    store.port = port;
    store.open()
}

const SLOW: (u16, &str) = (
    503,
    "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>",
);

async fn fault_of(answer: &'static [(u16, &'static str)]) -> (Fault, usize) {
    let (port, asked) = scripted(answer);
    let fault = at(port).get("key", 100).await.expect_err("a fault");
    (fault, asked.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_server_that_is_busy_is_asked_again_and_then_answers() {
    let (port, asked) = scripted(&[SLOW, SLOW, (200, "here")]);
    assert_eq!(at(port).get("key", 100).await.expect("it"), "here");
    assert_eq!(asked.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn a_server_that_stays_busy_is_given_up_with_a_sentence() {
    let (fault, asked) = fault_of(&[SLOW]).await;
    assert_eq!(asked, 4);
    assert_eq!(fault.kind, objects::Kind::Busy);
    let trouble = fault.trouble("snapshot-restore", "download");
    assert!(trouble.retryable);
    let text = trouble.to_string();
    assert!(
        text.starts_with("snapshot-restore: S3: get bucket-"),
        "{text}"
    );
    assert!(
        text.ends_with(
            "/key: the server is too busy: SlowDown: Please reduce your request rate. \
             [hint: the server is overloaded; submit the task again later]"
        ),
        "{text}"
    );
}

#[tokio::test]
async fn what_will_not_be_otherwise_is_asked_once() {
    type Case = (&'static [(u16, &'static str)], objects::Kind);
    let cases: [Case; 6] = [
        (
            &[(404, "<Code>NoSuchBucket</Code><Message>m</Message>")],
            objects::Kind::NoSuchBucket,
        ),
        (&[(404, "<Code>NoSuchKey</Code>")], objects::Kind::NoSuchKey),
        (
            &[(403, "<Code>AccessDenied</Code>")],
            objects::Kind::AccessDenied,
        ),
        (&[(403, "")], objects::Kind::AccessDenied),
        (
            &[(
                400,
                "<Code>KMS.DisabledException</Code><Message>off</Message>",
            )],
            objects::Kind::Api("KMS.DisabledException".into()),
        ),
        (&[(301, "")], objects::Kind::Unexpected),
    ];
    for (answer, kind) in cases {
        let (fault, asked) = fault_of(answer).await;
        assert_eq!((&fault.kind, asked), (&kind, 1), "{fault}");
        assert!(!fault.retryable(), "{fault}");
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_fault_of_the_network() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let fault = at(port).list("chain").await.expect_err("nobody");
    assert_eq!(fault.kind, objects::Kind::Network, "{fault}");
    assert!(fault.retryable());
    assert!(fault.to_string().contains("Connection refused"), "{fault}");
}

#[tokio::test]
async fn wrong_credentials_are_denied_and_not_told() {
    let store = Store::new(Kind::PathStyle);
    let mut variables = store.variables();
    variables.retain(|(name, _)| name != "AWS_SECRET_ACCESS_KEY");
    variables.push(("AWS_SECRET_ACCESS_KEY".into(), "wrong-and-secret".into()));
    let objects = Objects::open_with(&store.bucket(), &store.reach(), variables);
    let objects = objects.expect("a bucket").with_patience(IMPATIENT);
    let told = format!("{objects:?}");
    for fault in [
        objects.list("chain").await.expect_err("denied"),
        objects.get("key", 1).await.expect_err("denied"),
        objects
            .put("key", "x", "text/plain")
            .await
            .expect_err("denied"),
        objects
            .write("key", "text/plain", 1)
            .await
            .expect_err("denied"),
    ] {
        assert_eq!(fault.kind, objects::Kind::AccessDenied, "{fault}");
        for text in [&told, &fault.to_string(), &format!("{fault:?}")] {
            for secret in [ACCESS_KEY, SECRET_KEY, "wrong-and-secret", "AWS4-HMAC"] {
                assert!(!text.contains(secret), "{text}");
            }
        }
    }
}

#[tokio::test]
async fn no_credentials_at_all_are_named() {
    let store = Store::new(Kind::PathStyle);
    // Where a machine of AWS would give credentials, nobody listens.
    let metadata = ("AWS_METADATA_ENDPOINT".into(), "http://127.0.0.1:1".into());
    let objects = Objects::open_with(&store.bucket(), &store.reach(), [metadata]);
    let objects = objects.expect("a bucket").with_patience(IMPATIENT);
    let fault = objects.list("chain").await.expect_err("nobody");
    assert_eq!(fault.kind, objects::Kind::NoCredentials, "{fault}");
}

#[test]
fn what_cannot_be_a_bucket_or_an_endpoint_is_refused_with_a_sentence() {
    let store = Store::new(Kind::PathStyle);
    let open = |bucket: &str, endpoint: &str| {
        let (mut name, mut reach) = (store.bucket(), store.reach());
        name.name = bucket.into();
        reach.endpoint = Some(endpoint.into());
        let fault = Objects::open_with(&name, &reach, []).expect_err("a refusal");
        fault.to_string()
    };
    assert!(open("file://folder", "").contains("a folder is named as file:///folder"));
    assert!(open("a/b", "").contains("a bucket is named by its name"));
    assert!(open("b", "127.0.0.1:9").contains("the endpoint is named as https://host"));
    let told = open("b", "http://me:hidden@host");
    assert!(told.contains("must not hold a name and password"), "{told}");
    assert!(!told.contains("hidden"), "{told}");
}

#[test]
fn pauses_grow_and_end() {
    let patience = Patience {
        first: Duration::from_secs(1),
        longest: Duration::from_secs(5),
        retries: 5,
    };
    let pauses: Vec<Option<u64>> = (0..6)
        .map(|failed| patience.pause(failed).map(|it| it.as_secs()))
        .collect();
    assert_eq!(pauses, [Some(1), Some(2), Some(4), Some(5), Some(5), None]);
}
