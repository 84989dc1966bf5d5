//! From what a profile asks for to what rustls does, and the refusal of what would serve nobody.
//!
//! Pure: names in, suites and groups out, with a [`Report`]. Suites are kept in the profile's order
//! and the server's order wins; where the profile lists none, the library's list stands and the
//! client's order wins. The library's groups have the post-quantum X25519MLKEM768 first.

use rustls::SignatureAlgorithm;
use rustls::crypto::aws_lc_rs::{DEFAULT_CIPHER_SUITES, DEFAULT_KX_GROUPS, default_provider};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::version::{TLS12, TLS13};
use rustls::{ProtocolVersion, SupportedCipherSuite, SupportedProtocolVersion};

use crate::group::{self, GROUPS};
use crate::profile::{Listed, Profile, Version};
use crate::report::{Dropped, Only, Raised, Reason, Report, by_reason};
use crate::suite;

/// Why a profile cannot be served at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// An empty list below TLS 1.3.
    #[error(
        "the TLS profile lists no cipher at all: name one, or leave ciphers out for the library's"
    )]
    NoCipherNamed,
    /// A list of which nothing is left.
    #[error("none of the TLS profile's ciphers can be served: {}", by_reason("ciphers", .0).join("; "))]
    NoCipherLeft(Vec<Dropped>),
    /// Groups of which nothing is left.
    #[error("none of the TLS profile's groups can be served: {}", by_reason("groups", .0).join("; "))]
    NoGroupLeft(Vec<Dropped>),
    /// Groups that only TLS 1.3 has, with suites of TLS 1.2 alone.
    #[error(
        "the TLS profile's groups are for TLS 1.3 and its ciphers for TLS 1.2: no client can connect"
    )]
    GroupsFitNoSuite,
    /// Suites for another kind of key.
    #[error(
        "none of the TLS profile's ciphers goes with the certificate's {} key: \
         name one that does, or a suite of TLS 1.3", key_name(.0)
    )]
    KeyFitsNoSuite(SignatureAlgorithm),
}

fn key_name(algorithm: &SignatureAlgorithm) -> String {
    match *algorithm {
        SignatureAlgorithm::ECDSA => "EC".to_owned(),
        SignatureAlgorithm::ED25519 => "Ed25519".to_owned(),
        other => format!("{other:?}"),
    }
}

/// Whose order of suites wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preference {
    /// The profile's.
    Server,
    /// The client's.
    Client,
}

/// A profile in terms of rustls.
#[derive(Clone, Debug)]
pub struct Honoured {
    suites: Vec<SupportedCipherSuite>,
    groups: Vec<&'static dyn SupportedKxGroup>,
    preference: Preference,
    report: Report,
}

impl Profile {
    /// What rustls does of this profile, whatever the certificate.
    pub fn honour(&self) -> Result<Honoured, Unusable> {
        match self {
            Self::LibraryDefaults => Listed {
                ciphers: None,
                minimum: Version::Tls12,
                groups: Vec::new(),
            }
            .honour(),
            Self::Listed(listed) => listed.honour(),
        }
    }
}

impl Listed {
    fn honour(&self) -> Result<Honoured, Unusable> {
        let minimum = self.minimum.max(Version::Tls12);
        let asked = self.ask_suites(minimum)?;
        let (groups, dropped_groups) = self.ask_groups()?;
        let tls12_group = groups
            .iter()
            .any(|it| it.usable_for_version(ProtocolVersion::TLSv1_2));
        let (suites, cut) = without_tls12_unless(tls12_group, &asked.suites);
        if suites.is_empty() {
            return Err(Unusable::GroupsFitNoSuite);
        }
        let only = match (has(&suites, &TLS12), has(&suites, &TLS13)) {
            _ if minimum == Version::Tls13 => None,
            (false, _) if cut => Some(Only::NoTls12Group),
            (false, _) => Some(Only::NoTls12Suite),
            (_, false) => Some(Only::NoTls13Suite),
            (true, true) => None,
        };
        let report = Report {
            minimum: lowest(&suites),
            suites: names(&suites),
            groups: groups.iter().filter_map(|it| group_name(*it)).collect(),
            dropped_suites: asked.dropped,
            dropped_groups,
            raised: (self.minimum < minimum).then_some(Raised {
                from: self.minimum,
                to: minimum,
            }),
            only,
            tls13_suites_assumed: asked.assumed,
        };
        Ok(Honoured {
            suites,
            groups,
            preference: match self.ciphers {
                Some(_) => Preference::Server,
                None => Preference::Client,
            },
            report,
        })
    }

    fn ask_suites(&self, minimum: Version) -> Result<Asked, Unusable> {
        let library = || {
            let all = DEFAULT_CIPHER_SUITES.iter().copied();
            all.filter(|suite| minimum < Version::Tls13 || suite.version() == &TLS13)
                .collect()
        };
        let Some(names) = &self.ciphers else {
            return Ok(Asked {
                suites: library(),
                dropped: Vec::new(),
                assumed: false,
            });
        };
        let (suites, dropped) = sort_out(names, minimum);
        match (suites.is_empty(), minimum) {
            (false, _) => Ok(Asked {
                suites,
                dropped,
                assumed: false,
            }),
            // Where TLS 1.3 is the minimum, profiles list no suite or only old ones and mean all
            // of TLS 1.3: its suites were not configurable where these profiles come from.
            (true, Version::Tls13) => Ok(Asked {
                suites: library(),
                dropped,
                assumed: true,
            }),
            (true, _) if names.is_empty() => Err(Unusable::NoCipherNamed),
            (true, _) => Err(Unusable::NoCipherLeft(dropped)),
        }
    }

    fn ask_groups(&self) -> Result<(Vec<&'static dyn SupportedKxGroup>, Vec<Dropped>), Unusable> {
        if self.groups.is_empty() {
            return Ok((DEFAULT_KX_GROUPS.to_vec(), Vec::new()));
        }
        let mut groups: Vec<&'static dyn SupportedKxGroup> = Vec::new();
        let mut dropped = Vec::new();
        for name in &self.groups {
            match group::by_name(name).map_or(Err(Reason::Unknown), |row| row.served) {
                Ok(group) if groups.iter().any(|it| it.name() == group.name()) => {}
                Ok(group) => groups.push(group),
                Err(reason) => dropped.push(Dropped {
                    name: name.clone(),
                    reason,
                }),
            }
        }
        if groups.is_empty() {
            return Err(Unusable::NoGroupLeft(dropped));
        }
        Ok((groups, dropped))
    }
}

/// What a list of suites comes to.
struct Asked {
    suites: Vec<SupportedCipherSuite>,
    dropped: Vec<Dropped>,
    assumed: bool,
}

/// The suites of a list, and the names that come to none.
fn sort_out(names: &[String], minimum: Version) -> (Vec<SupportedCipherSuite>, Vec<Dropped>) {
    let mut suites = Vec::new();
    let mut dropped = Vec::new();
    for name in names {
        let served = match suite::by_name(name) {
            None => Err(Reason::Unknown),
            Some(row) if minimum == Version::Tls13 && !row.tls13() => Err(Reason::BelowMinimum),
            Some(row) => row.served,
        };
        match served {
            // The same suite under its other name is no second wish.
            Ok(suite) if suites.contains(&suite) => {}
            Ok(suite) => suites.push(suite),
            Err(reason) => dropped.push(Dropped {
                name: name.clone(),
                reason,
            }),
        }
    }
    (suites, dropped)
}

impl Honoured {
    /// The same for a certificate with this kind of key: suites of TLS 1.2 that need another kind
    /// fall away.
    pub fn for_key(mut self, key: SignatureAlgorithm) -> Result<Self, Unusable> {
        let before = has(&self.suites, &TLS12);
        self.suites
            .retain(|suite| suite.usable_for_signature_algorithm(key));
        if self.suites.is_empty() {
            return Err(Unusable::KeyFitsNoSuite(key));
        }
        if before && !has(&self.suites, &TLS12) {
            self.report.only = Some(Only::NoTls12SuiteForKey);
        }
        self.report.minimum = lowest(&self.suites);
        self.report.suites = names(&self.suites);
        Ok(self)
    }

    /// What became of the profile.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Whose order of suites wins.
    pub fn preference(&self) -> Preference {
        self.preference
    }

    /// The provider with these suites and groups and no others.
    pub fn provider(&self) -> CryptoProvider {
        CryptoProvider {
            cipher_suites: self.suites.clone(),
            kx_groups: self.groups.clone(),
            ..default_provider()
        }
    }

    /// The versions that have a suite.
    pub fn versions(&self) -> Vec<&'static SupportedProtocolVersion> {
        [&TLS12, &TLS13]
            .into_iter()
            .filter(|version| has(&self.suites, version))
            .collect()
    }
}

/// Groups only TLS 1.3 has leave a TLS 1.2 suite without a key exchange.
fn without_tls12_unless(
    tls12_group: bool,
    suites: &[SupportedCipherSuite],
) -> (Vec<SupportedCipherSuite>, bool) {
    let kept: Vec<_> = suites
        .iter()
        .copied()
        .filter(|suite| tls12_group || suite.version() == &TLS13)
        .collect();
    let cut = kept.len() < suites.len();
    (kept, cut)
}

fn has(suites: &[SupportedCipherSuite], version: &SupportedProtocolVersion) -> bool {
    suites.iter().any(|suite| suite.version() == version)
}

fn lowest(suites: &[SupportedCipherSuite]) -> Version {
    if has(suites, &TLS12) {
        Version::Tls12
    } else {
        Version::Tls13
    }
}

fn names(suites: &[SupportedCipherSuite]) -> Vec<&'static str> {
    suites
        .iter()
        .filter_map(|it| suite::iana_name(*it))
        .collect()
}

fn group_name(served: &'static dyn SupportedKxGroup) -> Option<&'static str> {
    GROUPS
        .iter()
        .find(|row| row.served.is_ok_and(|known| known.name() == served.name()))
        .map(|row| row.names[0])
}
