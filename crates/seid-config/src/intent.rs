//! What a node's configuration shall be, and how it becomes files: the task `config-apply`.
//!
//! Without `incremental` every key is written: the mode's defaults, then the overrides. What earlier
//! tasks put there (peers, state sync) is gone afterwards, as it is with the original. With
//! `incremental` only the keys that are asked for change. Either way nothing is written that does not
//! pass the checks.

use std::collections::BTreeMap;
use std::fmt;

use crate::host::Host;
use crate::mode::{Mode, UnknownMode};
use crate::overrides::{self, BadOverrides};
use crate::read::{Unreadable, read};
use crate::render::{render, write};
use crate::schema::{self, Field, File};
use crate::settings::{Settings, masked};
use crate::validate::{Diagnostic, Report, Severity, check, json};
use crate::{CURRENT_VERSION, Texts};

/// What a node's configuration shall be.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Intent {
    /// The mode; may be empty where the intent is incremental, and the mode then stays.
    pub mode: String,
    /// Values of single keys.
    pub overrides: BTreeMap<String, String>,
    /// The version of the schema; zero means today's.
    pub target_version: i64,
    /// Changes the files on disk instead of writing them anew.
    pub incremental: bool,
}

impl fmt::Debug for Intent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.overrides.clone().into_iter().map(masked);
        f.debug_struct("Intent")
            .field("mode", &self.mode)
            .field("overrides", &shown.collect::<BTreeMap<_, _>>())
            .field("target_version", &self.target_version)
            .field("incremental", &self.incremental)
            .finish()
    }
}

/// Files that are ready to be written.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The files; those that are not to be written are as they were given.
    pub texts: Texts,
    /// What stands in them.
    pub settings: Settings,
    /// What the checks found, none of it an error.
    pub warnings: Vec<Diagnostic>,
}

/// Why an intent becomes no files.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ApplyError {
    /// No mode.
    #[error("config-apply: a mode is required: use validator, full, seed or archive")]
    ModeMissing,
    /// A mode nobody knows.
    #[error("config-apply: {0}")]
    ModeUnknown(UnknownMode),
    /// Overrides that mean nothing.
    #[error("config-apply: {0}")]
    Overrides(BadOverrides),
    /// Files on disk that cannot be read.
    #[error("config-apply: {0}")]
    Unreadable(Unreadable),
    /// A configuration seid would refuse, or should.
    #[error("config validation failed: {}", json(.0))]
    Invalid(Vec<Diagnostic>),
}

impl Intent {
    fn version(&self) -> i64 {
        if self.target_version > 0 {
            self.target_version
        } else {
            CURRENT_VERSION
        }
    }

    /// SHA-256 of what the intent asks for, in lower-case hexadecimal: equal for equal intents,
    /// however they were written down.
    pub fn fingerprint(&self) -> String {
        let version = self.version().to_string();
        let incremental = self.incremental.to_string();
        let mut parts = vec![self.mode.as_str(), &version, &incremental];
        for (key, value) in &self.overrides {
            parts.extend([key.as_str(), value.as_str()]);
        }
        crate::fingerprint::of_parts(parts.into_iter().map(str::as_bytes))
    }
}

/// The files as the intent wants them.
pub fn apply(intent: &Intent, host: &Host, existing: &Texts) -> Result<Applied, ApplyError> {
    let asked = overrides::parse(&intent.overrides).map_err(ApplyError::Overrides);
    if intent.incremental {
        let mut settings = read(existing).map_err(ApplyError::Unreadable)?;
        let asked = asked?;
        settings.override_with(&asked);
        let mut keys: Vec<&str> = asked.keys().copied().collect();
        if !intent.mode.is_empty() {
            settings.set_mode(&intent.mode);
            keys.push("mode");
        }
        let warnings = passed(&settings, intent)?;
        let texts = change(existing, &keys, &settings).map_err(ApplyError::Unreadable)?;
        return Ok(Applied {
            texts,
            settings,
            warnings,
        });
    }
    if intent.mode.is_empty() {
        return Err(ApplyError::ModeMissing);
    }
    let mode: Mode = intent.mode.parse().map_err(ApplyError::ModeUnknown)?;
    let mut settings = Settings::for_mode(mode, host);
    settings.set_version(intent.version());
    settings.override_with(&asked?);
    let warnings = passed(&settings, intent)?;
    let texts = render(&settings, existing).map_err(ApplyError::Unreadable)?;
    Ok(Applied {
        texts,
        settings,
        warnings,
    })
}

fn passed(settings: &Settings, intent: &Intent) -> Result<Vec<Diagnostic>, ApplyError> {
    let found = check(settings, intent.version());
    if found.iter().any(|it| it.severity == Severity::Error) {
        Err(ApplyError::Invalid(found))
    } else {
        Ok(found)
    }
}

/// The files with these keys changed and nothing else.
fn change(existing: &Texts, keys: &[&str], settings: &Settings) -> Result<Texts, Unreadable> {
    let mut texts = existing.clone();
    for file in File::ALL {
        let rows: Vec<&Field> = schema::rows()
            .filter(|row| row.file == file && keys.contains(&row.key))
            .collect();
        if !rows.is_empty() {
            texts.set(file, write(file, existing.get(file), &rows, settings)?);
        }
    }
    Ok(texts)
}

/// Checks an intent without any file, before it is submitted: whether its mode and version are known
/// and its overrides mean something.
pub fn check_intent(intent: &Intent) -> Report {
    let mut found = Vec::new();
    if !intent.incremental {
        if intent.mode.is_empty() {
            found.push(Diagnostic::error("mode", ApplyError::ModeMissing));
        } else if let Err(error) = intent.mode.parse::<Mode>() {
            found.push(Diagnostic::error("mode", error));
        }
    }
    let version = intent.version();
    if version > CURRENT_VERSION {
        let sentence =
            format!("version {version} is newer than {CURRENT_VERSION}, the newest known");
        found.push(Diagnostic::error("targetVersion", sentence));
    }
    if let Err(BadOverrides(refused)) = overrides::parse(&intent.overrides) {
        let field = |it: &overrides::BadOverride| format!("overrides.{}", it.key());
        found.extend(refused.iter().map(|it| Diagnostic::error(&field(it), it)));
    }
    Report {
        valid: found.is_empty(),
        version,
        mode: intent.mode.clone(),
        diagnostics: found,
    }
}
