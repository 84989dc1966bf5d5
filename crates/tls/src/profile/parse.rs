//! Reading `profile.json`: strict about keys and types, silent about names.
//!
//! A key nobody knows is an error with a suggestion, because a misspelt `ciphers` would otherwise
//! widen what is served. A suite or group nobody knows is not an error here: the report names it.

use serde_json::{Map, Value};

use super::{Listed, Profile, Version};

/// Why a file is not a profile. No variant repeats the file's content beyond a key or a version:
/// the file may turn out to be something else, for instance a key.
#[derive(Debug, thiserror::Error)]
pub enum Malformed {
    /// Not JSON.
    #[error("the TLS profile is not JSON (line {line}, column {column})")]
    NotJson {
        /// Line of the first error.
        line: usize,
        /// Column of the first error.
        column: usize,
    },
    /// JSON of another shape.
    #[error("the TLS profile is not a JSON object")]
    NotAnObject,
    /// A key that means nothing.
    #[error("{key:?} is not a key of a TLS profile{}", suggestion(.nearest))]
    UnknownKey {
        /// The key.
        key: String,
        /// The key that was probably meant.
        nearest: Option<&'static str>,
    },
    /// A value of the wrong type.
    #[error("{key} of the TLS profile is not {expected}")]
    WrongType {
        /// The key.
        key: &'static str,
        /// What it should be.
        expected: &'static str,
    },
    /// A version nobody knows.
    #[error(
        "minTLSVersion {0:?} is unknown: use VersionTLS10, VersionTLS11, VersionTLS12 or VersionTLS13"
    )]
    UnknownVersion(String),
    /// `groups` and its alias disagree.
    #[error("the TLS profile has groups and curves and they differ: remove curves")]
    GroupsAndCurves,
    /// `source` with another value than None.
    #[error("source {0:?} is not for the profile file: only None is")]
    UnknownSource(String),
    /// `source: None` beside lists.
    #[error(
        "source None asks for the library's defaults: remove the other keys of the TLS profile"
    )]
    SourceNoneWithLists,
}

fn suggestion(nearest: &Option<&'static str>) -> String {
    match nearest {
        Some(key) => format!("; did you mean {key:?}?"),
        None => String::from(": use ciphers, minTLSVersion and groups"),
    }
}

const KEYS: &[&str] = &["ciphers", "minTLSVersion", "groups", "curves", "source"];

pub(super) fn profile(json: &[u8]) -> Result<Profile, Malformed> {
    let value: Value = serde_json::from_slice(json).map_err(|error| Malformed::NotJson {
        line: error.line(),
        column: error.column(),
    })?;
    let Value::Object(object) = value else {
        return Err(Malformed::NotAnObject);
    };
    if let Some(key) = object.keys().find(|key| !KEYS.contains(&key.as_str())) {
        return Err(Malformed::UnknownKey {
            key: key.clone(),
            nearest: nearest(key),
        });
    }
    if let Some(source) = text(&object, "source")? {
        return match source {
            "None" if object.len() == 1 => Ok(Profile::LibraryDefaults),
            "None" => Err(Malformed::SourceNoneWithLists),
            other => Err(Malformed::UnknownSource(other.to_owned())),
        };
    }
    Ok(Profile::Listed(Listed {
        ciphers: list(&object, "ciphers")?,
        minimum: minimum(text(&object, "minTLSVersion")?)?,
        groups: groups(&object)?,
    }))
}

fn minimum(text: Option<&str>) -> Result<Version, Malformed> {
    match text {
        None | Some("") => Ok(Version::Tls12),
        Some(text) => {
            Version::from_name(text).ok_or_else(|| Malformed::UnknownVersion(text.to_owned()))
        }
    }
}

fn groups(object: &Map<String, Value>) -> Result<Vec<String>, Malformed> {
    match (list(object, "groups")?, list(object, "curves")?) {
        (Some(groups), Some(curves)) if groups != curves => Err(Malformed::GroupsAndCurves),
        (groups, curves) => Ok(groups.or(curves).unwrap_or_default()),
    }
}

fn text<'a>(
    object: &'a Map<String, Value>,
    key: &'static str,
) -> Result<Option<&'a str>, Malformed> {
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Malformed::WrongType {
            key,
            expected: "a string",
        }),
    }
}

fn list(object: &Map<String, Value>, key: &'static str) -> Result<Option<Vec<String>>, Malformed> {
    let wrong = || Malformed::WrongType {
        key,
        expected: "a list of strings",
    };
    match object.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned).ok_or_else(wrong))
            .collect::<Result<_, _>>()
            .map(Some),
        Some(_) => Err(wrong()),
    }
}

/// The known key that shares the longest beginning, in any case, if that is most of it.
fn nearest(key: &str) -> Option<&'static str> {
    let shared = |known: &str| {
        known
            .chars()
            .zip(key.chars())
            .take_while(|(a, b)| a.eq_ignore_ascii_case(b))
            .count()
    };
    KEYS.iter()
        .copied()
        .max_by_key(|known| shared(known))
        .filter(|known| shared(known) * 2 >= known.len())
}
