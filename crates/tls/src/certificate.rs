//! The facts of one certificate: fingerprint, serial, validity, issuer, names.
//!
//! Reading only. Whether it is to be trusted is for [`crate::client`]; whether it may be served, for
//! [`crate::pair`]. The subject's common name is never looked at.

use jiff::Timestamp;
use rustls::client::verify_server_name;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

/// The SHA-256 of a certificate's DER; its text is lower-case hexadecimal.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of this certificate.
    pub fn of(certificate: &CertificateDer<'_>) -> Self {
        Self(crate::hex::sha256(certificate))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::hex::encode(&self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Fingerprint({self})")
    }
}

/// A text that is no SHA-256 fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a SHA-256 fingerprint: 64 hexadecimal digits are needed")]
pub struct NotAFingerprint(String);

impl FromStr for Fingerprint {
    type Err = NotAFingerprint;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        crate::hex::decode32(text)
            .map(Self)
            .ok_or_else(|| NotAFingerprint(text.to_owned()))
    }
}

impl Serialize for Fingerprint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Fingerprint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Bytes that are no X.509 certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the certificate is not X.509")]
pub struct NotACertificate;

/// Why a certificate is not valid at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Untimely {
    /// Too late.
    #[error("the certificate expired at {0}")]
    Expired(Timestamp),
    /// Too early.
    #[error("the certificate is not valid before {0}")]
    NotYetValid(Timestamp),
}

/// A name that no alternative name of the certificate covers.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the certificate does not name {missing}; it names {}", named(.names))]
pub struct NameMissing {
    /// The name asked for.
    pub missing: String,
    /// The names there are.
    pub names: Vec<String>,
}

fn named(names: &[String]) -> String {
    if names.is_empty() {
        "nothing".to_owned()
    } else {
        names.join(", ")
    }
}

/// A certificate somebody presents, with what is worth knowing about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// SHA-256 of the DER.
    pub fingerprint: Fingerprint,
    /// Serial number, lower-case hexadecimal without leading zeros.
    pub serial: String,
    /// First moment of validity.
    pub not_before: Timestamp,
    /// Last moment of validity.
    pub not_after: Timestamp,
    /// The issuer's distinguished name; empty if it has none.
    pub issuer: String,
    /// Alternative names: DNS names and addresses, in the certificate's order.
    pub names: Vec<String>,
    der: CertificateDer<'static>,
}

impl Leaf {
    /// Reads a certificate.
    pub fn read(der: &CertificateDer<'_>) -> Result<Self, NotACertificate> {
        let (rest, parsed) = X509Certificate::from_der(der).map_err(|_| NotACertificate)?;
        if !rest.is_empty() {
            return Err(NotACertificate);
        }
        let validity = parsed.validity();
        Ok(Self {
            fingerprint: Fingerprint::of(der),
            serial: parsed.tbs_certificate.serial.to_str_radix(16),
            not_before: moment(validity.not_before.timestamp()),
            not_after: moment(validity.not_after.timestamp()),
            issuer: parsed.issuer().to_string(),
            names: alternative_names(&parsed),
            der: der.clone().into_owned(),
        })
    }

    /// Whether the certificate is valid at this time.
    pub fn valid_at(&self, now: Timestamp) -> Result<(), Untimely> {
        if now < self.not_before {
            Err(Untimely::NotYetValid(self.not_before))
        } else if now > self.not_after {
            Err(Untimely::Expired(self.not_after))
        } else {
            Ok(())
        }
    }

    /// Whether the alternative names cover every one of these names and addresses. A wildcard
    /// covers one label, as for any TLS client; the common name covers nothing.
    pub fn covers<S: AsRef<str>>(&self, names: &[S]) -> Result<(), NameMissing> {
        names.iter().map(AsRef::as_ref).try_for_each(|name| {
            if self.covers_one(name) {
                Ok(())
            } else {
                Err(NameMissing {
                    missing: name.to_owned(),
                    names: self.names.clone(),
                })
            }
        })
    }

    fn covers_one(&self, name: &str) -> bool {
        let Ok(wanted) = ServerName::try_from(name) else {
            return false;
        };
        ParsedCertificate::try_from(&self.der)
            .is_ok_and(|parsed| verify_server_name(&parsed, &wanted).is_ok())
    }

    /// The certificate itself.
    pub fn der(&self) -> &CertificateDer<'static> {
        &self.der
    }
}

fn alternative_names(certificate: &X509Certificate<'_>) -> Vec<String> {
    let Ok(Some(extension)) = certificate.subject_alternative_name() else {
        return Vec::new();
    };
    let names = extension.value.general_names.iter();
    names
        .filter_map(|name| match name {
            GeneralName::DNSName(name) => Some((*name).to_owned()),
            GeneralName::IPAddress(octets) => address(octets).map(|it| it.to_string()),
            _ => None,
        })
        .collect()
}

fn address(octets: &[u8]) -> Option<IpAddr> {
    <[u8; 4]>::try_from(octets)
        .map(IpAddr::from)
        .or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from))
        .ok()
}

/// "No expiry" is written as the last second of the year 9999, which is past the last moment a
/// [`Timestamp`] can hold.
fn moment(second: i64) -> Timestamp {
    let bound = if second < 0 {
        Timestamp::MIN
    } else {
        Timestamp::MAX
    };
    Timestamp::from_second(second).unwrap_or(bound)
}
