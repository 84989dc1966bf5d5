//! What a played proxy serves: a pure function of what it serves now, its files and its arguments.
//!
//! Ours follows its files and fails closed. kube-rbac-proxy serves what its flags say for as long as
//! the pod lives; only its certificate follows the file.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use keelson_tls::{ClientAuth, Pair, Profile, server_config};
use rustls::ServerConfig;
use serde::Deserialize;

/// A certificate with its key, PEM.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct PairBytes {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

impl fmt::Debug for PairBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PairBytes")
    }
}

/// The files of a proxy as they are mounted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Files {
    pub(crate) config: Option<String>,
    pub(crate) pair: Option<PairBytes>,
}

/// What new connections get.
#[derive(Clone)]
pub(crate) enum Serving {
    /// None are taken.
    Nothing,
    /// There is a proxy, which has no certificate and must have one.
    Shut,
    Plain,
    Tls(Tls),
}

/// A certificate that is served.
#[derive(Clone)]
pub(crate) struct Tls {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) fingerprint: String,
    pub(crate) not_after: String,
}

impl Serving {
    /// The word for it, as `/loaded` says it.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Nothing | Self::Shut => "shut",
            Self::Plain => "off",
            Self::Tls(_) => "required",
        }
    }

    /// The certificate that is served.
    pub(crate) fn fingerprint(&self) -> Option<&str> {
        match self {
            Self::Tls(tls) => Some(&tls.fingerprint),
            _ => None,
        }
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.word(), self.fingerprint())
    }
}

#[derive(Deserialize)]
struct Config {
    tls: Option<TlsSection>,
}

#[derive(Deserialize)]
struct TlsSection {
    mode: String,
}

/// What is served next. At a start nothing is served before.
pub(crate) fn follow(now: &Serving, files: &Files, arguments: &[String], at: Timestamp) -> Serving {
    let has = |flag: &str| arguments.iter().any(|it| it.starts_with(flag));
    let tls_wanted = if has("--insecure-listen-address") {
        Some(false)
    } else if has("--secure-listen-address") {
        Some(true)
    } else {
        files.config.as_deref().and_then(wants_tls)
    };
    let next = match tls_wanted {
        Some(false) => Some(Serving::Plain),
        Some(true) => files.pair.as_ref().and_then(|pair| load(pair, at)),
        None => None,
    };
    match (next, now) {
        (Some(next), _) => next,
        (None, Serving::Nothing) => Serving::Shut,
        (None, last) => last.clone(),
    }
}

/// Whether a configuration asks for TLS; nothing for one that cannot be read.
fn wants_tls(text: &str) -> Option<bool> {
    let config: Config = serde_saphyr::from_str(text).ok()?;
    match config.tls?.mode.as_str() {
        "off" => Some(false),
        "required" => Some(true),
        _ => None,
    }
}

fn load(bytes: &PairBytes, at: Timestamp) -> Option<Serving> {
    let pair = Pair::from_pem(&bytes.certificate, &bytes.key).ok()?;
    pair.leaf().valid_at(at).ok()?;
    let alpn = [b"http/1.1".to_vec()];
    let profile = Profile::intermediate();
    let (config, _) = server_config(&profile, &pair, ClientAuth::None, None, &alpn).ok()?;
    Some(Serving::Tls(Tls {
        config: Arc::new(config),
        fingerprint: pair.leaf().fingerprint.to_string(),
        not_after: pair.leaf().not_after.to_string(),
    }))
}
