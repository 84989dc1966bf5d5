//! One connection to a proxy: opened, verified where it is TLS, and used for one request at a time.

use http::{Request, Response};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use keelson_tls::client::{Pins, pinned, untrusted};
use rustls::InvalidMessage;
use rustls::pki_types::{CertificateDer, ServerName};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Transport;
use super::error::{CallError, chain};

/// How long a connection may take, its handshake included.
pub(super) const CONNECT: Duration = Duration::from_secs(2);
/// What every connection has for reading. Heads of answers are smaller by far, and there may be ten
/// thousand connections.
const READ_BUFFER: usize = 4 * 1024;
/// How long an answered connection is waited for until it can take the next request.
const SETTLE: Duration = Duration::from_millis(100);

/// A connection, and who is at its other end.
#[derive(Debug)]
pub(super) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    /// The certificates that were presented, leaf first; none in plaintext.
    presented: Vec<CertificateDer<'static>>,
}

/// Why a request got no answer.
pub(super) enum Unsent {
    /// Not a byte of it was written.
    Nothing,
    /// Some of it may have arrived.
    Perhaps(CallError),
}

impl Connection {
    /// Opens a connection. Over TLS nothing is sent before the server is verified.
    pub(super) async fn open(
        address: SocketAddr,
        name: &str,
        over: &Transport,
    ) -> Result<Self, CallError> {
        let opening = async {
            let stream = tcp(address).await?;
            match over {
                Transport::Plaintext => Self::speak(stream, Vec::new()).await,
                Transport::Tls(pins) => {
                    let stream = secure(stream, name, pins).await?;
                    let presented = stream.get_ref().1.peer_certificates().unwrap_or_default();
                    let presented = presented.to_vec();
                    Self::speak(stream, presented).await
                }
            }
        };
        let what = "connecting to the sidecar";
        let late = CallError::Deadline {
            what,
            after: CONNECT,
        };
        timeout(CONNECT, opening).await.unwrap_or(Err(late))
    }

    /// Speaks HTTP on a stream whose other end presented these certificates.
    pub(super) async fn speak(
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        presented: Vec<CertificateDer<'static>>,
    ) -> Result<Self, CallError> {
        let mut builder = http1::Builder::new();
        builder.read_buf_exact_size(Some(READ_BUFFER));
        let handshake = builder.handshake(TokioIo::new(stream)).await;
        let (sender, driver) = handshake.map_err(|error| unreachable(&error))?;
        // It ends with the sender; what went wrong until then is told to whoever sends.
        tokio::spawn(driver);
        Ok(Self { sender, presented })
    }

    pub(super) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Whether the other end is one that this transport trusts today.
    pub(super) fn is_trusted(&self, over: &Transport) -> bool {
        match (over, self.presented.split_first()) {
            (Transport::Plaintext, presented) => presented.is_none(),
            (Transport::Tls(_), None) => false,
            (Transport::Tls(pins), Some((leaf, rest))) => {
                pins.judge(leaf, rest, Timestamp::now()).is_ok()
            }
        }
    }

    pub(super) async fn send(
        &mut self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, Unsent> {
        match self.sender.try_send_request(request).await {
            Ok(answer) => Ok(answer),
            Err(mut error) => Err(match error.take_message() {
                Some(_) => Unsent::Nothing,
                None => Unsent::Perhaps(unreachable(&error.into_error())),
            }),
        }
    }

    /// Waits until the connection can take another request, and says whether it ever will.
    pub(super) async fn settles(&mut self) -> bool {
        self.sender.is_ready() || matches!(timeout(SETTLE, self.sender.ready()).await, Ok(Ok(())))
    }
}

/// A connection by TCP; its deadline is the caller's.
pub(super) async fn tcp(address: SocketAddr) -> Result<TcpStream, CallError> {
    let opened = async {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok::<_, io::Error>(stream)
    };
    let stream = opened.await;
    stream.map_err(|error| CallError::Unreachable(format!("no connection to {address}: {error}")))
}

async fn secure(
    stream: TcpStream,
    name: &str,
    pins: &Pins,
) -> Result<TlsStream<TcpStream>, CallError> {
    let name = ServerName::try_from(name.to_owned())
        .map_err(|_| CallError::Unreachable(format!("{name:?} is no name a server can have")))?;
    let config = pinned(pins.clone(), &[b"http/1.1".to_vec()])
        .map_err(|error| CallError::Unreachable(error.to_string()))?;
    let connector = TlsConnector::from(Arc::new(config));
    connector.connect(name, stream).await.map_err(not_secured)
}

/// tokio-rustls hands rustls' error on inside an I/O error.
fn not_secured(error: io::Error) -> CallError {
    let inner = error.get_ref().and_then(|it| it.downcast_ref());
    let Some(inner): Option<&rustls::Error> = inner else {
        return CallError::Unreachable(format!("the handshake broke off: {error}"));
    };
    match (untrusted(inner), inner) {
        (Some(untrusted), _) => CallError::Untrusted(chain(untrusted)),
        (None, rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType)) => {
            CallError::Untrusted("it does not speak TLS".to_owned())
        }
        (None, other) => CallError::Unreachable(format!("the handshake failed: {other}")),
    }
}

fn unreachable(error: &hyper::Error) -> CallError {
    CallError::Unreachable(chain(error))
}
