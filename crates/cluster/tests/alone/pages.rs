//! The pages over real connections on loopback.

use keelson_cluster::{Pages, Readiness, serve};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

const DEADLINE: Duration = Duration::from_secs(20);

struct Server {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

async fn start(pages: Pages) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = oneshot::channel::<()>();
    let task = tokio::spawn(serve(listener, pages, async {
        let _ = stopped.await;
    }));
    Server {
        address,
        stop,
        task,
    }
}

/// Sends a request and reads until the end.
async fn ask(address: SocketAddr, request: &str) -> String {
    let exchange = async {
        let mut stream = TcpStream::connect(address).await.expect("a connection");
        let head = format!("{request} HTTP/1.1\r\nHost: pages\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("a request");
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.expect("an answer");
        String::from_utf8(answer).expect("text")
    };
    timeout(DEADLINE, exchange)
        .await
        .expect("an answer in time")
}

fn body(answer: &str) -> &str {
    answer.split_once("\r\n\r\n").expect("a head").1
}

/// A gauge of something that lives elsewhere.
#[derive(Debug)]
struct Nodes(Arc<AtomicI64>);

impl Collector for Nodes {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let gauge = ConstGauge::new(self.0.load(Ordering::Relaxed));
        let metric = encoder.encode_descriptor("nodes", "Nodes", None, gauge.metric_type())?;
        gauge.encode(metric)
    }
}

#[tokio::test]
async fn a_gauge_says_what_is_so_when_it_is_read() {
    let nodes = Arc::new(AtomicI64::new(3));
    let mut registry = Registry::default();
    registry.register_collector(Box::new(Nodes(nodes.clone())));
    let registry = Arc::new(Mutex::new(registry));
    let server = start(Pages::new().with_metrics(registry)).await;
    let answer = ask(server.address, "GET /metrics").await;
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    assert!(
        answer.contains("application/openmetrics-text; version=1.0.0"),
        "{answer}"
    );
    assert!(
        body(&answer).contains("\nnodes 3\n") && answer.ends_with("# EOF\n"),
        "{answer}"
    );
    nodes.store(2, Ordering::Relaxed);
    let answer = ask(server.address, "GET /metrics").await;
    assert!(body(&answer).contains("\nnodes 2\n"), "{answer}");
    // This server has no probes.
    let answer = ask(server.address, "GET /readyz").await;
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
}

#[tokio::test]
async fn readiness_names_everything_that_is_missing_and_then_nothing() {
    let readiness = Readiness::new();
    let synced = Arc::new(AtomicBool::new(false));
    let watch = synced.clone();
    readiness.add("watches", move || match watch.load(Ordering::Relaxed) {
        true => Ok(()),
        false => Err("the watch of Pods has not listed everything yet".to_owned()),
    });
    readiness.add("configuration", || Ok(()));
    let granted = synced.clone();
    readiness.add("permissions", move || {
        match granted.load(Ordering::Relaxed) {
            true => Ok(()),
            false => Err("may not watch secrets".to_owned()),
        }
    });
    let server = start(Pages::new().with_probes(readiness)).await;
    let answer = ask(server.address, "GET /readyz?verbose").await;
    assert!(answer.starts_with("HTTP/1.1 503 "), "{answer}");
    assert_eq!(
        body(&answer),
        "watches: the watch of Pods has not listed everything yet\n\
         permissions: may not watch secrets\n"
    );
    // Being unready is no reason to be restarted.
    for path in ["/healthz", "/livez"] {
        let answer = ask(server.address, &format!("GET {path}")).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
    synced.store(true, Ordering::Relaxed);
    let answer = ask(server.address, "GET /readyz").await;
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && body(&answer) == "ok\n",
        "{answer}"
    );
    let answer = ask(server.address, "HEAD /readyz").await;
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && body(&answer).is_empty(),
        "{answer}"
    );
    let answer = ask(server.address, "POST /readyz").await;
    assert!(
        answer.starts_with("HTTP/1.1 405 ") && answer.contains("GET, HEAD"),
        "{answer}"
    );
    let answer = ask(server.address, "GET /metrics").await;
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
}

#[tokio::test]
async fn an_answer_under_way_is_finished_at_the_end_and_the_port_is_closed() {
    let gate = Arc::new((Mutex::new(false), Condvar::new()));
    let (asked, mut was_asked) = tokio::sync::mpsc::unbounded_channel();
    let readiness = Readiness::new();
    let held = gate.clone();
    readiness.add("slow", move || {
        let _ = asked.send(());
        let open = held.0.lock().expect("a lock");
        drop(held.1.wait_while(open, |open| !*open).expect("a lock"));
        Ok(())
    });
    let server = start(Pages::new().with_probes(readiness)).await;
    let asking = tokio::spawn(ask(server.address, "GET /readyz"));
    // A connection that says nothing does not hold the end up.
    let _idle = TcpStream::connect(server.address)
        .await
        .expect("a connection");
    timeout(DEADLINE, was_asked.recv())
        .await
        .expect("a request");
    server.stop.send(()).expect("a server");
    let closed = async {
        while TcpStream::connect(server.address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    timeout(DEADLINE, closed).await.expect("a closed port");
    *gate.0.lock().expect("a lock") = true;
    gate.1.notify_all();
    let answer = asking.await.expect("no panic");
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && body(&answer) == "ok\n",
        "{answer}"
    );
    timeout(DEADLINE, server.task)
        .await
        .expect("an end")
        .expect("no panic");
}

#[tokio::test]
async fn a_request_that_does_not_come_or_is_too_large_ends_its_connection() {
    let server = start(Pages::new().with_probes(Readiness::new())).await;
    let large = ask(server.address, &format!("GET /{}", "x".repeat(64 << 10))).await;
    assert!(!large.starts_with("HTTP/1.1 200"), "{large}");
    let began = Instant::now();
    let mut slow = TcpStream::connect(server.address)
        .await
        .expect("a connection");
    slow.write_all(b"GET /readyz HT")
        .await
        .expect("a beginning");
    let mut rest = Vec::new();
    let ended = timeout(DEADLINE, slow.read_to_end(&mut rest)).await;
    let _ = ended.expect("an end");
    let took = began.elapsed();
    assert!((9..18).contains(&took.as_secs()), "{took:?}");
}
