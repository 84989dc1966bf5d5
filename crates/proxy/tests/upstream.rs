//! The connections to what the proxy stands before: few, used again, and never a request twice.

use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1 as server;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use keelson_proxy::upstream::{Limits, Target, Upstream};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixListener};

/// What the upstream has seen.
#[derive(Default)]
struct Seen {
    connections: AtomicUsize,
    requests: AtomicUsize,
}

impl Seen {
    fn counts(&self) -> (usize, usize) {
        (
            self.connections.load(Ordering::SeqCst),
            self.requests.load(Ordering::SeqCst),
        )
    }
}

async fn answer(
    seen: Arc<Seen>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    seen.requests.fetch_add(1, Ordering::SeqCst);
    let path = request.uri().path().to_owned();
    let body = request.into_body().collect().await;
    let body = body.map(|body| body.to_bytes()).unwrap_or_default();
    let mut response = Response::new(match path.as_str() {
        "/large" => Full::from(vec![b'x'; 4 << 20]),
        "/echo" => Full::from(body),
        _ => Full::from("hello"),
    });
    if path == "/last" {
        let close = http::HeaderValue::from_static("close");
        response.headers_mut().insert("connection", close);
    }
    Ok(response)
}

async fn serve_one(
    seen: Arc<Seen>,
    stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
) {
    seen.connections.fetch_add(1, Ordering::SeqCst);
    let service = service_fn(|request| answer(Arc::clone(&seen), request));
    let _ = server::Builder::new()
        .serve_connection(TokioIo::new(stream), service)
        .await;
}

async fn back() -> (SocketAddr, Arc<Seen>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let seen = Arc::new(Seen::default());
    let counts = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_one(Arc::clone(&counts), stream));
        }
    });
    (address, seen)
}

/// A server that does nothing but forward; bodies stream only between connections.
async fn front(upstream: Arc<Upstream>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let upstream = Arc::clone(&upstream);
            let service = service_fn(move |request: Request<Incoming>| {
                let upstream = Arc::clone(&upstream);
                async move { upstream.send(request).await }
            });
            tokio::spawn(server::Builder::new().serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

fn to(address: SocketAddr) -> Target {
    Target::Plain {
        host: address.ip().to_string(),
        port: address.port(),
    }
}

/// One request on a connection of its own, read to the end.
async fn get(front: SocketAddr, path: &str) -> Result<Bytes, hyper::Error> {
    let stream = TcpStream::connect(front).await.expect("the front");
    let (mut sender, driver) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(driver);
    let request = Request::get(path)
        .header("host", "node")
        .body(Empty::<Bytes>::new());
    let answer = sender.send_request(request.expect("a request")).await?;
    Ok(answer.into_body().collect().await?.to_bytes())
}

#[tokio::test]
async fn one_connection_serves_requests_that_follow_each_other() {
    let (address, seen) = back().await;
    let upstream = Arc::new(Upstream::new(to(address), Limits::default()));
    let front = front(Arc::clone(&upstream)).await;
    for _ in 0..20 {
        assert_eq!(get(front, "/").await.expect("an answer"), "hello");
    }
    assert_eq!(seen.counts(), (1, 20));
    assert_eq!(upstream.idle(), 1);
}

#[tokio::test]
async fn no_more_connections_are_made_than_requests_are_under_way() {
    let (address, seen) = back().await;
    let upstream = Arc::new(Upstream::new(to(address), Limits::default()));
    let front = front(Arc::clone(&upstream)).await;
    for _ in 0..10 {
        let round = (0..8).map(|_| get(front, "/"));
        futures::future::try_join_all(round).await.expect("answers");
    }
    let (connections, requests) = seen.counts();
    assert_eq!(requests, 80);
    assert!(connections <= 8, "{connections} connections");
}

#[tokio::test]
async fn a_connection_the_upstream_has_closed_costs_no_request() {
    let (address, seen) = back().await;
    let upstream = Arc::new(Upstream::new(to(address), Limits::default()));
    let front = front(Arc::clone(&upstream)).await;
    for _ in 0..20 {
        get(front, "/last").await.expect("an answer");
    }
    assert_eq!(
        seen.counts(),
        (20, 20),
        "each request once, each on a connection of its own"
    );
}

#[tokio::test]
async fn an_answer_that_nobody_reads_to_its_end_takes_its_connection_with_it() {
    let (address, _) = back().await;
    let upstream = Arc::new(Upstream::new(to(address), Limits::default()));
    let front = front(Arc::clone(&upstream)).await;
    let stream = TcpStream::connect(front).await.expect("the front");
    let (mut sender, driver) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .expect("HTTP");
    let driver = tokio::spawn(driver);
    let request = Request::get("/large")
        .body(Empty::<Bytes>::new())
        .expect("a request");
    let mut answer = sender.send_request(request).await.expect("an answer");
    answer
        .body_mut()
        .frame()
        .await
        .expect("a first part")
        .expect("a first part");
    driver.abort();
    drop((answer, sender));
    assert_eq!(get(front, "/").await.expect("an answer"), "hello");
    assert_eq!(
        upstream.idle(),
        1,
        "only the connection that was read to its end is kept"
    );
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_idled_too_long_is_not_used_again() {
    let (address, seen) = back().await;
    let limits = Limits {
        idle_for: Duration::from_secs(50),
        ..Limits::default()
    };
    let upstream = Arc::new(Upstream::new(to(address), limits));
    let front = front(Arc::clone(&upstream)).await;
    get(front, "/").await.expect("an answer");
    tokio::time::advance(Duration::from_secs(49)).await;
    get(front, "/").await.expect("an answer");
    assert_eq!(seen.counts(), (1, 2));
    tokio::time::advance(Duration::from_secs(50)).await;
    get(front, "/").await.expect("an answer");
    assert_eq!(seen.counts(), (2, 3));
}

#[tokio::test]
async fn a_socket_file_is_an_upstream_too() {
    let path: PathBuf = std::env::temp_dir().join(format!("keelson-up-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let listener = UnixListener::bind(&path).expect("a socket file");
    let seen = Arc::new(Seen::default());
    let counts = Arc::clone(&seen);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve_one(Arc::clone(&counts), stream));
        }
    });
    let front = front(Arc::new(Upstream::new(
        Target::Unix(path.clone()),
        Limits::default(),
    )))
    .await;
    for _ in 0..3 {
        assert_eq!(get(front, "/").await.expect("an answer"), "hello");
    }
    assert_eq!(seen.counts(), (1, 3));
    std::fs::remove_file(path).expect("removal");
}

#[tokio::test]
async fn an_upstream_that_is_not_there_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    drop(listener);
    let front = front(Arc::new(Upstream::new(to(address), Limits::default()))).await;
    get(front, "/").await.expect_err("nobody is there");
}

/// An upstream of HTTP/2 that answers with the names of the trailers it got.
async fn trailed() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let service = service_fn(async |request: Request<Incoming>| {
                let body = request.into_body().collect().await.expect("a body");
                let trailers = body.trailers().cloned().unwrap_or_default();
                let said = format!("{:?} {:?}", body.to_bytes(), trailers);
                Ok::<_, Infallible>(Response::new(Full::<Bytes>::from(said)))
            });
            let server = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
            tokio::spawn(server.serve_connection(TokioIo::new(stream), service));
        }
    });
    address
}

#[tokio::test]
async fn trailers_of_a_request_stay_behind_with_http2_too() {
    let address = trailed().await;
    let target = Target::H2c {
        host: address.ip().to_string(),
        port: address.port(),
    };
    let front = front(Arc::new(Upstream::new(target, Limits::default()))).await;
    let mut stream = TcpStream::connect(front).await.expect("the front");
    let request = "POST / HTTP/1.1\r\nHost: node\r\nConnection: close\r\nTrailer: x-remote-user\r\n\
                   Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx-remote-user: admin\r\n\r\n";
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut said = String::new();
    stream.read_to_string(&mut said).await.expect("an answer");
    assert!(said.ends_with("b\"hello\" {}"), "{said}");
}
