//! Lower-case hexadecimal, and SHA-256 written in it.
//!
//! Thirty lines instead of a dependency; nothing here is about TLS.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The bytes in lower-case hexadecimal.
pub(crate) fn encode(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Thirty-two bytes from hexadecimal in either case; colons between bytes, as openssl prints them,
/// are passed over.
pub(crate) fn decode32(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|sign| *sign != ':')
        .map(|sign| sign.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect::<Option<_>>()?;
    let bytes: Vec<u8> = digits
        .chunks_exact(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect();
    if digits.len() == 64 {
        bytes.try_into().ok()
    } else {
        None
    }
}

/// The SHA-256 of the bytes.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
