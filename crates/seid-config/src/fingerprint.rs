//! One hash for a set of files: whether a node's configuration is still the one it was approved with.

use std::fmt::Write;

use sha2::{Digest, Sha256};

use crate::Texts;
use crate::schema::File;

/// SHA-256 of all files of the configuration, in lower-case hexadecimal. Any byte counts, and a file
/// that is absent is another thing than an empty one.
pub fn fingerprint(texts: &Texts) -> String {
    let parts = File::ALL.into_iter().flat_map(|file| {
        let text = texts.get(file);
        let presence: &[u8] = if text.is_some() {
            b"present"
        } else {
            b"absent"
        };
        [
            file.name().as_bytes(),
            presence,
            text.unwrap_or_default().as_bytes(),
        ]
    });
    of_parts(parts)
}

/// SHA-256 of a list of parts, in lower-case hexadecimal. Each part goes in with its length, so that no
/// two lists run together into one text.
pub fn of_parts<'a>(parts: impl Iterator<Item = &'a [u8]>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hash.finalize()
        .iter()
        .fold(String::new(), |mut text, byte| {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}
