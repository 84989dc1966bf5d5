//! The named profile types, as Mozilla's server-side TLS guideline 5.7 lists them.
//!
//! Later guidelines add groups and CBC suites to these lists; the lists here stay as they are,
//! because their hash is an annotation on running pods.

use super::{Listed, Profile, Version};

/// Profile types of OpenShift's `tlsSecurityProfile`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// For very old clients.
    Old,
    /// For general use.
    Intermediate,
    /// TLS 1.3 only.
    Modern,
    /// Written out beside it.
    Custom,
}

/// Why a type gives no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnknownKind {
    /// No such type.
    #[error("unknown TLS profile type {0:?}: use Old, Intermediate, Modern or Custom")]
    Unknown(String),
    /// Custom without its body.
    #[error("the TLS profile type is Custom and nothing is written under custom")]
    CustomMissing,
    /// A body without Custom.
    #[error("the TLS profile type is {0:?} and custom is written: it belongs to Custom alone")]
    CustomUnused(Kind),
}

impl std::str::FromStr for Kind {
    type Err = UnknownKind;

    /// An empty type is Intermediate, as in OpenShift.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "Old" => Ok(Self::Old),
            "Intermediate" | "" => Ok(Self::Intermediate),
            "Modern" => Ok(Self::Modern),
            "Custom" => Ok(Self::Custom),
            other => Err(UnknownKind::Unknown(other.to_owned())),
        }
    }
}

pub(super) fn profile(kind: Kind, custom: Option<Listed>) -> Result<Profile, UnknownKind> {
    match (kind, custom) {
        (Kind::Custom, Some(listed)) => Ok(Profile::Listed(listed)),
        (Kind::Custom, None) => Err(UnknownKind::CustomMissing),
        (kind, Some(_)) => Err(UnknownKind::CustomUnused(kind)),
        (Kind::Old, None) => Ok(listed(Version::Tls10, &[MODERN, AEAD, OLD])),
        (Kind::Intermediate, None) => Ok(Profile::Listed(intermediate())),
        (Kind::Modern, None) => Ok(listed(Version::Tls13, &[MODERN])),
    }
}

pub(super) fn intermediate() -> Listed {
    Listed {
        ciphers: Some(names(&[MODERN, AEAD])),
        minimum: Version::Tls12,
        groups: Vec::new(),
    }
}

fn listed(minimum: Version, parts: &[&[&str]]) -> Profile {
    Profile::Listed(Listed {
        ciphers: Some(names(parts)),
        minimum,
        groups: Vec::new(),
    })
}

fn names(parts: &[&[&str]]) -> Vec<String> {
    parts
        .iter()
        .flat_map(|part| part.iter())
        .map(|&name| name.to_owned())
        .collect()
}

/// Suites of TLS 1.3: all of Modern.
pub(super) const MODERN: &[&str] = &[
    "TLS_AES_128_GCM_SHA256",
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
];

/// What Intermediate adds.
const AEAD: &[&str] = &[
    "ECDHE-ECDSA-AES128-GCM-SHA256",
    "ECDHE-RSA-AES128-GCM-SHA256",
    "ECDHE-ECDSA-AES256-GCM-SHA384",
    "ECDHE-RSA-AES256-GCM-SHA384",
    "ECDHE-ECDSA-CHACHA20-POLY1305",
    "ECDHE-RSA-CHACHA20-POLY1305",
];

/// What Old adds to that.
const OLD: &[&str] = &[
    "ECDHE-ECDSA-AES128-SHA256",
    "ECDHE-RSA-AES128-SHA256",
    "ECDHE-ECDSA-AES128-SHA",
    "ECDHE-RSA-AES128-SHA",
    "ECDHE-ECDSA-AES256-SHA",
    "ECDHE-RSA-AES256-SHA",
    "AES128-GCM-SHA256",
    "AES256-GCM-SHA384",
    "AES128-SHA256",
    "AES128-SHA",
    "AES256-SHA",
    "DES-CBC3-SHA",
];
