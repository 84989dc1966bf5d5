//! What may change while the proxy runs, as one unit: the configuration file, and the certificate
//! it asks for.
//!
//! [`step`] decides, as a function of what was read and of what is in force. A unit is taken whole or
//! not at all: while a new one is not complete, the last one stays, its policy included. At a start
//! there is no last one; then a configuration that requires TLS without a usable certificate shuts the
//! door rather than open it in plaintext.

use crate::config::{Config, SCHEMA, Tls};
use crate::serve::Mode;
use jiff::Timestamp;
use keelson_tls::reload::{Decision, Demands, PairSource, Reading, Sources, decide};
use keelson_tls::{Authorities, ClientAuth, Serving};
use serde::Serialize;
use std::sync::Arc;

/// A complete state of what may change.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The configuration.
    pub config: Config,
    /// What connections get.
    pub transport: Transport,
    hash: String,
}

/// What connections get.
#[derive(Clone, Debug)]
pub enum Transport {
    /// Plaintext: the configuration says so.
    Plain,
    /// TLS with this certificate.
    Tls(Arc<Serving>),
    /// Nothing: TLS is required, and there was no usable certificate at the start.
    Shut,
}

/// What to do about what was read.
#[derive(Debug)]
pub enum Step {
    /// It is in force already.
    Keep,
    /// It is complete and new.
    Take(Box<Unit>),
    /// There is nothing in force and it is not complete: nothing is served, for this reason.
    Shut(Box<Unit>, String),
    /// It is not complete; what is in force stays, for this reason.
    Refuse(String),
}

/// The files a configuration asks for, and the profile file of the flags.
pub fn sources(config: &Config, profile: Option<&str>) -> Option<Sources> {
    match config.tls.as_ref()? {
        Tls::Off => None,
        Tls::Required {
            cert_file,
            key_file,
            client_ca_file,
        } => Some(Sources {
            pair: PairSource::Files {
                certificate: cert_file.into(),
                key: key_file.into(),
            },
            client_ca: client_ca_file.as_ref().map(Into::into),
            profile: profile.map(Into::into),
        }),
    }
}

/// What a listener wants of its files, with the one thing that follows from them: clients are asked
/// for a certificate where somebody can vouch for it. Others are not asked, for a browser that is
/// asked bothers its user.
pub fn asking(demands: &Demands, sources: &Sources) -> Demands {
    Demands {
        client_auth: match sources.client_ca {
            Some(_) => ClientAuth::Deferred,
            None => ClientAuth::None,
        },
        ..demands.clone()
    }
}

/// Decides about a configuration and the files it asks for.
pub fn step(
    previous: Option<&Unit>,
    config: Config,
    reading: Option<&Reading>,
    demands: &Demands,
    now: Timestamp,
) -> Step {
    let hash = config.hash();
    let same = previous.is_some_and(|previous| previous.hash == hash);
    let unit = |config, transport| {
        Box::new(Unit {
            config,
            transport,
            hash: hash.clone(),
        })
    };
    let Some(reading) = reading else {
        let plain = previous.is_some_and(|it| matches!(it.transport, Transport::Plain));
        return match same && plain {
            true => Step::Keep,
            false => Step::Take(unit(config, Transport::Plain)),
        };
    };
    let serving = previous.and_then(Unit::serving);
    match (
        decide(serving.map(|it| &**it), reading, demands, now),
        serving,
    ) {
        (Decision::Swap(new), _) => Step::Take(unit(config, Transport::Tls(Arc::new(*new)))),
        (Decision::Keep, Some(_)) if same => Step::Keep,
        (Decision::Keep, Some(serving)) => {
            Step::Take(unit(config, Transport::Tls(Arc::clone(serving))))
        }
        (Decision::Keep, None) => Step::Refuse("there is no certificate to keep".into()),
        (Decision::Refuse(refusal), _) => match previous {
            Some(_) => Step::Refuse(refusal.sentence()),
            None => Step::Shut(unit(config, Transport::Shut), refusal.sentence()),
        },
    }
}

impl Unit {
    fn serving(&self) -> Option<&Arc<Serving>> {
        match &self.transport {
            Transport::Tls(serving) => Some(serving),
            Transport::Plain | Transport::Shut => None,
        }
    }

    /// What new connections get.
    pub fn mode(&self) -> Mode {
        match &self.transport {
            Transport::Plain => Mode::Plain,
            Transport::Tls(serving) => Mode::Tls(Arc::clone(&serving.config)),
            Transport::Shut => Mode::Shut,
        }
    }

    /// Who vouches for client certificates.
    pub fn clients(&self) -> Option<Arc<Authorities>> {
        self.serving()?.authorities.clone()
    }

    /// What is in force, for whoever asks. No secrets.
    pub fn loaded(&self, last_error: Option<String>) -> Loaded {
        let leaf = self.serving().map(|serving| &serving.leaf);
        Loaded {
            schema: SCHEMA,
            config_hash: self.hash.clone(),
            tls_mode: match &self.transport {
                Transport::Plain => "off",
                Transport::Tls(_) => "required",
                Transport::Shut => "shut",
            },
            fingerprint: leaf.map(|leaf| leaf.fingerprint.to_string()),
            not_after: leaf.map(|leaf| leaf.not_after.to_string()),
            last_error,
        }
    }
}

/// What is in force, as `/loaded` tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Loaded {
    /// The number of the configuration's keys we know.
    pub schema: u32,
    /// Hash of the configuration.
    pub config_hash: String,
    /// `off`, `required`, or `shut` where nothing is served for want of a certificate.
    pub tls_mode: &'static str,
    /// The certificate, by the hash of its bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
    /// When it ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_after: Option<String>,
    /// Why what the files say now is not in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}
