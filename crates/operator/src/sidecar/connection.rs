//! One connection to a proxy: opened, verified where it is TLS, and used for one request at a time.
//!
//! What HTTP needs is there while a request is under way. A connection that waits is a socket and no
//! more, since there may be ten thousand of them.

use futures::future::{Either, poll_fn, select};
use futures::task::noop_waker_ref;
use http::Request;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use keelson_tls::client::{Pins, pinned, untrusted};
use rustls::InvalidMessage;
use rustls::pki_types::{CertificateDer, ServerName};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;
use std::{fmt, io};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::Transport;
use super::call::{Answer, whole};
use super::error::{CallError, chain};

/// How long a connection may take, its handshake included.
pub(super) const CONNECT: Duration = Duration::from_secs(2);
/// What a request has for reading. Heads of answers are smaller by far.
const READ_BUFFER: usize = 4 * 1024;
/// How long an answered connection is waited for until it can take the next request.
const SETTLE: Duration = Duration::from_millis(100);

/// What bytes go over.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection, and who is at its other end.
pub(super) struct Connection {
    stream: Box<dyn Stream>,
    /// The certificates that were presented, leaf first; none in plaintext.
    presented: Vec<CertificateDer<'static>>,
}

/// Why a request got no answer.
pub(super) enum Unsent {
    /// Not a byte of it was written.
    Nothing,
    /// Some of it may have arrived.
    Perhaps(CallError),
    /// It was answered, and the answer is of no use.
    Answer(CallError),
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
                Transport::Plaintext => Ok(Self::over(stream, Vec::new())),
                Transport::Tls(pins) => {
                    let stream = secure(stream, name, pins).await?;
                    let presented = stream.get_ref().1.peer_certificates().unwrap_or_default();
                    let presented = presented.to_vec();
                    Ok(Self::over(stream, presented))
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

    /// A connection over a stream whose other end presented these certificates.
    pub(super) fn over(
        stream: impl Stream + 'static,
        presented: Vec<CertificateDer<'static>>,
    ) -> Self {
        Self {
            stream: Box::new(stream),
            presented,
        }
    }

    /// Whether the other end closed it, or says something it was not asked for.
    pub(super) fn is_closed(&mut self) -> bool {
        let mut byte = [0];
        let stream = Pin::new(&mut self.stream);
        let mut now = Context::from_waker(noop_waker_ref());
        let read = stream.poll_read(&mut now, &mut ReadBuf::new(&mut byte));
        read.is_ready()
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

    /// Sends a request and reads its answer. The connection is given back if it can take another.
    pub(super) async fn ask(
        self,
        request: Request<Full<Bytes>>,
    ) -> Result<(Answer, Option<Self>), Unsent> {
        let mut builder = http1::Builder::new();
        builder.read_buf_exact_size(Some(READ_BUFFER));
        let handshake = builder.handshake(TokioIo::new(self.stream)).await;
        let (mut sender, mut driver) = handshake.map_err(|_| Unsent::Nothing)?;
        let mut exchange = pin!(async {
            let answer = sender.try_send_request(request).await;
            let answer = answer.map_err(|mut error| match error.take_message() {
                Some(_) => Unsent::Nothing,
                None => Unsent::Perhaps(unreachable(&error.into_error())),
            })?;
            let answer = whole(answer).await.map_err(Unsent::Answer)?;
            let settled =
                sender.is_ready() || matches!(timeout(SETTLE, sender.ready()).await, Ok(Ok(())));
            Ok((answer, settled))
        });
        let driving = poll_fn(|now| driver.poll_without_shutdown(now));
        let (answer, settled) = match select(exchange.as_mut(), pin!(driving)).await {
            Either::Left((answered, _)) => answered?,
            Either::Right(_) => {
                // The other end closed it: what came until then is all there will be.
                drop(driver);
                let (answer, _) = exchange.await?;
                return Ok((answer, None));
            }
        };
        let rest = driver.into_parts();
        let again = (settled && rest.read_buf.is_empty()).then(|| Self {
            stream: rest.io.into_inner(),
            presented: self.presented,
        });
        Ok((answer, again))
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tls = !self.presented.is_empty();
        f.debug_struct("Connection").field("tls", &tls).finish()
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
