//! Where what is slow to make is kept, and where the checkout it is made from lies.

use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// The folder of everything kept between runs: `KEELSON_CACHE`, else `~/.cache/keelson`.
pub fn folder() -> PathBuf {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    match (set("KEELSON_CACHE"), set("HOME")) {
        (Some(chosen), _) => chosen.into(),
        (None, Some(home)) => Path::new(&home).join(".cache/keelson"),
        (None, None) => "/tmp/keelson".into(),
    }
}

/// Where the folders of running clusters are.
pub(crate) fn clusters() -> PathBuf {
    folder().join("clusters")
}

/// Where the images of this checkout are. They are named alike in every checkout and hold its own
/// programs, so two that are tested side by side must not take each other's.
pub(crate) fn images() -> PathBuf {
    let checkout = key(&[checkout().as_os_str().as_encoded_bytes()]);
    folder().join("images").join(checkout)
}

/// The checkout this program was built from: module files, manifests and sources are read there.
pub(crate) fn checkout() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_owned()
}

/// A short name for content: the same parts give the same name.
pub(crate) fn key(parts: &[&[u8]]) -> String {
    let hash = parts
        .iter()
        .fold(Sha256::new(), |hash, part| hash.chain_update(part));
    hash.finalize()
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
