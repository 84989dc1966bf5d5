//! A JWT in its compact form, taken apart. Nothing in it is true until its signature is checked.

use super::Rejected;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A token and what its signature is over.
#[derive(Clone, PartialEq, Eq)]
pub struct Signed<'a> {
    /// How it says it is signed.
    pub algorithm: String,
    /// With which key, where it says so.
    pub key: Option<String>,
    /// What it claims.
    pub claims: Map<String, Value>,
    /// What is signed.
    pub message: &'a str,
    /// The signature.
    pub signature: Vec<u8>,
}

impl std::fmt::Debug for Signed<'_> {
    /// Without what could be used as the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signed")
            .field("algorithm", &self.algorithm)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    /// Extensions that must be understood, of which we understand none.
    #[serde(default)]
    crit: Option<Value>,
}

impl<'a> Signed<'a> {
    /// Takes a token apart.
    pub fn read(token: &'a str) -> Result<Self, Rejected> {
        Self::parts(token).ok_or(Rejected::NotAToken)
    }

    fn parts(token: &'a str) -> Option<Self> {
        let (message, signature) = token.rsplit_once('.')?;
        let (header, claims) = message.split_once('.')?;
        if claims.contains('.') {
            return None;
        }
        let header = Self::object(header)?;
        let header: Header = serde_json::from_value(header.into()).ok()?;
        if header.crit.is_some() {
            return None;
        }
        Some(Self {
            algorithm: header.alg,
            key: header.kid,
            claims: Self::object(claims)?,
            message,
            signature: URL_SAFE_NO_PAD.decode(signature).ok()?,
        })
    }

    fn object(encoded: &str) -> Option<Map<String, Value>> {
        let bytes = URL_SAFE_NO_PAD.decode(encoded).ok()?;
        serde_json::from_slice(&bytes).ok()
    }
}
