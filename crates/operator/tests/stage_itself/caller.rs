//! Calls proxies and sidecars as an operator would: by a node's name, at the one address.

use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, HOST};
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use keelson_render::names;
use keelson_tls::{Pins, pinned};
use rustls::pki_types::ServerName;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use crate::stage::Scene;

/// How long an answer may take; what is meant to hang is seen to hang for `HANGS`.
const ANSWERS: Duration = Duration::from_secs(20);
pub(crate) const HANGS: Duration = Duration::from_millis(300);

/// The id of a test's so-manieth task.
pub(crate) fn task_id(number: u32) -> String {
    format!("6b1f3a5e-0000-4000-8000-{number:012}")
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    /// An answer; its body is null where it is no JSON.
    Answer(u16, Value),
    /// The connection ended before there was a whole answer.
    Closed,
}

impl Told {
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Answer(status, _) => Some(*status),
            Self::Closed => None,
        }
    }

    pub(crate) fn body(&self) -> &Value {
        match self {
            Self::Answer(_, body) => body,
            Self::Closed => &Value::Null,
        }
    }
}

/// A caller of one node.
#[derive(Clone)]
pub(crate) struct Caller<'a> {
    pub(crate) scene: &'a Scene,
    pub(crate) node: &'a str,
    pub(crate) token: Option<&'a str>,
    /// The authority whose certificates are accepted; without one, plaintext.
    pub(crate) trusted: Option<&'a str>,
    /// A port to be named after the host.
    pub(crate) port: Option<u16>,
}

impl<'a> Caller<'a> {
    /// A caller with a token, in plaintext.
    pub(crate) fn new(scene: &'a Scene, node: &'a str) -> Self {
        Self {
            scene,
            node,
            token: Some("a-token"),
            trusted: None,
            port: None,
        }
    }

    /// The same without a token.
    pub(crate) fn anonymous(&self) -> Self {
        Self {
            token: None,
            ..self.clone()
        }
    }

    /// The same with TLS, by this authority.
    pub(crate) fn over_tls(&self, authority: &'a str) -> Self {
        Self {
            trusted: Some(authority),
            ..self.clone()
        }
    }

    pub(crate) fn host(&self) -> String {
        let [_, pod] = names::dns(self.node, self.scene.namespace());
        pod
    }

    pub(crate) async fn get(&self, path: &str) -> Told {
        self.call(Method::GET, path, String::new()).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Told {
        self.call(Method::DELETE, path, String::new()).await
    }

    /// Submits a task.
    pub(crate) async fn submit(&self, id: &str, type_: &str, params: Value) -> Told {
        let body = serde_json::json!({ "id": id, "type": type_, "params": params });
        self.call(Method::POST, "/v0/tasks", body.to_string()).await
    }

    /// The status of a task.
    pub(crate) async fn task(&self, id: &str) -> String {
        let told = self.get(&format!("/v0/tasks/{id}")).await;
        told.body()["status"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Makes one call on a connection of its own.
    pub(crate) async fn call(&self, method: Method, path: &str, body: String) -> Told {
        let calling = self.try_call(method, path, body);
        timeout(ANSWERS, calling)
            .await
            .expect("an answer in time")
            .unwrap_or(Told::Closed)
    }

    async fn try_call(&self, method: Method, path: &str, body: String) -> Option<Told> {
        let stream = self.dial().await;
        let request = self.request(method, path, body);
        let Some(authority) = self.trusted else {
            return exchange(&mut shake(stream).await?, request).await;
        };
        let pins = Pins::authorities(authority.as_bytes(), &[self.host()]).expect("pins");
        let config = pinned(pins, &[]).expect("a configuration");
        let name = ServerName::try_from(self.host()).expect("a name");
        let connector = TlsConnector::from(Arc::new(config));
        let stream = connector.connect(name, stream).await.ok()?;
        exchange(&mut shake(stream).await?, request).await
    }

    /// A connection in plaintext that is kept for many calls.
    pub(crate) async fn connect(&self) -> Kept<'a> {
        let sender = shake(self.dial().await).await;
        Kept {
            caller: self.clone(),
            sender: sender.expect("a connection"),
        }
    }

    async fn dial(&self) -> TcpStream {
        let address = self.scene.stage().address();
        TcpStream::connect(address).await.expect("a connection")
    }

    fn request(&self, method: Method, path: &str, body: String) -> Request<Full<Bytes>> {
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header(HOST, format!("{}{port}", self.host()));
        if let Some(token) = self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        request.body(Full::from(body)).expect("a request")
    }
}

/// A connection that is kept.
pub(crate) struct Kept<'a> {
    caller: Caller<'a>,
    sender: Sender,
}

impl Kept<'_> {
    pub(crate) async fn get(&mut self, path: &str) -> Told {
        let request = self.caller.request(Method::GET, path, String::new());
        let told = timeout(ANSWERS, exchange(&mut self.sender, request)).await;
        told.expect("an answer in time").unwrap_or(Told::Closed)
    }
}

type Sender = http1::SendRequest<Full<Bytes>>;

async fn shake<S>(stream: S) -> Option<Sender>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.ok()?;
    tokio::spawn(connection);
    Some(sender)
}

async fn exchange(sender: &mut Sender, request: Request<Full<Bytes>>) -> Option<Told> {
    sender.ready().await.ok()?;
    let response = sender.send_request(request).await.ok()?;
    let status: StatusCode = response.status();
    let body = response.into_body().collect().await.ok()?.to_bytes();
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Some(Told::Answer(status.as_u16(), body))
}
