//! Digests of values, to compare what is too long to keep.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// The first half of a SHA-256 of the value's text, in hexadecimal. Whoever makes the value sees to
/// the order of its fields.
pub(crate) fn digest(value: &Value) -> String {
    let hash = Sha256::digest(value.to_string().as_bytes());
    hash[..16]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
