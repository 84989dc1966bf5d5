//! What a pod of webhook or metrics serves, seen by clients that trust one bundle and offer one version.

use super::Replica;
use keelson_testbed::{Cluster, exchange};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::version::{TLS12, TLS13};
use rustls::{
    ALL_VERSIONS, ClientConfig, ClientConnection, RootCertStore, StreamOwned,
    SupportedProtocolVersion,
};
use std::io;
use std::net::TcpStream;
use std::sync::Arc;

/// A review as the API server asks for one.
pub(super) const REVIEW: &str = r#"{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","object":{"metadata":{}}}}"#;
/// Where the time of a mutation is asked for.
pub(super) const TIMESTAMP: &str = "POST /nodenetworkconfigurationpolicies-timestamp-mutate";

/// Who trusts a bundle, in PEM, and nobody else.
pub(super) struct Wire<'a> {
    pub(super) cluster: &'a Cluster,
    pub(super) bundle: Vec<u8>,
}

impl Wire<'_> {
    /// The authorities in the bundle.
    pub(super) fn roots(&self) -> Vec<CertificateDer<'static>> {
        let roots = CertificateDer::pem_slice_iter(&self.bundle);
        roots.filter_map(Result::ok).collect()
    }

    /// A connection after its handshake.
    pub(super) fn handshake(
        &self,
        replica: &Replica,
        versions: &[&'static SupportedProtocolVersion],
    ) -> io::Result<StreamOwned<ClientConnection, TcpStream>> {
        let mut roots = RootCertStore::empty();
        for root in self.roots() {
            roots.add(root).map_err(io::Error::other)?;
        }
        let mut config = ClientConfig::builder_with_protocol_versions(versions)
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.resumption = rustls::client::Resumption::disabled();
        let name = ServerName::try_from(replica.service()).map_err(io::Error::other)?;
        let client = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(client, self.cluster.connect(replica.serves())?);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(stream)
    }

    /// What it answers: the status and the body.
    pub(super) fn ask(
        &self,
        replica: &Replica,
        line: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<(u16, String), String> {
        let answer = self
            .handshake(replica, ALL_VERSIONS)
            .and_then(|stream| exchange(stream, line, headers, body));
        answer.map_err(|error| format!("{}: {error}", replica.name))
    }

    /// Whether clients with TLS 1.2 alone, and with TLS 1.3 alone, get a session.
    pub(super) fn sessions(&self, replica: &Replica) -> Result<[bool; 2], String> {
        let session = |version| match self.handshake(replica, &[version]) {
            Ok(_) => Ok(true),
            Err(error) if is_refusal(&error) => Ok(false),
            Err(error) => Err(format!("{}: {error}", replica.name)),
        };
        Ok([session(&TLS12)?, session(&TLS13)?])
    }
}

/// Whether the server itself said no; a connection that failed says nothing about a profile.
fn is_refusal(error: &io::Error) -> bool {
    let inner = error.get_ref().and_then(|it| it.downcast_ref());
    matches!(inner, Some(rustls::Error::AlertReceived(_)))
}
