//! How the program ends: a signal, the ones inside, and a second signal.

use crate::common::program::{CONFIG, nowhere};
use crate::common::program::{Proxy, SOON, get};
use crate::common::upstream::upstream;
use keelson_testbed::{Cluster, until};
use nix::sys::signal::Signal;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

async fn proxy(test: &str, more: &[&str]) -> Proxy {
    let cluster = Cluster::shared().await;
    let open = ["--ignore-paths=/open/*", "--allow-upgrade-on-ignored"];
    let more: Vec<String> = open.iter().chain(more).map(|it| (*it).to_owned()).collect();
    let proxy = Proxy::with(test, &nowhere(cluster), CONFIG, upstream(), &more);
    proxy.healthy().await;
    proxy
}

fn send(proxy: &Proxy, path: &str, headers: &str) -> TcpStream {
    let mut stream = TcpStream::connect(proxy.requests).expect("a connection");
    stream.set_read_timeout(Some(SOON)).expect("a timeout");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: node\r\n{headers}\r\n").expect("sent");
    stream
}

fn echo(stream: &mut TcpStream, text: &str) -> String {
    stream.write_all(text.as_bytes()).expect("sent");
    let mut back = vec![0; text.len()];
    stream.read_exact(&mut back).expect("an echo");
    String::from_utf8(back).expect("text")
}

fn tunnel(proxy: &Proxy) -> TcpStream {
    let mut stream = send(
        proxy,
        "/open/ws",
        "Connection: Upgrade\r\nUpgrade: websocket\r\n",
    );
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a head");
        head.push(byte[0]);
    }
    assert!(
        head.starts_with(b"HTTP/1.1 101"),
        "{}",
        String::from_utf8_lossy(&head)
    );
    stream
}

/// The number of a gauge.
fn gauge(proxy: &Proxy, name: &str) -> Option<i64> {
    let told = get(proxy.health, "/metrics", "")?;
    let prefix = format!("keelson_proxy_{name} ");
    let value = told.lines().find_map(|line| line.strip_prefix(&prefix))?;
    value.parse().ok()
}

async fn has(proxy: &Proxy, name: &str, expected: i64) {
    until(name, SOON, async || match gauge(proxy, name) {
        Some(value) if value == expected => Ok(()),
        value => Err(format!("{value:?}")),
    })
    .await
    .expect("a gauge that follows");
}

async fn refuses(proxy: &Proxy) {
    until("the socket", SOON, async || {
        match TcpStream::connect(proxy.requests) {
            Ok(_) => Err("it is open".to_owned()),
            Err(_) => Ok(()),
        }
    })
    .await
    .expect("a closed socket");
}

#[tokio::test]
async fn requests_and_tunnels_inside_are_waited_for_and_a_second_signal_waits_for_nobody() {
    let mut proxy = proxy("drain", &[]).await;
    let held = send(&proxy, "/open/hold", "");
    let mut tunnel = tunnel(&proxy);
    has(&proxy, "http_requests_in_flight", 1).await;
    has(&proxy, "tunnels", 1).await;
    proxy.signal(Signal::SIGTERM);
    refuses(&proxy).await;
    assert_eq!(echo(&mut tunnel, "in the drain"), "in the drain");
    assert!(
        proxy.child.try_wait().expect("a state").is_none(),
        "it waits"
    );

    let since = Instant::now();
    proxy.signal(Signal::SIGTERM);
    let status = proxy.child.wait().expect("its end");
    assert!(status.success(), "{status}");
    assert!(since.elapsed() < SOON, "{:?}", since.elapsed());
    drop(held);
}

#[tokio::test]
async fn the_patience_of_the_end_is_the_flags() {
    let mut proxy = proxy("patience", &["--shutdown-timeout=300ms"]).await;
    let _tunnel = tunnel(&proxy);
    let _held = send(&proxy, "/open/hold", "");
    has(&proxy, "http_requests_in_flight", 1).await;
    let since = Instant::now();
    proxy.signal(Signal::SIGINT);
    let status = proxy.child.wait().expect("its end");
    assert!(status.success(), "{status}");
    let took = since.elapsed();
    assert!(
        took >= Duration::from_millis(300) && took < SOON,
        "{took:?}"
    );
}

#[tokio::test]
async fn in_the_delay_it_serves_and_says_that_it_is_not_ready() {
    let mut proxy = proxy("delay", &["--shutdown-delay=1s"]).await;
    let ready = get(proxy.health, "/readyz", "").expect("an answer");
    assert!(ready.starts_with("HTTP/1.1 200"), "{ready}");
    let since = Instant::now();
    proxy.signal(Signal::SIGTERM);
    until("unready", SOON, async || {
        match get(proxy.health, "/readyz", "") {
            Some(said) if said.starts_with("HTTP/1.1 503") => Ok(()),
            said => Err(format!("{said:?}")),
        }
    })
    .await
    .expect("it says so");
    let served = get(proxy.requests, "/open/door", "").expect("an answer");
    assert!(served.ends_with("hello"), "{served}");
    let status = proxy.child.wait().expect("its end");
    assert!(status.success(), "{status}");
    assert!(
        since.elapsed() >= Duration::from_secs(1),
        "{:?}",
        since.elapsed()
    );
}
