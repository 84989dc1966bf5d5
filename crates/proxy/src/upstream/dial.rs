//! Making one connection to the upstream: by TCP, with or without TLS, or by a socket file.

use super::body::Outgoing;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Where the upstream is, and what it speaks.
#[derive(Clone, Debug)]
pub enum Target {
    /// HTTP/1.1 over TCP.
    Plain {
        /// Host name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// HTTP/2 without TLS, by prior knowledge.
    H2c {
        /// Host name or address.
        host: String,
        /// Port.
        port: u16,
    },
    /// HTTP over TLS; HTTP/2 where the configuration offers it and the upstream takes it.
    Tls {
        /// Host name or address.
        host: String,
        /// Port.
        port: u16,
        /// The name the certificate must have.
        name: ServerName<'static>,
        /// Trust and client certificate.
        config: Arc<ClientConfig>,
    },
    /// HTTP/1.1 over a socket file.
    Unix(PathBuf),
    /// A place nobody can connect to, for this reason.
    Nowhere(String),
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum NotReached {
    /// The system or the handshake said no.
    #[error("no connection to {at}")]
    NotConnected {
        /// Where.
        at: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The deadline passed.
    #[error("no connection to {at} within {after:?}")]
    TooSlow {
        /// Where.
        at: String,
        /// How long it had.
        after: Duration,
    },
    /// The other side speaks no HTTP.
    #[error("{at} does not speak HTTP")]
    NotHttp {
        /// Where.
        at: String,
        /// Why.
        #[source]
        source: hyper::Error,
    },
    /// Accepted, and closed before a byte was sent.
    #[error("the upstream closed a new connection at once")]
    ClosedAtOnce,
}

/// A connection that is ready for requests.
pub(super) enum Dialled {
    Alone(http1::SendRequest<Outgoing>),
    Shared(http2::SendRequest<Outgoing>),
}

impl Target {
    pub(super) async fn dial(&self, after: Duration) -> Result<Dialled, NotReached> {
        let dialled = timeout(after, self.connect()).await;
        dialled.unwrap_or_else(|_| {
            Err(NotReached::TooSlow {
                at: self.to_string(),
                after,
            })
        })
    }

    async fn connect(&self) -> Result<Dialled, NotReached> {
        let at = || self.to_string();
        let failed = |source| NotReached::NotConnected { at: at(), source };
        match self {
            Self::Plain { host, port } => self.http1(tcp(host, *port).await.map_err(failed)?).await,
            Self::H2c { host, port } => self.http2(tcp(host, *port).await.map_err(failed)?).await,
            Self::Nowhere(why) => Err(failed(io::Error::other(why.clone()))),
            Self::Unix(path) => {
                self.http1(UnixStream::connect(path).await.map_err(failed)?)
                    .await
            }
            Self::Tls {
                host,
                port,
                name,
                config,
            } => {
                let stream = tcp(host, *port).await.map_err(failed)?;
                let connector = TlsConnector::from(Arc::clone(config));
                let stream = connector
                    .connect(name.clone(), stream)
                    .await
                    .map_err(failed)?;
                match stream.get_ref().1.alpn_protocol() {
                    Some(b"h2") => self.http2(stream).await,
                    _ => self.http1(stream).await,
                }
            }
        }
    }

    /// Names as Go writes them: some upstreams compare them as they are spelt.
    async fn http1(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Result<Dialled, NotReached> {
        let mut builder = http1::Builder::new();
        builder.title_case_headers(true).max_headers(1024);
        let handshake = builder.handshake(TokioIo::new(stream)).await;
        let (sender, driver) = handshake.map_err(|source| self.not_http(source))?;
        tokio::spawn(driver.with_upgrades());
        Ok(Dialled::Alone(sender))
    }

    async fn http2(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    ) -> Result<Dialled, NotReached> {
        let builder = http2::Builder::new(TokioExecutor::new());
        let handshake = builder.handshake(TokioIo::new(stream)).await;
        let (sender, driver) = handshake.map_err(|source| self.not_http(source))?;
        tokio::spawn(driver);
        Ok(Dialled::Shared(sender))
    }

    fn not_http(&self, source: hyper::Error) -> NotReached {
        NotReached::NotHttp {
            at: self.to_string(),
            source,
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Plain { host, port } | Self::H2c { host, port } => {
                write!(f, "http://{host}:{port}")
            }
            Self::Tls { host, port, .. } => write!(f, "https://{host}:{port}"),
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Nowhere(_) => f.write_str("nowhere"),
        }
    }
}

async fn tcp(host: &str, port: u16) -> io::Result<TcpStream> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
