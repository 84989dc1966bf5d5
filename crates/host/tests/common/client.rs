//! A client that speaks TLS with exactly the versions it is told to, one request to a connection.

use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use keelson_testbed::Authority;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore, SupportedProtocolVersion};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Nothing on loopback takes longer, however busy the machine.
const SOON: Duration = Duration::from_secs(20);

/// An answer.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: StatusCode,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: String,
}

/// Who connects.
#[derive(Clone)]
pub(crate) struct Tls(Arc<ClientConfig>);

impl Tls {
    /// A client that trusts this authority, in PEM, and offers all versions.
    pub(crate) fn trusting(pem: &str) -> Self {
        Self::offering(pem, rustls::ALL_VERSIONS)
    }

    /// The same with these versions alone.
    pub(crate) fn offering(pem: &str, versions: &[&'static SupportedProtocolVersion]) -> Self {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(pem.as_bytes()).expect("a certificate");
        roots.add(root).expect("an authority");
        let mut config = ClientConfig::builder_with_protocol_versions(versions)
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        config.resumption = rustls::client::Resumption::disabled();
        Self(Arc::new(config))
    }

    /// A client of a test's authority.
    pub(crate) fn of(authority: &Authority) -> Self {
        Self::trusting(authority.certificate())
    }

    /// A handshake; the error in words.
    pub(crate) async fn connect(&self, to: SocketAddr) -> Result<TlsStream<TcpStream>, String> {
        let attempt = async {
            let stream = TcpStream::connect(to).await.map_err(|it| it.to_string())?;
            let name = ServerName::try_from("localhost").expect("a name");
            let connector = TlsConnector::from(Arc::clone(&self.0));
            connector
                .connect(name, stream)
                .await
                .map_err(|it| it.to_string())
        };
        timeout(SOON, attempt)
            .await
            .map_err(|_| "no handshake in time".to_owned())?
    }

    /// One request on a connection of its own.
    pub(crate) async fn ask(
        &self,
        to: SocketAddr,
        request: Request<Full<Bytes>>,
    ) -> Result<Said, String> {
        let stream = TokioIo::new(self.connect(to).await?);
        let asked = async {
            let (mut sender, driver) = hyper::client::conn::http1::handshake(stream).await?;
            let driver = tokio::spawn(driver);
            let (parts, body) = sender.send_request(request).await?.into_parts();
            let body = body.collect().await?.to_bytes();
            driver.abort();
            Ok::<_, hyper::Error>(Said {
                status: parts.status,
                headers: parts.headers,
                body: String::from_utf8_lossy(&body).into_owned(),
            })
        };
        let said = timeout(SOON, asked).await;
        said.map_err(|_| "no answer in time".to_owned())?
            .map_err(|error| error.to_string())
    }

    /// GET, with a token or without.
    pub(crate) async fn get(&self, to: SocketAddr, path: &str, token: &str) -> Said {
        let mut request = Request::get(path).header("host", "localhost");
        if !token.is_empty() {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        let request = request.body(Full::default()).expect("a request");
        self.ask(to, request).await.expect("an answer")
    }

    /// POST of JSON.
    pub(crate) async fn post(&self, to: SocketAddr, path: &str, body: impl Into<Bytes>) -> Said {
        let request = Request::post(path)
            .header("host", "localhost")
            .header("content-type", "application/json")
            .body(Full::new(body.into()))
            .expect("a request");
        self.ask(to, request).await.expect("an answer")
    }
}
