//! Overrides: single keys a node sets differently from its mode's defaults.

use std::collections::BTreeMap;
use std::fmt;

use crate::nearest::nearest;
use crate::schema;
use crate::settings::Settings;
use crate::value::{BadValue, Value};

/// Why one override is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BadOverride {
    /// A key nobody knows.
    #[error("unknown override key {key:?}{}", suggestion(*.nearest))]
    UnknownKey {
        /// The key.
        key: String,
        /// The key that was probably meant.
        nearest: Option<&'static str>,
    },
    /// A value its key cannot have.
    #[error("override {key} is refused: {problem}")]
    BadValue {
        /// The key.
        key: &'static str,
        /// What is wrong.
        problem: BadValue,
    },
}

impl BadOverride {
    /// The key at fault.
    pub fn key(&self) -> &str {
        match self {
            Self::UnknownKey { key, .. } => key,
            Self::BadValue { key, .. } => key,
        }
    }
}

fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |key| format!("; did you mean {key:?}?"))
}

/// Every override that is refused, so that they are mended at once.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub struct BadOverrides(pub Vec<BadOverride>);

impl fmt::Display for BadOverrides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentences: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        write!(f, "applying overrides: {}", sentences.join("; "))
    }
}

/// What the overrides say, by key, or all that is wrong with them.
pub(crate) fn parse(
    overrides: &BTreeMap<String, String>,
) -> Result<BTreeMap<&'static str, Value>, BadOverrides> {
    let (mut values, mut refused) = (BTreeMap::new(), Vec::new());
    for (key, text) in overrides {
        match schema::field(key) {
            None => refused.push(BadOverride::UnknownKey {
                key: key.clone(),
                nearest: nearest(key, schema::fields().map(|field| field.key)),
            }),
            Some(field) => match field.kind.parse(text) {
                Ok(value) => {
                    values.insert(field.key, value);
                }
                Err(problem) => refused.push(BadOverride::BadValue {
                    key: field.key,
                    problem,
                }),
            },
        }
    }
    if refused.is_empty() {
        Ok(values)
    } else {
        Err(BadOverrides(refused))
    }
}

impl Settings {
    pub(crate) fn override_with(&mut self, values: &BTreeMap<&'static str, Value>) {
        for (key, value) in values {
            self.set(key, value.clone());
        }
    }
}

/// Overrides of a full node that makes snapshots for others: it writes them, prunes sooner, and has
/// room for those who fetch them.
pub fn snapshot_generation(keep_recent: u32) -> BTreeMap<String, String> {
    let keep_recent = keep_recent.to_string();
    [
        ("storage.snapshot_interval", "2000"),
        ("storage.snapshot_keep_recent", keep_recent.as_str()),
        ("storage.pruning_keep_recent", "50000"),
        ("storage.pruning_keep_every", "0"),
        ("chain.min_retain_blocks", "50000"),
        ("network.p2p.max_connections", "500"),
        ("network.p2p.send_rate", "20971520"),
        ("network.p2p.recv_rate", "20971520"),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .collect()
}
