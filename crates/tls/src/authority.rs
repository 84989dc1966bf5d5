//! A certificate authority of one's own: made, kept as PEM, and asked for certificates of servers.
//!
//! For servers whose clients can be told what to trust. P-256, like [`crate::self_signed`]. When to
//! make a new one, and who must trust it first, is for the operator.

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::time::Duration;

use crate::certificate::Leaf;
use crate::pair::{Pair, PairError};
use crate::self_signed::{NotMade, SLACK, key, lifetime, server};

/// An authority: its certificate and its key.
#[derive(Clone)]
pub struct Authority {
    certificate: Vec<u8>,
    key: Vec<u8>,
    facts: Leaf,
}

/// A certificate of a server and its key, both PEM.
#[derive(Clone)]
pub struct Issued {
    /// The certificate.
    pub certificate: Vec<u8>,
    /// The private key, PKCS #8.
    pub key: Vec<u8>,
}

/// Why an authority cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadAuthority {
    /// Certificate and key are no pair.
    #[error(transparent)]
    Pair(#[from] PairError),
    /// A name we do not give.
    #[error("the CA was not made by this program: its subject is {0:?}")]
    Foreign(String),
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority")
            .field("name", &self.facts.issuer)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Issued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Issued").finish_non_exhaustive()
    }
}

/// When a certificate was made, as far as it tells: it is valid a little longer than that.
pub fn made(facts: &Leaf) -> Timestamp {
    facts
        .not_before
        .saturating_add(SLACK)
        .unwrap_or(Timestamp::MAX)
}

impl Authority {
    /// A new authority. Two need different names: a client finds the one that signed by its name.
    pub fn new(name: &str, life: Duration, now: Timestamp) -> Result<Self, NotMade> {
        let mut params = authority(name);
        lifetime(&mut params, life, now);
        let key = key()?;
        let certificate = params.self_signed(&key).map_err(NotMade::Library)?;
        let facts = Leaf::read(certificate.der()).map_err(|_| NotMade::Name(name.to_owned()))?;
        Ok(Self {
            certificate: certificate.pem().into_bytes(),
            key: key.serialize_pem().into_bytes(),
            facts,
        })
    }

    /// Reads an authority that was kept as PEM.
    pub fn from_pem(certificate: &[u8], key: &[u8]) -> Result<Self, BadAuthority> {
        let facts = Pair::from_pem(certificate, key)?.leaf().clone();
        match name(&facts) {
            Some(_) => Ok(Self {
                certificate: certificate.to_vec(),
                key: key.to_vec(),
                facts,
            }),
            None => Err(BadAuthority::Foreign(facts.issuer)),
        }
    }

    /// The certificate, PEM.
    pub fn certificate(&self) -> &[u8] {
        &self.certificate
    }

    /// The private key, PEM.
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// The facts of its certificate; it is its own issuer.
    pub fn facts(&self) -> &Leaf {
        &self.facts
    }

    /// A certificate for a server with these names, valid from an hour ago until `life` from now,
    /// and never longer than the authority itself.
    pub fn issue(
        &self,
        names: &[String],
        life: Duration,
        now: Timestamp,
    ) -> Result<Issued, NotMade> {
        let left = self.facts.not_after.duration_since(now);
        let left = Duration::try_from(left.max(SignedDuration::ZERO)).unwrap_or_default();
        let params = server(names, life.min(left), now)?;
        let name = name(&self.facts).ok_or_else(|| NotMade::Name(self.facts.issuer.clone()))?;
        let pem = String::from_utf8_lossy(&self.key);
        let signer = KeyPair::from_pem(&pem).map_err(NotMade::Library)?;
        let issuer = Issuer::new(authority(name), signer);
        let key = key()?;
        let certificate = params.signed_by(&key, &issuer).map_err(NotMade::Library)?;
        Ok(Issued {
            certificate: certificate.pem().into_bytes(),
            key: key.serialize_pem().into_bytes(),
        })
    }
}

fn authority(name: &str) -> CertificateParams {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params
}

/// The name of an authority, if it has one as we give them: a common name and nothing else.
fn name(facts: &Leaf) -> Option<&str> {
    let name = facts.issuer.strip_prefix("CN=")?;
    (!name.contains([',', '+', '='])).then_some(name)
}
