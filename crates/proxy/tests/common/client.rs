//! A client that speaks TLS, with a certificate or without, and keeps its connection.

use super::pki::{Ca, Held};
use super::program::SOON;
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// What came back: the status, and the body, which is what the upstream saw if it came from there.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: StatusCode,
    pub(crate) body: String,
}

impl Said {
    /// The header the upstream got.
    pub(crate) fn saw(&self, name: &str) -> Option<&str> {
        let prefix = format!("{name}: ");
        self.body
            .lines()
            .find_map(|line| line.strip_prefix(&prefix))
    }
}

pub(crate) struct Connection(SendRequest<Full<Bytes>>);

impl Connection {
    /// Connects to a server of this authority, as the holder of a certificate or as nobody.
    pub(crate) async fn open(address: SocketAddr, server: &Ca, held: Option<&Held>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(server.der.clone()).expect("an authority");
        let builder = ClientConfig::builder().with_root_certificates(roots);
        let config = match held {
            None => builder.with_no_client_auth(),
            Some(held) => builder
                .with_client_auth_cert(vec![held.der.clone()], held.key())
                .expect("a pair"),
        };
        Self::configured(address, config).await
    }

    pub(crate) async fn configured(address: SocketAddr, config: ClientConfig) -> Self {
        let stream = TcpStream::connect(address).await.expect("a connection");
        let name = address.ip().into();
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream);
        let stream = timeout(SOON, stream).await.expect("in time");
        let stream = TokioIo::new(stream.expect("a handshake"));
        let (sender, driver) = hyper::client::conn::http1::handshake(stream)
            .await
            .expect("HTTP");
        tokio::spawn(driver);
        Self(sender)
    }

    /// Asks for the tasks.
    pub(crate) async fn ask(&mut self, authorization: Option<&str>) -> Said {
        let mut request = Request::get("/v0/tasks").header("host", "node");
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let request = request.body(Full::default()).expect("a request");
        let answer = timeout(SOON, self.0.send_request(request)).await;
        let (parts, body) = answer.expect("in time").expect("an answer").into_parts();
        let body = body.collect().await.expect("a body").to_bytes();
        Said {
            status: parts.status,
            body: String::from_utf8_lossy(&body).into_owned(),
        }
    }
}
