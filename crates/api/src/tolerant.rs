//! Decoding of what some version of some operator once wrote.
//!
//! A status that cannot be read must not hide the object it belongs to: an operator that fails to
//! decode one node sees none of them. So every status field is decoded on its own, and one that has
//! an unknown shape reads as absent. Specs never use this.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A value, or nothing where it has a shape we do not know.
pub fn option<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Ok(read(Value::deserialize(deserializer)?))
}

/// A value, or its default where it has a shape we do not know.
pub fn value<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned + Default,
{
    Ok(read(Value::deserialize(deserializer)?).unwrap_or_default())
}

/// The entries of a list that can be read; an entry of an unknown shape is left out, the rest stays.
pub fn list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    match Value::deserialize(deserializer)? {
        Value::Array(entries) => Ok(entries.into_iter().filter_map(read).collect()),
        _ => Ok(Vec::new()),
    }
}

fn read<T: DeserializeOwned>(value: Value) -> Option<T> {
    match value {
        Value::Null => None,
        value => serde_json::from_value(value).ok(),
    }
}
