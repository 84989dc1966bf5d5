//! Connections to the API server, and to whoever else is asked for a document: one that many calls share where the server speaks HTTP/2, a few
//! that are taken in turn where it does not.
//!
//! A connection that fails a call is not used again. A call is never sent twice.

use super::credentials::NotAuthenticated;
use super::place::{NotTrusted, Place};
use http::{HeaderValue, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// No answer of the two APIs is near this.
const LARGEST_ANSWER: usize = 1 << 20;
/// Idle HTTP/1.1 connections that are kept.
const IDLE: usize = 16;

type Body = Full<Bytes>;

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// `Retry-After` in seconds, where the server asked for it.
    pub retry_after: Option<Duration>,
    /// The body.
    pub body: Bytes,
}

/// Why nothing came back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NotAnswered {
    /// Nobody listens there.
    #[error("{at} refused the connection")]
    Refused {
        /// Where.
        at: String,
    },
    /// No connection, or no handshake.
    #[error("no connection to {at}")]
    NotConnected {
        /// Where.
        at: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The connection ended in the middle.
    #[error("the connection broke before the answer")]
    Broken(#[source] hyper::Error),
    /// The deadline passed.
    #[error("no answer within {deadline:?}")]
    TooSlow {
        /// How long it had.
        deadline: Duration,
    },
    /// The answer is larger than any answer of the two APIs.
    #[error("the answer is larger than {LARGEST_ANSWER} bytes")]
    TooLarge,
    /// The body ended in the middle.
    #[error("the answer did not arrive in full")]
    NotWhole,
    /// A path that no request can have.
    #[error("{path:?} is not a path of the API")]
    PathNotUsable {
        /// The path.
        path: String,
    },
    /// Certificates or keys are missing.
    #[error("the handshake cannot be made")]
    NotTrusted(#[from] NotTrusted),
    /// There is no token.
    #[error("there is no token for the API server")]
    NotAuthenticated(#[from] NotAuthenticated),
}

/// The connections that exist.
#[derive(Debug, Default)]
pub(crate) struct Connections {
    kept: Mutex<Kept>,
    /// One dial at a time: callers that wait for it find the connection it made.
    dialling: tokio::sync::Mutex<()>,
}

#[derive(Debug, Default)]
struct Kept {
    shared: Option<http2::SendRequest<Body>>,
    idle: Vec<http1::SendRequest<Body>>,
}

enum Connection {
    Shared(http2::SendRequest<Body>),
    Alone(http1::SendRequest<Body>),
}

impl Connections {
    /// Sends one request on a connection that exists, or on a new one.
    pub(crate) async fn send(
        &self,
        place: &Place,
        mut request: Request<Body>,
    ) -> Result<Answer, NotAnswered> {
        let connection = match self.existing() {
            Some(connection) => connection,
            None => self.dialled(place).await?,
        };
        match connection {
            Connection::Shared(mut sender) => {
                let target = format!("https://{}{}", place.authority_header(), request.uri());
                let path = request.uri().to_string();
                *request.uri_mut() = target
                    .parse()
                    .map_err(|_| NotAnswered::PathNotUsable { path })?;
                let sent = sender.send_request(request).await;
                whole(sent.map_err(NotAnswered::Broken)?).await
            }
            Connection::Alone(mut sender) => {
                if let Ok(host) = HeaderValue::from_str(&place.authority_header()) {
                    request.headers_mut().insert(header::HOST, host);
                }
                let sent = sender.send_request(request).await;
                let answer = whole(sent.map_err(NotAnswered::Broken)?).await?;
                self.give_back(sender);
                Ok(answer)
            }
        }
    }

    fn existing(&self) -> Option<Connection> {
        let mut kept = self.kept();
        if let Some(sender) = kept.shared.as_ref().filter(|sender| !sender.is_closed()) {
            return Some(Connection::Shared(sender.clone()));
        }
        kept.shared = None;
        while let Some(sender) = kept.idle.pop() {
            if sender.is_ready() {
                return Some(Connection::Alone(sender));
            }
        }
        None
    }

    async fn dialled(&self, place: &Place) -> Result<Connection, NotAnswered> {
        let _alone = self.dialling.lock().await;
        match self.existing() {
            Some(connection) => Ok(connection),
            None => self.dial(place).await,
        }
    }

    async fn dial(&self, place: &Place) -> Result<Connection, NotAnswered> {
        let at = place.authority_header();
        let tls = TlsConnector::from(place.tls()?);
        let not_connected = |source: io::Error| match source.kind() {
            io::ErrorKind::ConnectionRefused => NotAnswered::Refused { at: at.clone() },
            _ => NotAnswered::NotConnected {
                at: at.clone(),
                source,
            },
        };
        let stream = TcpStream::connect((place.host.as_str(), place.port));
        let stream = stream.await.map_err(not_connected)?;
        stream.set_nodelay(true).map_err(not_connected)?;
        let stream = tls.connect(place.server_name.clone(), stream).await;
        let stream = stream.map_err(not_connected)?;
        let speaks_h2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        let io = TokioIo::new(stream);
        if !speaks_h2 {
            let (sender, driver) = http1::handshake(io).await.map_err(NotAnswered::Broken)?;
            tokio::spawn(driver);
            return Ok(Connection::Alone(sender));
        }
        let mut builder = http2::Builder::new(TokioExecutor::new());
        // A connection through a path that has gone silent must not swallow every later call.
        builder
            .timer(hyper_util::rt::TokioTimer::new())
            .keep_alive_interval(Duration::from_secs(15))
            .keep_alive_timeout(Duration::from_secs(5));
        let (sender, driver) = builder.handshake(io).await.map_err(NotAnswered::Broken)?;
        tokio::spawn(driver);
        self.kept().shared = Some(sender.clone());
        Ok(Connection::Shared(sender))
    }

    fn give_back(&self, sender: http1::SendRequest<Body>) {
        let mut kept = self.kept();
        if kept.idle.len() < IDLE {
            kept.idle.push(sender);
        }
    }

    /// Lets go of every connection: after a call that was too slow, the next one dials anew.
    pub(super) fn forget(&self) {
        *self.kept() = Kept::default();
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn whole(answer: http::Response<Incoming>) -> Result<Answer, NotAnswered> {
    let (parts, body) = answer.into_parts();
    let retry_after = parts.headers.get(header::RETRY_AFTER);
    let retry_after = retry_after.and_then(|value| value.to_str().ok()?.parse().ok());
    let body = Limited::new(body, LARGEST_ANSWER).collect().await;
    let body = body.map_err(|error| match error.is::<LengthLimitError>() {
        true => NotAnswered::TooLarge,
        false => NotAnswered::NotWhole,
    })?;
    Ok(Answer {
        status: parts.status,
        retry_after: retry_after.map(Duration::from_secs),
        body: body.to_bytes(),
    })
}
