//! One question over HTTP, on a connection of its own: what is asked and what the answer means is the
//! caller's.
//!
//! Where the scheme is `https` the server is judged by the system's roots. The deadline is over all of
//! it, from the name's resolution to the last byte; no more of an answer is kept than the caller
//! wants; redirects are not followed. Whoever drops the question drops its connection.

use futures::future::{Either, select};
use http::uri::Scheme;
use http::{HeaderValue, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Bytes};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use std::error::Error;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// How much of an answer that is none stands in an error.
const SAMPLE: usize = 512;

/// What was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The body, or as much of it as was wanted.
    pub body: Vec<u8>,
    /// Whether that is all of it.
    pub whole: bool,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// What was to be asked is no URL one can connect to.
    #[error("is not a URL of the form http://host:port")]
    Address,
    /// Nobody is there.
    #[error("cannot be connected to: {0}")]
    Unreachable(String),
    /// Somebody is there and cannot be trusted or understood.
    #[error("does not answer: {0}")]
    Broken(String),
    /// The deadline is over.
    #[error("does not answer within {0:?}")]
    Late(Duration),
}

impl Answer {
    /// The beginning of the body, for an error.
    pub fn sample(&self) -> String {
        let end = self.body.len().min(SAMPLE);
        String::from_utf8_lossy(&self.body[..end]).trim().to_owned()
    }
}

/// Asks. Of the answer's body `limit` bytes are kept.
pub async fn fetch(
    question: Request<Full<Bytes>>,
    limit: usize,
    patience: Duration,
) -> Result<Answer, Trouble> {
    // On the heap: a handshake is large, and most who ask have many others to wait for.
    let asking = timeout(patience, Box::pin(ask(question, limit)));
    asking.await.unwrap_or(Err(Trouble::Late(patience)))
}

/// Where a URL leads.
struct Place {
    host: String,
    port: u16,
    tls: bool,
}

fn place(url: &Uri) -> Result<Place, Trouble> {
    let tls = match url.scheme() {
        Some(scheme) if *scheme == Scheme::HTTP => false,
        Some(scheme) if *scheme == Scheme::HTTPS => true,
        _ => return Err(Trouble::Address),
    };
    let host = url.host().filter(|host| !host.is_empty());
    let host = host.ok_or(Trouble::Address)?;
    let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    Ok(Place {
        host: bare.unwrap_or(host).to_owned(),
        port: url.port_u16().unwrap_or(if tls { 443 } else { 80 }),
        tls,
    })
}

async fn ask(question: Request<Full<Bytes>>, limit: usize) -> Result<Answer, Trouble> {
    let place = place(question.uri())?;
    let stream = TcpStream::connect((place.host.as_str(), place.port))
        .await
        .map_err(|error| Trouble::Unreachable(error.to_string()))?;
    if !place.tls {
        return exchange(stream, question, limit).await;
    }
    let name = ServerName::try_from(place.host).map_err(|_| Trouble::Address)?;
    let stream = TlsConnector::from(trusting().await?)
        .connect(name, stream)
        .await
        .map_err(|error| broken(&error))?;
    exchange(stream, question, limit).await
}

/// Whom the system trusts.
async fn trusting() -> Result<Arc<ClientConfig>, Trouble> {
    let found = tokio::task::spawn_blocking(rustls_native_certs::load_native_certs).await;
    let found = found.map_err(|error| broken(&error))?;
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        let none = "there are no roots to judge its certificate by; install the system's CA \
                    certificates, or name a file of them in SSL_CERT_FILE";
        return Err(Trouble::Broken(none.into()));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| broken(&error))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    question: Request<Full<Bytes>>,
    limit: usize,
) -> Result<Answer, Trouble> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| broken(&error))?;
    let asking = pin!(async move {
        let answer = sender.send_request(addressed(question)?).await;
        let (head, body) = answer.map_err(|error| broken(&error))?.into_parts();
        let (body, whole) = gather(body, limit).await?;
        Ok(Answer {
            status: head.status,
            body,
            whole,
        })
    });
    match select(asking, pin!(connection)).await {
        Either::Left((answer, _)) => answer,
        // What came before the end is still to be read.
        Either::Right((_, asking)) => asking.await,
    }
}

/// The question as it stands on a connection: a path, and the host in a header.
fn addressed(mut question: Request<Full<Bytes>>) -> Result<Request<Full<Bytes>>, Trouble> {
    let url = question.uri();
    let path = url.path_and_query().map_or("/", |it| it.as_str());
    let path: Uri = path.parse().map_err(|_| Trouble::Address)?;
    let host = url.authority().ok_or(Trouble::Address)?;
    let host = HeaderValue::from_str(host.as_str()).map_err(|_| Trouble::Address)?;
    *question.uri_mut() = path;
    let headers = question.headers_mut();
    headers.insert(header::HOST, host);
    headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    Ok(question)
}

async fn gather(
    body: impl Body<Data = Bytes, Error = hyper::Error>,
    limit: usize,
) -> Result<(Vec<u8>, bool), Trouble> {
    let mut body = pin!(body);
    let mut kept = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| broken(&error))?.into_data() else {
            continue;
        };
        let room = limit - kept.len();
        if data.len() > room {
            kept.extend_from_slice(&data[..room]);
            return Ok((kept, false));
        }
        kept.extend_from_slice(&data);
    }
    Ok((kept, true))
}

/// What an error says, with what caused it.
fn broken(error: &dyn Error) -> Trouble {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(deeper) = cause {
        text = format!("{text}: {deeper}");
        cause = deeper.source();
    }
    Trouble::Broken(text)
}
