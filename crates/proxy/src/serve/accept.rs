//! The socket: accepts for as long as the proxy lives, and then waits for those who are inside.

use super::connection::{Origin, converse};
use super::{Posture, Respond};
use keelson_tls::listener::pause;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How patient the socket is, and with how many.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// For the whole head of a request; none for ever.
    pub head: Option<Duration>,
    /// For a connection without a request; none for ever.
    pub idle: Option<Duration>,
    /// For a TLS handshake.
    pub handshake: Duration,
    /// For connections that are to go: after a change of mode, and at the end.
    pub farewell: Duration,
    /// Bytes of a request's head.
    pub head_bytes: usize,
    /// Headers of a request.
    pub headers: usize,
    /// HTTP/2, or none of it.
    pub http2: Option<Http2>,
    /// Connections at once; the next ones wait in the kernel.
    pub connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            head: Some(Duration::from_secs(10)),
            idle: Some(Duration::from_secs(120)),
            handshake: Duration::from_secs(10),
            farewell: Duration::from_secs(25),
            head_bytes: 64 << 10,
            headers: 1024,
            http2: Some(Http2::default()),
            connections: 16 << 10,
        }
    }
}

/// What a client of HTTP/2 may ask for at once.
#[derive(Clone, Copy, Debug)]
pub struct Http2 {
    /// Streams of a connection.
    pub streams: u32,
    /// The largest frame.
    pub frame: u32,
    /// The window of a stream.
    pub stream_window: u32,
    /// The window of a connection.
    pub connection_window: u32,
}

impl Default for Http2 {
    /// What the reference offers.
    fn default() -> Self {
        Self {
            streams: 100,
            frame: 256 << 10,
            stream_window: 256 << 10,
            connection_window: 25 << 20,
        }
    }
}

/// A socket that answers.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    posture: watch::Receiver<Posture>,
    limits: Limits,
}

impl Listener {
    /// Answers on this socket in the posture of the moment.
    pub fn new(socket: TcpListener, posture: watch::Receiver<Posture>, limits: Limits) -> Self {
        Self {
            socket,
            posture,
            limits,
        }
    }

    /// The address of the socket.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// Accepts until told to end, then waits for the connections there are, as long as their
    /// patience lasts.
    pub async fn serve(self, responder: Arc<impl Respond>, end: CancellationToken) {
        let room = Arc::new(Semaphore::new(self.limits.connections));
        let inside = TaskTracker::new();
        loop {
            let accepted = tokio::select! {
                () = end.cancelled() => break,
                accepted = self.accept(&room) => accepted,
            };
            let (stream, peer, place) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    pause(&error).await;
                    continue;
                }
            };
            let posture = self.posture.clone();
            let origin = Origin::new(peer, posture.clone());
            let (responder, end, limits) = (Arc::clone(&responder), end.clone(), self.limits);
            inside.spawn(async move {
                let _place = place;
                converse(stream, origin, posture, responder, limits, end).await;
            });
        }
        drop(self.socket);
        inside.close();
        inside.wait().await;
    }

    async fn accept(
        &self,
        room: &Arc<Semaphore>,
    ) -> io::Result<(TcpStream, SocketAddr, tokio::sync::OwnedSemaphorePermit)> {
        let place = Arc::clone(room)
            .acquire_owned()
            .await
            .map_err(io::Error::other)?;
        let (stream, peer) = self.socket.accept().await?;
        stream.set_nodelay(true)?;
        Ok((stream, peer, place))
    }
}
