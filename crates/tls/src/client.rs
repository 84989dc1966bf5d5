//! A client that trusts exactly what it was told to: one bundle of authorities, or one leaf.
//!
//! No system roots and no common name. The rule is a function of the chain, the pins and a time;
//! rustls calls it in the handshake. Which address to dial and what to say there is the caller's;
//! the name dialled plays no part, for a pod is dialled by its address and known by its names.

use jiff::Timestamp;
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::verify_server_cert_signed_by_trust_anchor as verify_chain;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, OtherError, SignatureScheme};
use std::sync::Arc;
use std::time::Duration;

use crate::certificate::{Fingerprint, Leaf, NameMissing, NotACertificate, Untimely};
use crate::client_auth::{Authorities, AuthorityError};

/// Whom to trust. The names are demanded in every case.
#[derive(Clone, Debug)]
pub struct Pins {
    known: Option<Fingerprint>,
    anchor: Anchor,
    names: Vec<String>,
}

/// What vouches for a leaf that is not known yet.
#[derive(Clone, Debug)]
enum Anchor {
    Authorities(Authorities),
    Leaf(Fingerprint),
}

/// What made a leaf acceptable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Accepted {
    /// It is the leaf known before.
    Known,
    /// It chains to the authorities.
    Chained,
    /// It is the one leaf that is pinned.
    Pinned,
}

/// Why pins cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPins {
    /// No name is demanded: any certificate of the authority would do.
    #[error("no name is given that the server's certificate must carry")]
    NoName,
    /// A name no server can have.
    #[error("{0:?} is neither a DNS name nor an address")]
    BadName(String),
    /// Nothing to trust.
    #[error("nothing is given to trust: neither a CA bundle nor a leaf")]
    NothingPinned,
    /// The bundle is broken.
    #[error(transparent)]
    Authorities(#[from] AuthorityError),
}

/// Why a server is not trusted.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Untrusted {
    /// What it presents is no certificate.
    #[error(transparent)]
    NotACertificate(#[from] NotACertificate),
    /// It is out of its time.
    #[error(transparent)]
    Untimely(#[from] Untimely),
    /// A name is missing.
    #[error(transparent)]
    NameMissing(#[from] NameMissing),
    /// It does not chain to the authorities.
    #[error("the server's certificate {presented} does not chain to the pinned CA")]
    NotChained {
        /// The leaf presented.
        presented: Fingerprint,
        /// What is wrong with the chain.
        #[source]
        source: rustls::Error,
    },
    /// It is another leaf than the pinned one.
    #[error("the server's certificate {presented} is not the pinned one, {pinned}")]
    OtherLeaf {
        /// The leaf presented.
        presented: Fingerprint,
        /// The leaf pinned.
        pinned: Fingerprint,
    },
}

impl Pins {
    /// Trusts whatever chains to this PEM bundle.
    pub fn authorities<S: AsRef<str>>(bundle: &[u8], names: &[S]) -> Result<Self, NoPins> {
        Self::observation(None, Some(bundle), None, names)
    }

    /// Trusts exactly this leaf.
    pub fn leaf<S: AsRef<str>>(leaf: Fingerprint, names: &[S]) -> Result<Self, NoPins> {
        Self::observation(None, None, Some(leaf), names)
    }

    /// Trusts a leaf already known, or one that chains to the Secret's `ca.crt`, or, where there is
    /// no `ca.crt` (absent or empty), exactly the Secret's leaf.
    pub fn observation<S: AsRef<str>>(
        known: Option<Fingerprint>,
        bundle: Option<&[u8]>,
        leaf: Option<Fingerprint>,
        names: &[S],
    ) -> Result<Self, NoPins> {
        let bundle = bundle.filter(|pem| !pem.trim_ascii().is_empty());
        let anchor = match (bundle, leaf.or(known)) {
            (Some(pem), _) => Anchor::Authorities(Authorities::from_pem(pem)?),
            (None, Some(leaf)) => Anchor::Leaf(leaf),
            (None, None) => return Err(NoPins::NothingPinned),
        };
        if names.is_empty() {
            return Err(NoPins::NoName);
        }
        let names: Vec<String> = names.iter().map(|name| name.as_ref().to_owned()).collect();
        match names
            .iter()
            .find(|name| ServerName::try_from(name.as_str()).is_err())
        {
            Some(bad) => Err(NoPins::BadName(bad.clone())),
            None => Ok(Self {
                known,
                anchor,
                names,
            }),
        }
    }

    /// Judges a chain, leaf first, at a time.
    pub fn judge(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: Timestamp,
    ) -> Result<Accepted, Untrusted> {
        let facts = Leaf::read(leaf)?;
        facts.valid_at(now)?;
        let accepted = self.vouched(&facts, intermediates, now)?;
        facts.covers(&self.names)?;
        Ok(accepted)
    }

    fn vouched(
        &self,
        leaf: &Leaf,
        intermediates: &[CertificateDer<'_>],
        now: Timestamp,
    ) -> Result<Accepted, Untrusted> {
        let presented = leaf.fingerprint;
        match &self.anchor {
            _ if self.known == Some(presented) => Ok(Accepted::Known),
            Anchor::Authorities(authorities) => {
                match chained(authorities, leaf, intermediates, now) {
                    Ok(()) => Ok(Accepted::Chained),
                    Err(source) => Err(Untrusted::NotChained { presented, source }),
                }
            }
            Anchor::Leaf(pinned) if *pinned == presented => Ok(Accepted::Pinned),
            Anchor::Leaf(pinned) => Err(Untrusted::OtherLeaf {
                presented,
                pinned: *pinned,
            }),
        }
    }

    /// The name to send in the handshake, which is the first one demanded.
    pub(crate) fn server_name(&self) -> Option<ServerName<'static>> {
        let first = self.names.first()?;
        ServerName::try_from(first.clone()).ok()
    }
}

/// A self-signed issuer hands out the leaf itself as its CA; a chain of one is no chain to webpki if
/// that leaf may sign.
fn chained(
    authorities: &Authorities,
    leaf: &Leaf,
    intermediates: &[CertificateDer<'_>],
    now: Timestamp,
) -> Result<(), rustls::Error> {
    if authorities.holds(leaf.der()) {
        return Ok(());
    }
    let parsed = ParsedCertificate::try_from(leaf.der())?;
    let algorithms = default_provider().signature_verification_algorithms.all;
    verify_chain(
        &parsed,
        authorities.roots(),
        intermediates,
        unix(now),
        algorithms,
    )
}

/// A client's configuration that trusts these pins alone. Sessions are not resumed: every
/// connection shows the server's certificate, so that a change of it is seen.
pub fn pinned(pins: Pins, alpn: &[Vec<u8>]) -> Result<ClientConfig, rustls::Error> {
    let provider = Arc::new(default_provider());
    let verifier = Verifier {
        pins,
        algorithms: provider.signature_verification_algorithms,
    };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.resumption = Resumption::disabled();
    config.alpn_protocols = alpn.to_vec();
    Ok(config)
}

/// What a failed handshake says about trust, if trust was the reason.
pub fn untrusted(error: &rustls::Error) -> Option<&Untrusted> {
    match error {
        rustls::Error::InvalidCertificate(CertificateError::Other(OtherError(inner))) => {
            inner.downcast_ref()
        }
        _ => None,
    }
}

#[derive(Debug)]
struct Verifier {
    pins: Pins,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        _dialled: &ServerName<'_>,
        _ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        match self.pins.judge(leaf, intermediates, timestamp(now)) {
            Ok(_) => Ok(ServerCertVerified::assertion()),
            Err(untrusted) => Err(CertificateError::Other(OtherError(Arc::new(untrusted))).into()),
        }
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

fn unix(at: Timestamp) -> UnixTime {
    let seconds = u64::try_from(at.as_second()).unwrap_or(0);
    UnixTime::since_unix_epoch(Duration::from_secs(seconds))
}

fn timestamp(at: UnixTime) -> Timestamp {
    i64::try_from(at.as_secs())
        .ok()
        .and_then(|second| Timestamp::from_second(second).ok())
        .unwrap_or(Timestamp::MAX)
}
