//! A node's whole configuration as values by key, independent of the files it is written to.

use std::collections::BTreeMap;
use std::fmt;

use crate::CURRENT_VERSION;
use crate::duration::Duration;
use crate::host::Host;
use crate::mode::Mode;
use crate::schema;
use crate::value::Value;

/// Values by key. A key that is not here is left out of the files.
#[derive(Clone, PartialEq)]
pub struct Settings {
    values: BTreeMap<&'static str, Value>,
}

impl Settings {
    /// What a node of this mode has before anyone overrides anything.
    pub fn for_mode(mode: Mode, host: &Host) -> Self {
        let mut settings = Self::empty();
        for field in schema::fields() {
            if let Some(value) = field.default(mode, host) {
                settings.set(field.key, value);
            }
        }
        settings.set_mode(mode.as_str());
        settings.set_version(CURRENT_VERSION);
        settings
    }

    pub(crate) fn empty() -> Self {
        Self {
            values: BTreeMap::new(),
        }
    }

    /// The value of a key, where it has one.
    pub fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    pub(crate) fn set(&mut self, key: &'static str, value: Value) {
        self.values.insert(key, value);
    }

    /// The mode's word. It may be none we know, where a file or an override says so.
    pub fn mode(&self) -> &str {
        self.text("mode")
    }

    pub(crate) fn set_mode(&mut self, mode: &str) {
        self.set("mode", Value::Text(mode.to_owned()));
    }

    /// The version of the schema the configuration is for.
    pub fn version(&self) -> i64 {
        self.int("version")
    }

    pub(crate) fn set_version(&mut self, version: i64) {
        self.set("version", Value::Int(version));
    }

    pub(crate) fn text(&self, key: &str) -> &str {
        match self.get(key) {
            Some(Value::Text(text)) => text,
            _ => "",
        }
    }

    pub(crate) fn int(&self, key: &str) -> i64 {
        match self.get(key) {
            Some(Value::Int(number)) => *number,
            _ => 0,
        }
    }

    pub(crate) fn flag(&self, key: &str) -> bool {
        matches!(self.get(key), Some(Value::Bool(true)))
    }

    pub(crate) fn span(&self, key: &str) -> Duration {
        match self.get(key) {
            Some(Value::Duration(span)) => *span,
            _ => Duration::default(),
        }
    }

    pub(crate) fn list(&self, key: &str) -> &[String] {
        match self.get(key) {
            Some(Value::List(entries)) => entries,
            _ => &[],
        }
    }
}

/// Keys whose values are not for logs: they may hold a password.
const SECRET: &[&str] = &["tx_index.psql_conn", "evm.replay.eth_rpc"];

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self
            .values
            .iter()
            .map(|(key, value)| (*key, value.to_string()));
        f.write_str("Settings ")?;
        f.debug_map().entries(shown.map(masked)).finish()
    }
}

/// A key and its value as logs may have them.
pub(crate) fn masked<K: AsRef<str>>((key, value): (K, String)) -> (K, String) {
    if SECRET.contains(&key.as_ref()) {
        (key, "(not shown)".into())
    } else {
        (key, value)
    }
}
