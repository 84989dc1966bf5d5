//! Where the checkout's files and programs are.

use anyhow::Context;
use std::path::{Path, PathBuf};

fn checkout() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// A file of the checkout.
pub fn file(path: &str) -> PathBuf {
    checkout().join(path)
}

/// Reads a file, or says which could not be read.
pub fn read(file: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(file).with_context(|| format!("{} could not be read", file.display()))
}

/// Writes a file, or says which could not be written.
pub fn write(file: &Path, text: &str) -> anyhow::Result<()> {
    std::fs::write(file, text).with_context(|| format!("{} could not be written", file.display()))
}

/// A program of this workspace, as it is shipped.
pub fn released(name: &str) -> anyhow::Result<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.unwrap_or_else(|| checkout().join("target"));
    let file = target.join("release").join(name);
    anyhow::ensure!(
        file.exists(),
        "{} is not there: run `make bench`, which builds it",
        file.display()
    );
    Ok(file)
}
