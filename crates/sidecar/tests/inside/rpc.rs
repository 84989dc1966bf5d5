//! What a node's answers mean. Scripted servers answer what a sound node does not.

use keelson_sidecar::fetch;
use keelson_sidecar::rpc::{Problem, Rpc, Status, Trouble, block_hash, status};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

const FLAT: &str = r#"{"node_info":{"id":"ab","network":"chain"},
    "sync_info":{"latest_block_height":"12","catching_up":true}}"#;

/// A server that answers one request with these bytes and closes; where it is, and what it was asked.
async fn server(answer: Vec<u8>) -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    let asked = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a client");
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            asked.push(stream.read_u8().await.expect("a request"));
        }
        // A client that has enough goes away.
        let _ = stream.write_all(&answer).await;
        String::from_utf8(asked).expect("text")
    });
    (base, asked)
}

fn http(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

async fn answered(answer: Vec<u8>) -> Result<Status, Trouble> {
    let (base, _) = server(answer).await;
    Rpc::new(&base, Duration::from_secs(10)).status().await
}

#[test]
fn an_answer_is_understood_with_and_without_an_envelope() {
    let wanted = Status {
        node_id: "ab".into(),
        network: "chain".into(),
        height: 12,
        catching_up: true,
    };
    assert_eq!(status(FLAT.as_bytes()).expect("a status"), wanted);
    let wrapped = format!(r#"{{"jsonrpc":"2.0","id":-1,"result":{FLAT}}}"#);
    assert_eq!(status(wrapped.as_bytes()).expect("a status"), wanted);
}

#[test]
fn a_bare_answer_that_has_a_result_of_its_own_is_not_unwrapped() {
    let other = FLAT.replace("12", "99");
    for marks in ["", r#""jsonrpc":"1.0","#, r#""jsonrpc":2,"#] {
        let body = FLAT.replacen('{', &format!(r#"{{{marks}"result":{other},"#), 1);
        assert_eq!(status(body.as_bytes()).expect("a status").height, 12);
    }
}

#[test]
fn answers_that_are_none_are_named() {
    for (body, wanted) in [
        ("<html>", "expected value"),
        ("{}", "missing field `node_info`"),
        (r#"{"jsonrpc":"2.0"}"#, "missing field `result`"),
        (&FLAT.replace("12", ""), "latest_block_height is \"\""),
        (&FLAT.replace("12", "-1"), "latest_block_height is \"-1\""),
        (
            r#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"no such height"}}"#,
            "no such height",
        ),
    ] {
        let problem = status(body.as_bytes()).expect_err("no status").to_string();
        assert!(problem.contains(wanted), "{body}: {problem}");
    }
}

#[test]
fn a_hash_has_sixty_four_digits() {
    let said = |hash: &str| format!(r#"{{"block_id":{{"hash":"{hash}"}},"block":{{"a":[1]}}}}"#);
    let hash = "0123456789abcdefABCD".repeat(4)[..64].to_owned();
    assert_eq!(block_hash(said(&hash).as_bytes()), Ok(hash.clone()));
    for bad in ["", &hash[1..], &format!("{}g", &hash[1..])] {
        let problem = block_hash(said(bad).as_bytes()).expect_err("no hash");
        assert!(problem.to_string().contains("64 hexadecimal digits"));
    }
}

#[tokio::test]
async fn the_node_is_asked_plainly() {
    let (base, asked) = server(http("200 OK", FLAT)).await;
    let rpc = Rpc::new(&format!("{base}/"), Duration::from_secs(10));
    assert_eq!(rpc.status().await.expect("a status").height, 12);
    let asked = asked.await.expect("a request");
    assert!(asked.starts_with("GET /status HTTP/1.1\r\n"), "{asked}");
    let host = base.trim_start_matches("http://");
    assert!(asked.contains(&format!("host: {host}\r\n")), "{asked}");
}

#[tokio::test]
async fn a_refusal_says_what_was_asked_and_shows_the_beginning_of_what_was_said() {
    let long = format!("no luck: {}", "x".repeat(2_000_000));
    let trouble = answered(http("503 Service Unavailable", &long)).await;
    let text = trouble.expect_err("a refusal").to_string();
    assert!(text.contains("/status answers 503 Service Unavailable: no luck: x"));
    assert_eq!(text.matches('x').count(), 512 - "no luck: ".len());
}

#[tokio::test]
async fn an_answer_without_end_is_given_up() {
    let head = b"HTTP/1.1 200 OK\r\n\r\n{".to_vec();
    let answer = [head, vec![b' '; 2_000_000]].concat();
    let trouble = answered(answer).await.expect_err("too long");
    assert_eq!(trouble.problem, Problem::Long(1024 * 1024));
}

#[tokio::test]
async fn an_answer_that_is_cut_is_none() {
    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{\"node_info\":".to_vec();
    let trouble = answered(answer).await.expect_err("a cut");
    assert!(matches!(
        trouble.problem,
        Problem::NoAnswer(fetch::Trouble::Broken(_))
    ));
    assert!(!trouble.is_unreachable());
}

#[tokio::test]
async fn a_port_nobody_has_is_told_from_a_server_that_is_slow() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let base = format!("http://{}", listener.local_addr().expect("an address"));
    // It listens and never answers.
    let before = Instant::now();
    let slow = Rpc::new(&base, Duration::from_millis(100)).status().await;
    let slow = slow.expect_err("a deadline");
    assert!(before.elapsed() < Duration::from_secs(10));
    assert!(slow.to_string().ends_with("does not answer within 100ms"));
    assert!(!slow.is_unreachable());
    drop(listener);
    let closed = Rpc::new(&base, Duration::from_secs(10)).status().await;
    let closed = closed.expect_err("nobody");
    assert!(closed.is_unreachable(), "{closed}");
}

#[tokio::test]
async fn what_is_no_url_is_named() {
    for base in ["localhost:26657", "ftp://host:1", "http://", "http://a b:1"] {
        let trouble = Rpc::new(base, Duration::from_secs(1)).status().await;
        let text = trouble.expect_err("no URL").to_string();
        assert!(text.contains("is not a URL of the form"), "{base}: {text}");
    }
}
