//! Whether what was read is to be served: a function of the bytes, of what is served now, and of a
//! time.
//!
//! All parts are judged together and taken together. Nothing is read here, nothing is swapped, and
//! no refusal takes away what is being served.

use jiff::Timestamp;
use rustls::ServerConfig;
use std::sync::Arc;

use super::reading::{Content, Reading};
use crate::certificate::Leaf;
use crate::client_auth::{Authorities, AuthorityError, ClientAuth};
use crate::pair::{Pair, PairError};
use crate::profile::{Malformed, Profile};
use crate::report::Report;
use crate::server::{ConfigError, server_config};

/// What refusals call the file with the authorities for client certificates.
pub const CLIENT_CA: &str = "client CA";

/// What a listener wants of its parts.
#[derive(Clone, Debug)]
pub struct Demands {
    /// What clients are asked for.
    pub client_auth: ClientAuth,
    /// Protocols for ALPN, best first; empty offers none.
    pub alpn: Vec<Vec<u8>>,
    /// The profile where no file is read, or where the file has not come yet. Without one the file
    /// must be there.
    pub profile: Option<Profile>,
}

impl Default for Demands {
    /// No client certificates, no ALPN, Intermediate.
    fn default() -> Self {
        Self {
            client_auth: ClientAuth::None,
            alpn: Vec::new(),
            profile: Some(Profile::intermediate()),
        }
    }
}

/// Why what was read is not served. One sentence each; none repeats bytes of a key.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// A file is not there.
    #[error("the {0} file is missing")]
    Missing(&'static str),
    /// A file cannot be read.
    #[error("the {what} file cannot be read: {why}")]
    Unreadable {
        /// Which file.
        what: &'static str,
        /// Why.
        why: String,
    },
    /// The profile was there and is gone: that is no wish for another one.
    #[error("the profile file is gone; its last content stays in force")]
    ProfileGone,
    /// Certificate and key are not usable.
    #[error(transparent)]
    Pair(#[from] PairError),
    /// The client CA is not usable.
    #[error(transparent)]
    Authorities(#[from] AuthorityError),
    /// The profile is not readable.
    #[error(transparent)]
    Profile(#[from] Malformed),
    /// The parts do not go together.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// What to do.
#[derive(Debug)]
pub enum Decision {
    /// It is what is being served.
    Keep,
    /// It is new and good: serve it.
    Swap(Box<Serving>),
    /// It is not good: keep serving what is there.
    Refuse(Refusal),
}

/// A complete state of a listener. Never changed; the next one is another value.
#[derive(Clone, Debug)]
pub struct Serving {
    /// One more with every change, beginning at 1.
    pub generation: u64,
    /// The configuration for new connections.
    pub config: Arc<ServerConfig>,
    /// The certificate presented.
    pub leaf: Leaf,
    /// The authorities for client certificates, to check deferred ones with. The same value as long
    /// as the file says the same, whatever else changes.
    pub authorities: Option<Arc<Authorities>>,
    /// Hash of the profile.
    pub profile_hash: String,
    /// What became of the profile.
    pub report: Report,
    digests: Digests,
}

/// What was read, in short: enough to see that nothing changed without keeping a copy of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Digests {
    certificate: Option<[u8; 32]>,
    key: Option<[u8; 32]>,
    client_ca: Option<[u8; 32]>,
    profile: Option<[u8; 32]>,
}

impl Digests {
    fn of(reading: &Reading) -> Self {
        let digest = |content: &Option<Content>| content.as_ref().and_then(Content::digest);
        Self {
            certificate: reading.certificate.digest(),
            key: reading.key.digest(),
            client_ca: digest(&reading.client_ca),
            profile: digest(&reading.profile),
        }
    }
}

/// Decides what to do about a reading.
pub fn decide(
    previous: Option<&Serving>,
    reading: &Reading,
    demands: &Demands,
    now: Timestamp,
) -> Decision {
    match judge(previous, reading, demands, now) {
        Ok(None) => Decision::Keep,
        Ok(Some(serving)) => Decision::Swap(Box::new(serving)),
        Err(refusal) => Decision::Refuse(refusal),
    }
}

fn judge(
    previous: Option<&Serving>,
    reading: &Reading,
    demands: &Demands,
    now: Timestamp,
) -> Result<Option<Serving>, Refusal> {
    let certificate = needed("certificate", &reading.certificate)?;
    let key = needed("key", &reading.key)?;
    let client_ca = match &reading.client_ca {
        Some(content) => Some(needed(CLIENT_CA, content)?),
        None => None,
    };
    let profile = profile(previous, reading, demands)?;
    let digests = Digests::of(reading);
    if previous.is_some_and(|previous| previous.digests == digests) {
        return Ok(None);
    }
    let pair = Pair::from_pem(certificate, key)?;
    // A certificate that is served already and has expired meanwhile is no reason to refuse a new
    // profile or a new client CA, which may well be stricter.
    if previous.is_none_or(|previous| previous.digests.certificate != digests.certificate) {
        pair.leaf().valid_at(now).map_err(PairError::from)?;
    }
    let known = previous.filter(|previous| previous.digests.client_ca == digests.client_ca);
    let authorities = match known {
        Some(previous) => previous.authorities.clone(),
        None => client_ca
            .map(Authorities::from_pem)
            .transpose()?
            .map(Arc::new),
    };
    let (config, report) = server_config(
        &profile,
        &pair,
        demands.client_auth,
        authorities.as_deref(),
        &demands.alpn,
    )?;
    Ok(Some(Serving {
        generation: previous.map_or(1, |previous| previous.generation + 1),
        config: Arc::new(config),
        leaf: pair.leaf().clone(),
        authorities,
        profile_hash: profile.hash(),
        report,
        digests,
    }))
}

fn profile(
    previous: Option<&Serving>,
    reading: &Reading,
    demands: &Demands,
) -> Result<Profile, Refusal> {
    let had_file = previous.is_some_and(|previous| previous.digests.profile.is_some());
    match (&reading.profile, &demands.profile) {
        (Some(Content::Absent), _) if had_file => Err(Refusal::ProfileGone),
        (None | Some(Content::Absent), Some(profile)) => Ok(profile.clone()),
        (None, None) => Err(Refusal::Missing("profile")),
        (Some(content), _) => Ok(Profile::parse(needed("profile", content)?)?),
    }
}

fn needed<'a>(what: &'static str, content: &'a Content) -> Result<&'a [u8], Refusal> {
    match content {
        Content::Read(bytes) => Ok(bytes),
        Content::Absent => Err(Refusal::Missing(what)),
        Content::Unreadable(why) => Err(Refusal::Unreadable {
            what,
            why: why.clone(),
        }),
    }
}
