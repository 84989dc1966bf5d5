//! Two ends of a connection: in memory for many handshakes, on loopback for real ones; and a folder
//! mounted the way the kubelet mounts a Secret.

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, ClientConnection, DigitallySignedStruct, ServerConfig, ServerConnection,
    SignatureScheme, SupportedProtocolVersion,
};
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use keelson_tls::{CurrentConfig, TlsListener};

/// Long enough for a busy machine; nothing waits this long when all is well.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// A client that takes any certificate: what is looked at is the rest of the handshake.
#[derive(Debug)]
struct Gullible(Arc<CryptoProvider>);

impl ServerCertVerifier for Gullible {
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
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

/// A client with these suites, groups and versions.
pub(crate) fn client_of(
    provider: CryptoProvider,
    versions: &[&'static SupportedProtocolVersion],
) -> Arc<ClientConfig> {
    let provider = Arc::new(provider);
    let config = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(versions)
        .expect("versions")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Gullible(provider)))
        .with_no_client_auth();
    Arc::new(config)
}

/// A client with the library's defaults.
pub(crate) fn default_client() -> Arc<ClientConfig> {
    client_of(default_provider(), rustls::DEFAULT_VERSIONS)
}

/// A handshake in memory; both ends as they are after it.
pub(crate) fn shake(
    client: &Arc<ClientConfig>,
    server: &Arc<ServerConfig>,
) -> Result<(ClientConnection, ServerConnection), rustls::Error> {
    let name = ServerName::try_from("node-0").expect("a name");
    let mut client = ClientConnection::new(Arc::clone(client), name)?;
    let mut server = ServerConnection::new(Arc::clone(server))?;
    while client.is_handshaking() || server.is_handshaking() {
        let mut wire = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut wire).expect("memory");
        }
        feed(&wire, |rest| server.read_tls(rest));
        server.process_new_packets()?;
        let mut wire = Vec::new();
        while server.wants_write() {
            server.write_tls(&mut wire).expect("memory");
        }
        feed(&wire, |rest| client.read_tls(rest));
        client.process_new_packets()?;
    }
    Ok((client, server))
}

fn feed(mut wire: &[u8], mut read: impl FnMut(&mut &[u8]) -> io::Result<usize>) {
    while !wire.is_empty() {
        read(&mut wire).expect("memory");
    }
}

/// A server on loopback that answers every byte with the same byte.
pub(crate) async fn echo(configs: impl CurrentConfig) -> SocketAddr {
    let socket = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let mut listener = TlsListener::new(socket, configs);
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await;
            tokio::spawn(async move {
                while let Ok(byte) = stream.read_u8().await {
                    if stream.write_u8(byte).await.is_err() || stream.flush().await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// A configuration that never changes, as a listener wants it.
pub(crate) fn fixed(config: ServerConfig) -> Arc<arc_swap::ArcSwap<ServerConfig>> {
    Arc::new(arc_swap::ArcSwap::from_pointee(config))
}

/// Connects and sends one byte there and back: the handshake is over on both sides, whatever the
/// version.
pub(crate) async fn dial(
    address: SocketAddr,
    client: &Arc<ClientConfig>,
) -> io::Result<TlsStream<TcpStream>> {
    let stream = TcpStream::connect(address).await?;
    let name = ServerName::try_from("node-0").expect("a name");
    let connector = TlsConnector::from(Arc::clone(client));
    let mut stream = connector.connect(name, stream).await?;
    assert_eq!(ping(&mut stream, 7).await?, 7);
    Ok(stream)
}

/// Sends one byte and awaits the answer.
pub(crate) async fn ping(stream: &mut TlsStream<TcpStream>, byte: u8) -> io::Result<u8> {
    stream.write_u8(byte).await?;
    stream.flush().await?;
    stream.read_u8().await
}

/// The leaf a connection's server presented.
pub(crate) fn leaf(stream: &TlsStream<TcpStream>) -> keelson_tls::Fingerprint {
    let chain = stream.get_ref().1.peer_certificates().expect("a chain");
    keelson_tls::Fingerprint::of(&chain[0])
}

/// A folder as the kubelet mounts a Secret: each file a link through `..data`, which is itself a
/// link to a folder of its own for each version.
pub(crate) struct Mount {
    folder: PathBuf,
    version: AtomicU64,
}

impl Mount {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let name = format!(
            "mount-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::SeqCst)
        );
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        // A process of the same number may have left one behind.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).expect("a folder");
        let mount = Self {
            folder,
            version: AtomicU64::new(0),
        };
        mount.swap(files);
        mount
    }

    /// Puts another version in place in one step and removes the one before.
    pub(crate) fn swap(&self, files: &[(&str, &str)]) {
        let data = self.folder.join("..data");
        let old = fs::read_link(&data).ok();
        let version = format!("..version_{}", self.version.fetch_add(1, Ordering::SeqCst));
        fs::create_dir(self.folder.join(&version)).expect("a folder");
        for (name, content) in files {
            fs::write(self.folder.join(&version).join(name), content).expect("a file");
        }
        let next = self.folder.join("..data_tmp");
        std::os::unix::fs::symlink(&version, &next).expect("a link");
        fs::rename(&next, &data).expect("a swap");
        for (name, _) in files {
            let link = self.folder.join(name);
            if !link.is_symlink() {
                let target = Path::new("..data").join(name);
                std::os::unix::fs::symlink(target, link).expect("a link");
            }
        }
        if let Some(old) = old {
            fs::remove_dir_all(self.folder.join(old)).expect("the old version");
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}
