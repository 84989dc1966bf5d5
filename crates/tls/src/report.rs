//! What became of a profile: what is served, what was dropped and why, in values and in words.
//!
//! A report changes nothing. Whether an incomplete one is a message or a degraded condition is for
//! the operator to say.

use serde::{Serialize, Serializer};
use std::fmt;

use crate::profile::Version;

/// Why a name of a profile is not served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Block chaining, which rustls leaves out for its padding attacks.
    Cbc,
    /// The client encrypts a secret to the server's RSA key: no forward secrecy.
    RsaKeyExchange,
    /// Key exchange over a finite field.
    Dhe,
    /// A stream cipher that is broken.
    Rc4,
    /// An AEAD mode the library does not have.
    Ccm,
    /// A group the library does not have.
    NoSuchGroup,
    /// A suite for versions below the profile's own minimum: nothing is lost by its absence.
    BelowMinimum,
    /// A name nobody knows.
    Unknown,
}

impl Reason {
    /// The reason in words; stable.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cbc => "CBC is not supported",
            Self::RsaKeyExchange => "RSA key exchange is not supported",
            Self::Dhe => "finite-field DHE is not supported",
            Self::Rc4 => "RC4 is not supported",
            Self::Ccm => "CCM is not supported",
            Self::NoSuchGroup => "the group is not supported",
            Self::BelowMinimum => "it is for versions below the minimum",
            Self::Unknown => "the name is unknown",
        }
    }
}

impl Serialize for Reason {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A name of the profile that is not served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// The name as written.
    pub name: String,
    /// Why.
    pub reason: Reason,
}

/// A minimum lower than what rustls speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Raised {
    /// What the profile asks for.
    pub from: Version,
    /// What is served.
    pub to: Version,
}

/// Why one version alone is spoken although the profile allows both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Only {
    /// TLS 1.3 only: the list leaves no suite of TLS 1.2.
    NoTls12Suite,
    /// TLS 1.3 only: TLS 1.2 has none of the groups.
    NoTls12Group,
    /// TLS 1.3 only: no suite of TLS 1.2 goes with the certificate's key.
    NoTls12SuiteForKey,
    /// TLS 1.2 only: the list names no suite of TLS 1.3.
    NoTls13Suite,
}

impl Only {
    /// The fact in words; stable.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoTls12Suite => "TLS 1.3 only: no suite of TLS 1.2 is left",
            Self::NoTls12Group => "TLS 1.3 only: TLS 1.2 has none of the groups",
            Self::NoTls12SuiteForKey => {
                "TLS 1.3 only: no suite of TLS 1.2 goes with the certificate's key"
            }
            Self::NoTls13Suite => "TLS 1.2 only: no suite of TLS 1.3 is named",
        }
    }
}

impl Serialize for Only {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// What became of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Lowest version served.
    pub minimum: Version,
    /// Suites served, by IANA name, in order of preference.
    pub suites: Vec<&'static str>,
    /// Groups served, by IANA name, in the profile's order.
    pub groups: Vec<&'static str>,
    /// Names of suites that are not served.
    pub dropped_suites: Vec<Dropped>,
    /// Names of groups that are not served.
    pub dropped_groups: Vec<Dropped>,
    /// The minimum, if it had to be raised.
    pub raised: Option<Raised>,
    /// Why one version alone is spoken, if that was not asked for in as many words.
    pub only: Option<Only>,
    /// The list names no suite of TLS 1.3 under a minimum of TLS 1.3, so all three are served.
    pub tls13_suites_assumed: bool,
}

impl Report {
    /// Whether everything the profile asks for is done. A suite below the profile's own minimum is
    /// not asked for, and a version that falls away with its last suite was asked to.
    pub fn complete(&self) -> bool {
        let harmless = |dropped: &&Dropped| dropped.reason != Reason::BelowMinimum;
        self.raised.is_none()
            && self.dropped_groups.is_empty()
            && !self.dropped_suites.iter().any(|it| harmless(&it))
    }

    /// What a person should know, one sentence each; nothing if there is nothing to say.
    pub fn sentences(&self) -> Vec<String> {
        let mut said = Vec::new();
        if let Some(Raised { from, to }) = self.raised {
            said.push(format!("the minimum {from} is raised to {to}"));
        }
        said.extend(by_reason("ciphers", &self.dropped_suites));
        said.extend(by_reason("groups", &self.dropped_groups));
        if self.tls13_suites_assumed {
            said.push("no suite of TLS 1.3 is named: all three are served".to_owned());
        }
        said.extend(self.only.map(|only| only.as_str().to_owned()));
        said
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let said = self.sentences();
        if said.is_empty() {
            f.write_str("the profile is served as written")
        } else {
            f.write_str(&said.join("; "))
        }
    }
}

/// One sentence for each reason, in the order in which the reasons first appear.
pub(crate) fn by_reason(what: &str, dropped: &[Dropped]) -> Vec<String> {
    let mut reasons: Vec<Reason> = Vec::new();
    for Dropped { reason, .. } in dropped {
        if !reasons.contains(reason) {
            reasons.push(*reason);
        }
    }
    let named = |reason: Reason| {
        let names: Vec<&str> = dropped
            .iter()
            .filter(|it| it.reason == reason)
            .map(|it| it.name.as_str())
            .collect();
        format!("ignored {what} {}: {}", names.join(", "), reason.as_str())
    };
    reasons.into_iter().map(named).collect()
}
