//! One connection, from its first byte to its last.

use super::accept::{Http2, Limits};
use super::patience::{Overdue, Patience, Pulse, Watch};
use super::sensed::{Awaited, Sensed};
use super::{Mode, Posture, Respond, Tunnels};
use crate::outcome::PLAIN_HTTP_TO_TLS;
use crate::x509::Presented;
use futures::stream::{FuturesUnordered, StreamExt};
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use keelson_tls::{Authorities, wrap};
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// The first byte of a TLS handshake.
const HANDSHAKE: u8 = 0x16;
/// How long, and how much, a client that was told to use TLS may go on sending.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES: u64 = 64 << 10;

/// Streams a client may take back before they are looked at, and streams it may make us take back,
/// before its connection is ended (HTTP/2 rapid reset, and its mirror image).
const PENDING_RESETS: usize = 20;
const OWN_RESETS: usize = 128;

/// Where a request comes from.
#[derive(Debug)]
pub struct Origin {
    /// The other end.
    pub peer: SocketAddr,
    /// Whether the connection is TLS.
    pub secure: bool,
    /// The certificates the client presented. Not verified here.
    pub certificates: Presented,
    /// What the connection turns into when both sides agree on another protocol.
    pub tunnels: Tunnels,
    posture: watch::Receiver<Posture>,
}

impl Origin {
    pub(super) fn new(peer: SocketAddr, posture: watch::Receiver<Posture>) -> Self {
        Self {
            peer,
            secure: false,
            certificates: Presented::default(),
            tunnels: Tunnels::default(),
            posture,
        }
    }

    /// Who vouches for client certificates on this socket now.
    pub fn authorities(&self) -> Option<Arc<Authorities>> {
        self.posture.borrow().clients.clone()
    }
}

/// Serves one connection in the posture of the moment it arrived.
pub(super) async fn converse<R: Respond>(
    stream: TcpStream,
    mut origin: Origin,
    mut posture: watch::Receiver<Posture>,
    responder: Arc<R>,
    limits: Limits,
    end: CancellationToken,
) {
    let mine = posture.borrow_and_update().clone();
    // Ends with the epoch, with the proxy, or never.
    let dismissed = async {
        tokio::select! {
            () = end.cancelled() => {}
            () = replaced(&mut posture, &mine) => {}
        }
    };
    match &mine.mode {
        Mode::Shut => {}
        Mode::Plain => speak(stream, origin, responder, limits, dismissed).await,
        Mode::Tls(config) => {
            let Some(stream) = handshake_or_hint(stream, limits).await else {
                return;
            };
            let session = wrap(stream, Arc::clone(config), limits.handshake).await;
            let Ok(stream) = session else {
                return;
            };
            origin.secure = true;
            let presented = stream.get_ref().1.peer_certificates().unwrap_or_default();
            origin.certificates = Presented::new(presented.to_vec());
            speak(stream, origin, responder, limits, dismissed).await;
        }
    }
}

/// Ends when connections of this posture are to go. A posture nobody can change any more stays.
async fn replaced(posture: &mut watch::Receiver<Posture>, mine: &Posture) {
    if posture.wait_for(|now| !mine.outlives(now)).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Passes on a connection that begins a handshake; one that begins with a request is told so.
async fn handshake_or_hint(mut stream: TcpStream, limits: Limits) -> Option<TcpStream> {
    let mut first = [0];
    let peeked = timeout(limits.handshake, stream.peek(&mut first)).await;
    match (peeked, first) {
        (Ok(Ok(1)), [HANDSHAKE]) => Some(stream),
        (Ok(Ok(1)), [byte]) if byte.is_ascii_uppercase() => {
            tell_plain(&mut stream).await;
            None
        }
        _ => None,
    }
}

/// Answers, and then reads what the client is still sending: closing over unread bytes is a reset,
/// and a reset may overtake the answer.
async fn tell_plain(stream: &mut TcpStream) {
    let _ = stream.write_all(PLAIN_HTTP_TO_TLS).await;
    let _ = stream.shutdown().await;
    let mut rest = stream.take(LINGER_BYTES);
    let _ = timeout(LINGER, tokio::io::copy(&mut rest, &mut tokio::io::sink())).await;
}

async fn speak<R: Respond>(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    origin: Origin,
    responder: Arc<R>,
    limits: Limits,
    dismissed: impl Future<Output = ()>,
) {
    let pulse = Pulse::new();
    let visit = Visit {
        pulse: Arc::clone(&pulse),
        tunnels: origin.tunnels.clone(),
        limits,
    };
    let io = TokioIo::new(Sensed::new(stream, Arc::clone(&pulse)));
    let origin = Arc::new(origin);
    let service = service_fn(move |request: Request<Incoming>| {
        let (responder, origin) = (Arc::clone(&responder), Arc::clone(&origin));
        let begun = pulse.begin();
        async move {
            let answer = responder.respond(origin, request).await;
            answer.map(|answer| {
                answer.map(|inner| Awaited {
                    inner,
                    _begun: begun,
                })
            })
        }
    });
    match limits.http2 {
        // Not `auto` told to speak HTTP/1.1 only: with upgrades it does not listen.
        None => {
            let connection = http1(limits).serve_connection(io, service).with_upgrades();
            let shut = |it: Pin<&mut _>| http1::UpgradeableConnection::graceful_shutdown(it);
            visit.attend(connection, shut, dismissed).await;
        }
        Some(http2) => {
            let builder = both(limits, http2);
            let connection = builder.serve_connection_with_upgrades(io, service);
            let shut = |it: Pin<&mut _>| auto::UpgradeableConnection::graceful_shutdown(it);
            visit.attend(connection, shut, dismissed).await;
        }
    }
}

/// A connection's stay: what is known of it while it is served.
struct Visit {
    pulse: Arc<Pulse>,
    tunnels: Tunnels,
    limits: Limits,
}

/// What ended the ordinary part of a stay.
enum Over {
    /// The connection itself, or what is left of it is a tunnel.
    Ended,
    /// Its patience.
    Overdue(Overdue),
    /// Someone else.
    Dismissed,
}

impl Visit {
    /// Lets a connection go on until it is overdue or dismissed, and then finish what it is at.
    async fn attend<C: Future>(
        &self,
        connection: C,
        shut: impl FnOnce(Pin<&mut C>),
        dismissed: impl Future<Output = ()>,
    ) {
        let mut connection = pin!(connection);
        // In a set of its own it is looked at when it has something to say, not at every byte.
        let mut dismissed = pin!(FuturesUnordered::from_iter([dismissed]));
        let over = tokio::select! {
            biased;
            over = self.watch(connection.as_mut()) => over,
            _ = dismissed.next() => Over::Dismissed,
        };
        let farewell = self.limits.farewell;
        match over {
            Over::Overdue(Overdue::First) => {}
            Over::Ended => {
                tokio::select! {
                    () = self.tunnels.over() => {}
                    _ = dismissed.next() => drop(timeout(farewell, self.tunnels.over()).await),
                }
            }
            Over::Overdue(Overdue::Later) => {
                shut(connection.as_mut());
                tokio::select! {
                    () = self.linger(connection.as_mut()) => {}
                    _ = dismissed.next() => drop(timeout(farewell, connection).await),
                }
            }
            Over::Dismissed => {
                shut(connection.as_mut());
                let rest = async {
                    connection.await;
                    self.tunnels.over().await;
                };
                let _ = timeout(farewell, rest).await;
            }
        }
        self.tunnels.cut();
    }

    async fn watch<C: Future>(&self, mut connection: Pin<&mut C>) -> Over {
        let patience = Patience {
            head: self.limits.head,
            idle: self.limits.idle,
        };
        let mut watch = Watch::new(Arc::clone(&self.pulse), patience);
        poll_fn(|cx| match connection.as_mut().poll(cx) {
            Poll::Ready(_) => Poll::Ready(Over::Ended),
            Poll::Pending => watch.poll(cx).map(Over::Overdue),
        })
        .await
    }

    /// A connection that was told to end does so at once, unless it is at something after all, such
    /// as the rest of a body whose answer has been given: then as long as bytes move.
    async fn linger<C: Future>(&self, mut connection: Pin<&mut C>) {
        let mut moved = self.pulse.moved();
        while timeout(self.limits.farewell, connection.as_mut())
            .await
            .is_err()
        {
            let now = self.pulse.moved();
            if now == moved {
                return;
            }
            moved = now;
        }
    }
}

fn http1(limits: Limits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // Ours tells a head from an idle connection.
        .header_read_timeout(None)
        .max_buf_size(limits.head_bytes.max(8 << 10))
        .max_headers(limits.headers);
    builder
}

fn both(limits: Limits, http2: Http2) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        .max_buf_size(limits.head_bytes.max(8 << 10))
        .max_headers(limits.headers);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(http2.streams)
        .max_frame_size(http2.frame)
        .initial_stream_window_size(http2.stream_window)
        .initial_connection_window_size(http2.connection_window)
        .max_header_list_size(u32::try_from(limits.head_bytes).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(PENDING_RESETS)
        .max_local_error_reset_streams(OWN_RESETS)
        .keep_alive_interval(Duration::from_secs(45))
        .keep_alive_timeout(Duration::from_secs(10));
    builder
}
