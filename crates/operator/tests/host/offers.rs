//! Handshakes that offer exactly one thing: a version, a suite or a group.
//!
//! Debian's openssl offers what no library of ours can; a rustls client offers the post-quantum group,
//! which that openssl does not have. Only a handshake that comes about and a server's own refusal are
//! answers: anything else is a failure of the test.
#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::net::SocketAddr;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio_rustls::TlsConnector;

const PATIENCE: Duration = Duration::from_secs(30);

/// How something is offered.
#[derive(Clone, Copy)]
enum Client {
    /// By openssl with these words.
    Openssl(&'static [&'static str]),
    /// By rustls: this group alone.
    Rustls(&'static dyn rustls::crypto::SupportedKxGroup),
}

/// One thing that is offered, and in whose words.
pub(crate) struct Offer {
    pub(crate) what: &'static str,
    client: Client,
}

const fn openssl(what: &'static str, words: &'static [&'static str]) -> Offer {
    Offer {
        what,
        client: Client::Openssl(words),
    }
}

macro_rules! suite12 {
    ($name:literal) => {
        openssl(
            concat!("TLS 1.2 ", $name),
            &["-tls1_2", "-cipher", concat!($name, ":@SECLEVEL=0")],
        )
    };
}

macro_rules! suite13 {
    ($name:literal) => {
        openssl(
            concat!("TLS 1.3 ", $name),
            &["-tls1_3", "-ciphersuites", $name],
        )
    };
}

/// Everything that is offered to servers with an EC key.
pub(crate) const OFFERS: &[Offer] = &[
    openssl("TLS 1.0", &["-tls1", "-cipher", "ALL:@SECLEVEL=0"]),
    openssl("TLS 1.1", &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]),
    openssl("TLS 1.2", &["-tls1_2"]),
    openssl("TLS 1.3", &["-tls1_3"]),
    suite12!("ECDHE-ECDSA-AES128-GCM-SHA256"),
    suite12!("ECDHE-ECDSA-AES256-GCM-SHA384"),
    suite12!("ECDHE-ECDSA-CHACHA20-POLY1305"),
    suite12!("ECDHE-ECDSA-AES128-SHA256"),
    suite12!("ECDHE-ECDSA-AES128-SHA"),
    suite12!("AES128-GCM-SHA256"),
    suite12!("DHE-RSA-AES128-GCM-SHA256"),
    suite13!("TLS_AES_128_GCM_SHA256"),
    suite13!("TLS_AES_256_GCM_SHA384"),
    suite13!("TLS_CHACHA20_POLY1305_SHA256"),
    openssl("TLS 1.3, group X25519", &["-tls1_3", "-groups", "X25519"]),
    openssl("TLS 1.3, group secp256r1", &["-tls1_3", "-groups", "P-256"]),
    openssl("TLS 1.3, group secp384r1", &["-tls1_3", "-groups", "P-384"]),
    openssl("TLS 1.3, group secp521r1", &["-tls1_3", "-groups", "P-521"]),
    Offer {
        what: "TLS 1.3, group X25519MLKEM768",
        client: Client::Rustls(rustls::crypto::aws_lc_rs::kx_group::X25519MLKEM768),
    },
];

/// The versions alone.
pub(crate) const VERSIONS: &[Offer] = &[
    openssl("1.0", &["-tls1", "-cipher", "ALL:@SECLEVEL=0"]),
    openssl("1.1", &["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]),
    openssl("1.2", &["-tls1_2"]),
    openssl("1.3", &["-tls1_3"]),
];

/// Makes every offer of these; what became of each, in their order.
pub(crate) async fn make(offers: &[Offer], to: SocketAddr) -> Vec<bool> {
    join_all(offers.iter().map(|offer| accepted(offer, to))).await
}

async fn accepted(offer: &Offer, to: SocketAddr) -> bool {
    let said = match offer.client {
        Client::Openssl(words) => {
            let said = s_client(to, words).await;
            judge(&said).ok_or(said)
        }
        Client::Rustls(group) => handshake(to, group).await,
    };
    said.unwrap_or_else(|said| panic!("{}: neither taken nor refused: {said}", offer.what))
}

/// Whether a handshake came about or was refused by the server; none for anything else.
fn judge(said: &str) -> Option<bool> {
    let taken = said.contains("Cipher is ") && !said.contains("Cipher is (NONE)");
    let refused = said.contains("SSL alert number 40") || said.contains("SSL alert number 70");
    match (taken, refused) {
        (true, false) => Some(true),
        (false, true) => Some(false),
        _ => None,
    }
}

/// What openssl prints of a handshake.
pub(crate) async fn s_client(to: SocketAddr, words: &[&str]) -> String {
    keelson_testbed::provide_openssl().expect("openssl");
    let client = Command::new("openssl")
        .args(["s_client", "-connect", &to.to_string()])
        .args(words)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(PATIENCE, client).await;
    let output = output.expect("in time").expect("openssl");
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

/// A handshake of TLS 1.3 that offers one group.
async fn handshake(
    to: SocketAddr,
    group: &'static dyn rustls::crypto::SupportedKxGroup,
) -> Result<bool, String> {
    let provider = Arc::new(CryptoProvider {
        kx_groups: vec![group],
        ..rustls::crypto::aws_lc_rs::default_provider()
    });
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .map_err(|error| error.to_string())?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
        .with_no_client_auth();
    let stream = TcpStream::connect(to).await.map_err(|it| it.to_string())?;
    let name = ServerName::try_from("webhook").map_err(|it| it.to_string())?;
    let attempt = TlsConnector::from(Arc::new(config)).connect(name, stream);
    let attempt = tokio::time::timeout(PATIENCE, attempt).await;
    match attempt.map_err(|_| "no answer".to_owned())? {
        Ok(_) => Ok(true),
        Err(error) if error.to_string().contains("HandshakeFailure") => Ok(false),
        Err(error) => Err(error.to_string()),
    }
}

/// Who is met does not matter here, only what is agreed upon.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
