//! Configuration files of `seid` as pure functions on texts.
//!
//! A node's *intent* (its mode, and overrides of single keys) becomes `config.toml`, `app.toml` and
//! `client.toml`; the files on disk are read back, checked, and changed key by key. The keys stand in
//! one table ([`schema`]) that drives parsing, defaults, reading, checking and writing alike. The
//! semantics are those of the library the original sidecar uses, at its version 0.0.25, with two
//! differences: comments and keys nobody knows survive in a file that exists, and a number with
//! something behind it is refused instead of cut short.
//!
//! No files are touched here, no clock is read and nothing is asked of the machine: who calls brings
//! the texts, the host's name and its number of CPUs, and writes what comes back.

use std::fmt;

mod document;
mod duration;
mod fingerprint;
mod host;
mod intent;
mod mode;
mod nearest;
mod overrides;
mod patch;
mod peers;
mod read;
mod render;
pub mod schema;
mod settings;
mod validate;
mod value;
mod whole;

pub use duration::{BadDuration, Duration};
pub use fingerprint::{fingerprint, of_parts};
pub use host::Host;
pub use intent::{Applied, ApplyError, Intent, apply, check_intent};
pub use mode::{Mode, UnknownMode};
pub use nearest::nearest;
pub use overrides::{BadOverride, BadOverrides, snapshot_generation};
pub use patch::{BadPatch, patch, patch_files};
pub use peers::{StateSync, persistent_peers, state_sync_patch, witness_candidates};
pub use read::{Unreadable, read};
pub use render::render;
pub use schema::File;
pub use settings::Settings;
pub use validate::{Diagnostic, Report, Severity, validate, validate_files};
pub use value::{BadValue, Kind, Value};
pub use whole::whole;

/// The schema version written into new files.
pub const CURRENT_VERSION: i64 = 2;

/// Every text a node's configuration folder may hold; absent where the file does not exist.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Texts {
    /// `config.toml`.
    pub config: Option<String>,
    /// `app.toml`.
    pub app: Option<String>,
    /// `client.toml`.
    pub client: Option<String>,
}

/// Which files there are and how long they are: what stands in them may hold a password.
impl fmt::Debug for Texts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = File::ALL.map(|file| (file.name(), self.get(file).map(str::len)));
        f.write_str("Texts ")?;
        f.debug_map().entries(sizes).finish()
    }
}

impl Texts {
    /// The text of one file.
    pub fn get(&self, file: File) -> Option<&str> {
        match file {
            File::Config => self.config.as_deref(),
            File::App => self.app.as_deref(),
            File::Client => self.client.as_deref(),
        }
    }

    /// Replaces the text of one file.
    pub fn set(&mut self, file: File, text: String) {
        match file {
            File::Config => self.config = Some(text),
            File::App => self.app = Some(text),
            File::Client => self.client = Some(text),
        }
    }
}
