//! The port: connections are accepted, served and, at the end, let finish.

use super::Api;
use super::patience::{Patient, Phases};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The largest head of a request.
const HEAD_BYTES: usize = 32 << 10;
/// Connections at once.
const CONNECTIONS: usize = 1024;
/// How long to wait when no connection can be accepted.
const BREATHER: Duration = Duration::from_millis(100);
/// How long, and how much, a client that was refused may go on sending.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: u64 = 1 << 20;

/// Takes the port. Every address means both families where the machine has both.
pub async fn bind(address: IpAddr, port: u16) -> std::io::Result<TcpListener> {
    match TcpListener::bind(SocketAddr::new(address, port)).await {
        Err(_) if address.is_ipv6() && address.is_unspecified() => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, port)).await
        }
        bound => bound,
    }
}

/// Accepts and serves until the end; then lets what is being answered finish.
pub async fn accept(listener: TcpListener, api: Arc<Api>, end: CancellationToken) {
    let (tracker, room) = (TaskTracker::new(), Arc::new(Semaphore::new(CONNECTIONS)));
    loop {
        let next = async {
            // A semaphore that is never closed always has a permit in the end.
            let permit = Arc::clone(&room).acquire_owned().await.ok();
            (listener.accept().await, permit)
        };
        let (accepted, permit) = tokio::select! {
            () = end.cancelled() => break,
            next = next => next,
        };
        match accepted {
            Ok((stream, _)) => {
                let (api, end) = (Arc::clone(&api), end.clone());
                tracker.spawn(async move {
                    converse(stream, api, end).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(BREATHER).await;
            }
        }
    }
    drop(listener);
    tracker.close();
    tracker.wait().await;
}

async fn converse(stream: TcpStream, api: Arc<Api>, end: CancellationToken) {
    // Answers are small and whole: waiting to fill a packet only costs time.
    let _ = stream.set_nodelay(true);
    let phases = Phases::default();
    let io = TokioIo::new(Patient::new(stream, phases.clone()));
    let service = service_fn(move |request| {
        let (api, phases) = (Arc::clone(&api), phases.clone());
        async move {
            phases.asked();
            let answer = api.answer(request).await;
            phases.answered();
            Ok::<_, Infallible>(answer)
        }
    });
    // Deadlines are ours: hyper's own for the head counts the time between requests, too.
    let mut builder = http1::Builder::new();
    builder
        .max_header_size(HEAD_BYTES)
        .max_buf_size(2 * HEAD_BYTES)
        .header_read_timeout(None);
    let mut connection = builder.serve_connection(io, service);
    let served = tokio::select! {
        served = &mut connection => served,
        () = end.cancelled() => {
            std::pin::Pin::new(&mut connection).graceful_shutdown();
            (&mut connection).await
        }
    };
    if served.is_err() {
        linger(connection.into_parts().io.into_inner()).await;
    }
}

/// Reads what a client goes on sending after it was refused: closing over unread bytes is a reset,
/// and a reset may overtake the answer.
async fn linger(stream: Patient<TcpStream>) {
    let mut rest = stream.take(LINGER_BYTES);
    let _ = timeout(LINGER, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
}
