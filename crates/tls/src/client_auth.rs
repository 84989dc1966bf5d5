//! What a server asks of its clients' certificates, and the authorities that vouch for them.
//!
//! Who the certificate makes the client is not known here: the proxy reads user and groups from the
//! subject, after [`Authorities::verify`].

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature,
};
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{DigitallySignedStruct, DistinguishedName, RootCertStore, SignatureScheme};
use std::sync::Arc;

use crate::pair::chain;

/// What clients are asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClientAuth {
    /// Nothing.
    #[default]
    None,
    /// A certificate of the authorities, or none; a foreign one ends the handshake.
    Optional,
    /// A certificate of the authorities.
    Required,
    /// Any certificate, or none. The handshake proves only that the client has its key; the chain is
    /// the caller's to check, by request, with [`Authorities::verify`].
    Deferred,
}

/// Why a bundle of authorities is not usable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AuthorityError {
    /// Nothing in it.
    #[error("the CA file holds no certificate")]
    Missing,
    /// Broken, or no certificate an authority can have.
    #[error("the CA file holds something that is not a CA certificate")]
    Unreadable,
    /// A mode that needs authorities, without them.
    #[error("client certificates are to be checked and no CA file is given")]
    NotGiven,
}

/// A bundle of authorities.
#[derive(Clone, Debug)]
pub struct Authorities {
    roots: Arc<RootCertStore>,
    certificates: Vec<CertificateDer<'static>>,
    clients: Arc<dyn ClientCertVerifier>,
}

impl Authorities {
    /// Reads a PEM bundle. Every certificate in it must be readable: half a bundle trusts too few.
    pub fn from_pem(pem: &[u8]) -> Result<Self, AuthorityError> {
        let certificates = chain(pem).map_err(|_| AuthorityError::Unreadable)?;
        if certificates.is_empty() {
            return Err(AuthorityError::Missing);
        }
        let mut roots = RootCertStore::empty();
        for certificate in &certificates {
            roots
                .add(certificate.clone())
                .map_err(|_| AuthorityError::Unreadable)?;
        }
        let roots = Arc::new(roots);
        let provider = Arc::new(default_provider());
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), provider)
            .build()
            .map_err(|_| AuthorityError::Unreadable)?;
        Ok(Self {
            roots,
            certificates,
            clients,
        })
    }

    /// Whether a client's chain, leaf first, leads to these authorities at this time and may be
    /// used by a client.
    pub fn verify(&self, chain: &[CertificateDer<'_>], now: UnixTime) -> Result<(), rustls::Error> {
        let (leaf, rest) = chain
            .split_first()
            .ok_or(rustls::Error::NoCertificatesPresented)?;
        self.clients.verify_client_cert(leaf, rest, now).map(|_| ())
    }

    pub(crate) fn roots(&self) -> &RootCertStore {
        &self.roots
    }

    /// Whether this very certificate is one of the bundle.
    pub(crate) fn holds(&self, certificate: &CertificateDer<'_>) -> bool {
        self.certificates.iter().any(|it| it == certificate)
    }
}

/// The verifier for a mode; `None` asks for nothing.
pub(crate) fn verifier(
    mode: ClientAuth,
    authorities: Option<&Authorities>,
    provider: &Arc<CryptoProvider>,
) -> Result<Option<Arc<dyn ClientCertVerifier>>, AuthorityError> {
    let builder = || {
        let roots = authorities.ok_or(AuthorityError::NotGiven)?.roots.clone();
        Ok(WebPkiClientVerifier::builder_with_provider(
            roots,
            Arc::clone(provider),
        ))
    };
    let built = match mode {
        ClientAuth::None => return Ok(None),
        ClientAuth::Deferred => return Ok(Some(Arc::new(Unchecked::new(provider)))),
        ClientAuth::Optional => builder()?.allow_unauthenticated().build(),
        ClientAuth::Required => builder()?.build(),
    };
    built.map(Some).map_err(|_| AuthorityError::Unreadable)
}

/// Takes any certificate whose key the client has, and hints at no authority.
#[derive(Debug)]
struct Unchecked {
    algorithms: WebPkiSupportedAlgorithms,
}

impl Unchecked {
    fn new(provider: &CryptoProvider) -> Self {
        Self {
            algorithms: provider.signature_verification_algorithms,
        }
    }
}

impl ClientCertVerifier for Unchecked {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _leaf: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}
