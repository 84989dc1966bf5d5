//! Bytes there and back: a request is sent as it is written, an answer is read as it comes, and no
//! library makes either nicer.

use crate::upstream::header;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, DigitallySignedStruct, ProtocolVersion, RootCertStore, SignatureScheme,
};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// How long an answer may take. The reference asks a failing API server for five seconds.
const DEADLINE: Duration = Duration::from_secs(20);

/// An answer without what differs from one second to the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Answer {
    /// None if the connection was closed without a word.
    pub(crate) status: Option<u16>,
    /// `name: value`, names in lower case, sorted, without `date`.
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
    /// Whether the body ended before its announced length.
    pub(crate) cut_short: bool,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let start = format!("{name}: ");
        self.headers.iter().find_map(|it| it.strip_prefix(&start))
    }
}

/// Where a request goes, and whether TLS is spoken there.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) address: SocketAddr,
    pub(crate) tls: Option<Arc<ClientConfig>>,
}

impl Door {
    /// Sends these bytes on a connection of their own and reads one answer.
    pub(crate) async fn exchange(&self, request: &[u8]) -> Answer {
        let stream = TcpStream::connect(self.address)
            .await
            .expect("a connection");
        let head_only = request.starts_with(b"HEAD ");
        let answered = match &self.tls {
            None => timeout(DEADLINE, converse(stream, request, head_only)).await,
            Some(config) => {
                let connected = secured(stream, Arc::clone(config)).await;
                let stream = connected.expect("a handshake");
                timeout(DEADLINE, converse(stream, request, head_only)).await
            }
        };
        answered.unwrap_or_else(|_| Answer {
            body: format!("no answer within {DEADLINE:?}"),
            ..Answer::default()
        })
    }

    /// A connection with TLS that offers these protocols, and the one agreed on.
    pub(crate) async fn handshake(
        &self,
        authority: &str,
        alpn: &[&str],
    ) -> (TlsStream<TcpStream>, Option<String>) {
        let stream = TcpStream::connect(self.address)
            .await
            .expect("a connection");
        let stream = secured(stream, trusting(authority, alpn)).await;
        let stream = stream.expect("a handshake");
        let agreed = stream.get_ref().1.alpn_protocol();
        let agreed = agreed.map(|it| String::from_utf8_lossy(it).into_owned());
        (stream, agreed)
    }

    /// The version of TLS a client gets that speaks these; none if there is no handshake.
    pub(crate) async fn version(
        &self,
        authority: &str,
        versions: &[ProtocolVersion],
    ) -> Option<ProtocolVersion> {
        let known: Vec<_> = rustls::ALL_VERSIONS
            .iter()
            .copied()
            .filter(|it| versions.contains(&it.version))
            .collect();
        let config = ClientConfig::builder_with_protocol_versions(&known)
            .with_root_certificates(roots(authority))
            .with_no_client_auth();
        let stream = TcpStream::connect(self.address)
            .await
            .expect("a connection");
        let stream = secured(stream, Arc::new(config)).await.ok()?;
        stream.get_ref().1.protocol_version()
    }
}

/// A connection with TLS; whatever the name, the address is the same.
async fn secured(
    stream: TcpStream,
    config: Arc<ClientConfig>,
) -> std::io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    let connecting = TlsConnector::from(config).connect(name, stream);
    timeout(DEADLINE, connecting)
        .await
        .expect("a handshake in time")
}

/// The certificate a server shows to a client that believes nobody.
pub(crate) async fn leaf(address: SocketAddr) -> Vec<u8> {
    let shown = Arc::new(Shown::default());
    let mut config = ClientConfig::builder()
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let seen: Arc<dyn ServerCertVerifier> = Arc::clone(&shown) as _;
    config.dangerous().set_certificate_verifier(seen);
    let stream = TcpStream::connect(address).await.expect("a connection");
    let refused = secured(stream, Arc::new(config)).await;
    assert!(refused.is_err(), "it believes nobody");
    let kept = shown.0.get();
    kept.expect("a certificate").to_vec()
}

/// Keeps the certificate and refuses it.
#[derive(Debug, Default)]
struct Shown(OnceLock<CertificateDer<'static>>);

impl ServerCertVerifier for Shown {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let _ = self.0.set(leaf.clone().into_owned());
        Err(rustls::Error::General("it was only looked at".to_owned()))
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _leaf: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("it was only looked at".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verify_tls12_signature(message, leaf, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![
            SignatureScheme::ECDSA_NISTP256_SHA256,
            SignatureScheme::RSA_PSS_SHA256,
        ]
    }
}

async fn converse<S>(stream: S, request: &[u8], head_only: bool) -> Answer
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // A request that is refused early is not read to its end.
    let (mut reading, mut writing) = tokio::io::split(stream);
    let (answer, _) = tokio::join!(answer(&mut reading, head_only), writing.write_all(request));
    answer
}

/// Reads one answer; interim ones are skipped.
pub(crate) async fn answer<S: AsyncRead + Unpin>(stream: &mut S, head_only: bool) -> Answer {
    loop {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) if head.is_empty() => return Answer::default(),
                Err(_) => panic!("half a head: {:?}", String::from_utf8_lossy(&head)),
            }
        }
        let head = String::from_utf8_lossy(&head).into_owned();
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok());
        let status: u16 = status.expect("a status");
        if (100..200).contains(&status) && status != 101 {
            continue;
        }
        let bodiless = head_only || matches!(status, 101 | 204 | 304);
        let (body, cut_short) = match bodiless {
            true => (Vec::new(), false),
            false => body(stream, &head).await,
        };
        return Answer {
            status: Some(status),
            headers: lines(&head),
            body: String::from_utf8_lossy(&body).into_owned(),
            cut_short,
        };
    }
}

async fn body<S: AsyncRead + Unpin>(stream: &mut S, head: &str) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    if header(head, "transfer-encoding").is_some() {
        while !last_chunk(&bytes) {
            match stream.read_u8().await {
                Ok(byte) => bytes.push(byte),
                Err(_) => return (bytes, true),
            }
        }
        // Like those of headers, names of trailers are the same in any letters.
        let end = bytes.windows(5).position(|it| it == b"\r\n0\r\n");
        bytes[end.unwrap_or(0)..].make_ascii_lowercase();
        return (bytes, false);
    }
    let Some(length) = header(head, "content-length") else {
        let _ = stream.read_to_end(&mut bytes).await;
        return (bytes, false);
    };
    let length: u64 = length.parse().expect("a length");
    let _ = stream.take(length).read_to_end(&mut bytes).await;
    let short = u64::try_from(bytes.len()).expect("small") < length;
    (bytes, short)
}

/// Whether a body in chunks is whole; trailers may follow its last chunk.
fn last_chunk(bytes: &[u8]) -> bool {
    let begun = bytes.starts_with(b"0\r\n") || bytes.windows(5).any(|it| it == b"\r\n0\r\n");
    begun && bytes.ends_with(b"\r\n\r\n")
}

fn lines(head: &str) -> Vec<String> {
    let mut lines: Vec<String> = head
        .split("\r\n")
        .skip(1)
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| format!("{}: {}", name.to_lowercase(), value.trim()))
        .filter(|line| !line.starts_with("date: "))
        .collect();
    lines.sort();
    lines
}

/// A client that trusts this authority and offers these protocols.
pub(crate) fn trusting(authority: &str, alpn: &[&str]) -> Arc<ClientConfig> {
    let mut config = ClientConfig::builder()
        .with_root_certificates(roots(authority))
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|it| it.as_bytes().to_vec()).collect();
    Arc::new(config)
}

fn roots(authority: &str) -> RootCertStore {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(authority.as_bytes()).expect("PEM");
    roots.add(root).expect("a root");
    roots
}
