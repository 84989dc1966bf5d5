//! A certificate a server signs for itself when nobody gives it one.
//!
//! It hides the traffic from whoever only listens and proves nothing to whoever connects. P-256,
//! because making an RSA key takes seconds under a small CPU limit. When to make the next one is
//! said here; doing so is for [`crate::reload`].

use jiff::{SignedDuration, Timestamp};
use rcgen::{
    CertificateParams, DistinguishedName, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose,
    PKCS_ECDSA_P256_SHA256, SanType, date_time_ymd,
};
use std::net::IpAddr;
use std::time::Duration;

/// How long before its making a certificate is valid already: clocks differ.
pub(crate) const SLACK: SignedDuration = SignedDuration::from_hours(1);

/// How long a certificate lives if nobody says otherwise: a year.
pub const LIFE: Duration = Duration::from_secs(365 * 24 * 3600);

/// Why no certificate could be made.
#[derive(Debug, thiserror::Error)]
pub enum NotMade {
    /// A name no certificate can carry.
    #[error("{0:?} cannot stand in a certificate")]
    Name(String),
    /// The library failed.
    #[error("no self-signed certificate could be made")]
    Library(#[source] rcgen::Error),
}

/// A certificate and its key, both PEM.
#[derive(Clone)]
pub struct SelfSigned {
    /// The certificate.
    pub certificate: Vec<u8>,
    /// The private key, PKCS #8.
    pub key: Vec<u8>,
    due: Timestamp,
}

impl std::fmt::Debug for SelfSigned {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SelfSigned")
            .field("due", &self.due)
            .finish_non_exhaustive()
    }
}

impl SelfSigned {
    /// A new pair for these names and addresses, valid from an hour ago until `life` from now.
    pub fn new(names: &[String], life: Duration, now: Timestamp) -> Result<Self, NotMade> {
        let params = server(names, life, now)?;
        let key = key()?;
        let certificate = params.self_signed(&key).map_err(NotMade::Library)?;
        Ok(Self {
            certificate: certificate.pem().into_bytes(),
            key: key.serialize_pem().into_bytes(),
            due: after(now, life * 2 / 3),
        })
    }

    /// Whether two thirds of its life are over.
    pub fn due(&self, now: Timestamp) -> bool {
        now >= self.due
    }
}

/// A certificate for a server with these names.
pub(crate) fn server(
    names: &[String],
    life: Duration,
    now: Timestamp,
) -> Result<CertificateParams, NotMade> {
    let mut params = CertificateParams::default();
    params.distinguished_name = DistinguishedName::new();
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.subject_alt_names = names
        .iter()
        .map(|name| alternative(name))
        .collect::<Result<_, _>>()?;
    lifetime(&mut params, life, now);
    Ok(params)
}

/// Valid from a little before now until `life` from now.
pub(crate) fn lifetime(params: &mut CertificateParams, life: Duration, now: Timestamp) {
    let epoch = date_time_ymd(1970, 1, 1);
    params.not_before = epoch + since_epoch(now.saturating_sub(SLACK).unwrap_or(now));
    params.not_after = epoch + since_epoch(after(now, life));
}

/// A new key.
pub(crate) fn key() -> Result<KeyPair, NotMade> {
    KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(NotMade::Library)
}

fn alternative(name: &str) -> Result<SanType, NotMade> {
    match name.parse::<IpAddr>() {
        Ok(address) => Ok(SanType::IpAddress(address)),
        Err(_) => name
            .try_into()
            .map(SanType::DnsName)
            .map_err(|_| NotMade::Name(name.to_owned())),
    }
}

fn after(now: Timestamp, life: Duration) -> Timestamp {
    now.saturating_add(life).unwrap_or(Timestamp::MAX)
}

/// Seconds since 1970, to be added to rcgen's own notion of that day: its times are of a crate we
/// have no other use for.
fn since_epoch(at: Timestamp) -> Duration {
    Duration::from_secs(u64::try_from(at.as_second()).unwrap_or(0))
}
