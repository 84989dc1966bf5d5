//! A TLS profile as a value: read from `profile.json`, made from a named type, written back as
//! canonical bytes with a hash.
//!
//! Only what was asked for. What rustls can do of it stands in [`crate::honour`]; which source wins
//! (cluster, object, default) is for the operator.

use serde::{Serialize, Serializer};

pub use crate::profile::named::{Kind, UnknownKind};
pub use crate::profile::parse::Malformed;

mod named;
mod parse;

/// Versions of TLS a profile may name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// TLS 1.0.
    Tls10,
    /// TLS 1.1.
    Tls11,
    /// TLS 1.2.
    Tls12,
    /// TLS 1.3.
    Tls13,
}

impl Version {
    /// Every version, lowest first.
    pub const ALL: &'static [Self] = &[Self::Tls10, Self::Tls11, Self::Tls12, Self::Tls13];

    /// The version as it stands in a profile; stable.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tls10 => "VersionTLS10",
            Self::Tls11 => "VersionTLS11",
            Self::Tls12 => "VersionTLS12",
            Self::Tls13 => "VersionTLS13",
        }
    }

    /// The version a profile's text means.
    pub fn from_name(text: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .copied()
            .find(|version| version.as_str() == text)
    }
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Tls10 => "TLS 1.0",
            Self::Tls11 => "TLS 1.1",
            Self::Tls12 => "TLS 1.2",
            Self::Tls13 => "TLS 1.3",
        })
    }
}

impl Serialize for Version {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What a listener is asked to speak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Profile {
    /// No profile: whatever the library thinks right. A written value, so that an absent file is
    /// never mistaken for it.
    LibraryDefaults,
    /// What is written out.
    Listed(Listed),
}

/// A profile written out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Listed {
    /// Suites in order of preference, as written. `None` is the library's; an empty list asks for
    /// no suite at all, which is refused below a minimum of TLS 1.3. Whoever reads a profile from a
    /// type that does not tell an absent list from an empty one makes it `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ciphers: Option<Vec<String>>,
    /// Lowest version spoken.
    #[serde(rename = "minTLSVersion")]
    pub minimum: Version,
    /// Groups in order of preference, as written; empty is the library's, post-quantum first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
}

impl Profile {
    /// Reads the content of a `profile.json`.
    pub fn parse(json: &[u8]) -> Result<Self, Malformed> {
        parse::profile(json)
    }

    /// A profile by its type. `custom` belongs to [`Kind::Custom`] alone, which needs it.
    pub fn named(kind: Kind, custom: Option<Listed>) -> Result<Self, UnknownKind> {
        named::profile(kind, custom)
    }

    /// What is used where nobody says anything.
    pub fn intermediate() -> Self {
        Self::Listed(named::intermediate())
    }

    /// The same profile with the three suites of TLS 1.3 before its own, where it lists any: for
    /// flags whose list governs TLS 1.2 alone, as Go's does.
    #[must_use]
    pub fn with_tls13_suites(mut self) -> Self {
        if let Self::Listed(Listed {
            ciphers: Some(ciphers),
            ..
        }) = &mut self
        {
            let mut all: Vec<String> = named::MODERN.iter().map(|&name| name.to_owned()).collect();
            ciphers.retain(|name| !all.contains(name));
            all.append(ciphers);
            *ciphers = all;
        }
        self
    }

    /// The profile as compact JSON, keys in fixed order, names as they were written: what goes into
    /// the ConfigMap. Reading it back gives the same profile. For the named types these are the
    /// bytes kubernetes-nmstate writes, so adopting its objects changes no annotation.
    pub fn canonical(&self) -> Vec<u8> {
        let text = match self {
            Self::LibraryDefaults => Ok(r#"{"source":"None"}"#.to_owned()),
            Self::Listed(listed) => serde_json::to_string(listed),
        };
        text.expect("a struct of strings is JSON").into_bytes()
    }

    /// The lower-case hexadecimal SHA-256 of [`Self::canonical`], for annotations.
    ///
    /// Order counts. Of suites it is the server's preference; of groups it has no effect on the
    /// wire, yet two orders are two texts, and a person who wrote a new one expects to see it
    /// arrive. `curves` and `groups`, white space and the order of keys make no difference.
    pub fn hash(&self) -> String {
        crate::hex::encode(&crate::hex::sha256(&self.canonical()))
    }
}
