//! Taking TLS connections, each with the configuration that is current when it arrives.
//!
//! [`wrap`] is the primitive: one accepted connection, one configuration, one deadline. A server that
//! speaks plaintext or TLS on one socket accepts for itself and wraps what it wants wrapped;
//! [`TlsListener`] is for servers that speak TLS alone. Connections are never touched again once
//! they are handed out.

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinError, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// How long a client may take for the handshake if nobody says otherwise.
pub const HANDSHAKE_DEADLINE: Duration = Duration::from_secs(10);

/// How many handshakes run at once if nobody says otherwise: those past it wait in the kernel.
pub const HANDSHAKES: usize = 256;

/// How long to pause when the process is out of descriptors or the like.
const PAUSE: Duration = Duration::from_millis(100);

/// Something that knows the configuration to use for the next connection.
pub trait CurrentConfig: Send + Sync + 'static {
    /// The configuration, now.
    fn current_config(&self) -> Arc<ServerConfig>;
}

impl CurrentConfig for ArcSwap<ServerConfig> {
    fn current_config(&self) -> Arc<ServerConfig> {
        self.load_full()
    }
}

impl<T: CurrentConfig + ?Sized> CurrentConfig for Arc<T> {
    fn current_config(&self) -> Arc<ServerConfig> {
        T::current_config(self)
    }
}

/// Why a connection got no session.
#[derive(Debug, thiserror::Error)]
pub enum NoSession {
    /// The client took too long.
    #[error("the handshake was not over after {0:?}")]
    TimedOut(Duration),
    /// The client left, or the two have nothing in common.
    #[error("the handshake failed")]
    Failed(#[source] io::Error),
}

/// Does the server's side of the handshake on an accepted connection.
pub async fn wrap<S>(
    stream: S,
    config: Arc<ServerConfig>,
    deadline: Duration,
) -> Result<TlsStream<S>, NoSession>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    match tokio::time::timeout(deadline, TlsAcceptor::from(config).accept(stream)).await {
        Ok(Ok(stream)) => Ok(stream),
        Ok(Err(error)) => Err(NoSession::Failed(error)),
        Err(_) => Err(NoSession::TimedOut(deadline)),
    }
}

type Session = (TlsStream<TcpStream>, SocketAddr);
type Attempt = Result<Session, (NoSession, SocketAddr)>;

/// A socket all of whose connections are TLS. A slow client delays no other.
#[derive(Debug)]
pub struct TlsListener<C> {
    socket: TcpListener,
    configs: C,
    deadline: Duration,
    handshakes: usize,
    running: JoinSet<Attempt>,
}

impl<C: CurrentConfig> TlsListener<C> {
    /// Takes connections from this socket with the usual limits.
    pub fn new(socket: TcpListener, configs: C) -> Self {
        Self::with_limits(socket, configs, HANDSHAKE_DEADLINE, HANDSHAKES)
    }

    /// Takes connections from this socket; `handshakes` of them at once, and at least one.
    pub fn with_limits(
        socket: TcpListener,
        configs: C,
        deadline: Duration,
        handshakes: usize,
    ) -> Self {
        Self {
            socket,
            configs,
            deadline,
            handshakes: handshakes.max(1),
            running: JoinSet::new(),
        }
    }

    /// The address the socket is bound to.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The next connection whose handshake is done. Failed ones are passed over; nothing ends the
    /// listener. Dropping the future loses no connection.
    pub async fn accept(&mut self) -> Session {
        loop {
            tokio::select! {
                Some(done) = self.running.join_next() => {
                    if let Some(session) = session(done) {
                        return session;
                    }
                }
                accepted = self.socket.accept(), if self.running.len() < self.handshakes => {
                    match accepted {
                        Ok((stream, peer)) => self.begin(stream, peer),
                        Err(error) => pause(&error).await,
                    }
                }
            }
        }
    }

    fn begin(&mut self, stream: TcpStream, peer: SocketAddr) {
        let (config, deadline) = (self.configs.current_config(), self.deadline);
        self.running.spawn(async move {
            // Without it small answers wait for the peer's acknowledgement.
            let _ = stream.set_nodelay(true);
            match wrap(stream, config, deadline).await {
                Ok(stream) => Ok((stream, peer)),
                Err(error) => Err((error, peer)),
            }
        });
    }
}

fn session(done: Result<Attempt, JoinError>) -> Option<Session> {
    match done {
        Ok(Ok(session)) => Some(session),
        Ok(Err((error, peer))) => {
            let source = std::error::Error::source(&error).map(ToString::to_string);
            tracing::debug!(%peer, %error, source, "no TLS session");
            None
        }
        Err(error) => {
            tracing::warn!(%error, "a handshake was cut short");
            None
        }
    }
}

/// What an accept loop does about an error: a connection that broke before it was accepted is
/// nobody's trouble; being out of descriptors passes only with time.
pub async fn pause(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset
    ) {
        return;
    }
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(PAUSE).await;
}
