//! TLS on both sides of the proxy: what callers are shown and whom the proxy trusts.

use super::NotStarted;
use crate::pki::{Authority, Identity};
use rustls::{
    ClientConfig, RootCertStore, ServerConfig,
    crypto::{CryptoProvider, aws_lc_rs},
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
};
use std::{net::IpAddr, sync::Arc};

/// HTTP/1.1 alone: one call at a time on a connection, so that a fault of a connection is a fault
/// of one call.
const PROTOCOL: &[u8] = b"http/1.1";

/// A listener's configuration with a certificate from this authority that is good for this address.
pub(super) fn server(
    authority: &Authority,
    address: IpAddr,
) -> Result<Arc<ServerConfig>, NotStarted> {
    let Identity { certificate, key } = authority
        .server(&[&address.to_string(), "localhost"])
        .map_err(NotStarted::CertificateNotMade)?;
    let certificates = certificates(&certificate)?;
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(NotStarted::PemNotRead)?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .and_then(|config| {
            config
                .with_no_client_auth()
                .with_single_cert(certificates, key)
        })
        .map_err(NotStarted::TlsNotConfigured)?;
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Arc::new(config))
}

/// A client's configuration that trusts this authority alone.
pub(super) fn client(authority: &Authority) -> Result<Arc<ClientConfig>, NotStarted> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(authority.certificate())? {
        roots
            .add(certificate)
            .map_err(NotStarted::TlsNotConfigured)?;
    }
    let mut config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(NotStarted::TlsNotConfigured)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![PROTOCOL.to_vec()];
    Ok(Arc::new(config))
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, NotStarted> {
    CertificateDer::pem_slice_iter(pem.as_bytes())
        .collect::<Result<_, _>>()
        .map_err(NotStarted::PemNotRead)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}
