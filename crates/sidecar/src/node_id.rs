//! The node's identity among peers, from its key.

use crate::hex::hex;
use crate::home::Home;
use base64::Engine;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Why there is no identity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoIdentity {
    /// No file.
    #[error("reading node key: {0}")]
    Unreadable(String),
    /// A file that holds no key.
    #[error("parsing node key: {path} {problem}")]
    NoKey {
        /// The file.
        path: String,
        /// What is wrong.
        problem: String,
    },
}

/// Forty lower-case hexadecimal digits: the beginning of the hash of the public half of the key.
pub fn node_id(home: &Home) -> Result<String, NoIdentity> {
    let path = home.node_key();
    let text =
        crate::disk::read(&path).map_err(|error| NoIdentity::Unreadable(error.to_string()))?;
    let text =
        text.ok_or_else(|| NoIdentity::Unreadable(format!("{} does not exist", path.display())))?;
    of_key(&text).map_err(|problem| NoIdentity::NoKey {
        path: path.display().to_string(),
        problem,
    })
}

// What is wrong is said without repeating any of the file: it holds a private key.
fn of_key(text: &str) -> Result<String, String> {
    let file: Value = serde_json::from_str(text).map_err(|_| "is not JSON".to_owned())?;
    let value = file.pointer("/priv_key/value").and_then(Value::as_str);
    let value = value.ok_or("has no priv_key.value")?;
    let key = base64::engine::general_purpose::STANDARD
        .decode(value)
        .map_err(|_| "has a priv_key.value that is not base64".to_owned())?;
    // The seed, then the public key.
    let public = key.get(32..).filter(|public| public.len() == 32);
    let public =
        public.ok_or_else(|| format!("has a key of {} bytes where 64 are needed", key.len()))?;
    Ok(hex(&Sha256::digest(public)[..20]))
}
