//! What of an object is ours, and whether it is already as we want it. Pure.
//!
//! The API server keeps for every field manager the set of fields it applied (`managedFields`).
//! [`owned`] reads these fields out of the live object, [`comparable`] brings what we would apply
//! into the same shape, and equal [`digest`]s mean that applying would change nothing. It sees what
//! others changed, since a field they wrote is no longer ours, and what is left over, since a field
//! we own but no longer want is in one and not in the other. What the server adds by itself is not
//! ours and not seen.
//!
//! Three things do not come back as they were sent. Quantities are written in one way by the server:
//! both sides are brought to it ([`quantity`](crate::quantity)). Zeros (`0`, `false`, `""`, `[]`,
//! `{}`) are often not kept, though the field stays ours: on both sides such a field is `null`. And a
//! list that is owned as a whole ("atomic": rules of a NetworkPolicy, `volumeClaimTemplates`) comes
//! back with the server's defaults in it and without its zeros: whoever applies one must spell the
//! defaults out and leave the zeros out, or it is never already so.

use crate::quantity;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use std::fmt::Write;

/// The part of the object that this field manager applied, as it is now.
pub fn owned(object: &Value, manager: &str) -> Value {
    let mut fields = Map::new();
    let entries = object["metadata"]["managedFields"].as_array();
    for entry in entries.into_iter().flatten() {
        let ours = entry["manager"] == manager
            && entry["operation"] == "Apply"
            && entry["subresource"].as_str().unwrap_or_default().is_empty();
        if let (true, Some(set)) = (ours, entry["fieldsV1"].as_object()) {
            join(&mut fields, set);
        }
    }
    match pick(object, &fields) {
        Some(part) if !fields.is_empty() => normal(&part, Place::Elsewhere),
        _ => Value::Object(Map::new()),
    }
}

/// What we would apply, in the shape of [`owned`]: without its type, name and status, which no field
/// manager owns, and without nulls.
pub fn comparable(wanted: &Value) -> Value {
    let mut wanted = wanted.clone();
    drop_nulls(&mut wanted);
    if let Some(fields) = wanted.as_object_mut() {
        for field in ["apiVersion", "kind", "status"] {
            fields.shift_remove(field);
        }
        if let Some(metadata) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in ["name", "namespace"] {
                metadata.shift_remove(field);
            }
            if metadata.is_empty() {
                fields.shift_remove("metadata");
            }
        }
    }
    normal(&wanted, Place::Elsewhere)
}

/// A digest of the value; the order of fields does not count, the order of lists does.
pub fn digest(value: &Value) -> String {
    let mut text = String::new();
    write_canonical(value, &mut text);
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(text.as_bytes()) {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}

/// Adds one set of fields to another.
fn join(fields: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (path, below) in more {
        let entry = fields
            .entry(path.clone())
            .or_insert_with(|| Value::Object(Map::new()));
        if let (Some(fields), Some(more)) = (entry.as_object_mut(), below.as_object()) {
            join(fields, more);
        }
    }
}

/// The part of a value that a set of fields names; none where nothing of it is there.
fn pick(value: &Value, fields: &Map<String, Value>) -> Option<Value> {
    // A path with nothing below it: the field is owned as a whole.
    if fields.keys().all(|path| path == ".") {
        return Some(match value {
            // "." alone is the bare existence of a map or an element whose content is others'.
            Value::Object(_) if !fields.is_empty() => Value::Object(Map::new()),
            Value::Array(_) if !fields.is_empty() => Value::Array(Vec::new()),
            whole => whole.clone(),
        });
    }
    match value {
        Value::Object(map) => Some(Value::Object(
            fields
                .iter()
                .filter_map(|(path, below)| {
                    let name = path.strip_prefix("f:")?;
                    // Ours and not there: a zero that the server does not keep.
                    let part = match map.get(name) {
                        Some(value) => pick(value, below.as_object()?)?,
                        None => Value::Null,
                    };
                    Some((name.to_owned(), part))
                })
                .collect(),
        )),
        Value::Array(items) => Some(Value::Array(
            items
                .iter()
                .enumerate()
                .filter_map(|(index, item)| pick(item, of_item(index, item, fields)?))
                .collect(),
        )),
        // The set speaks of fields in something that has none any more.
        _ => None,
    }
}

/// The set of fields of one element of a list: found by its keys, its value or its index.
fn of_item<'a>(
    index: usize,
    item: &Value,
    fields: &'a Map<String, Value>,
) -> Option<&'a Map<String, Value>> {
    fields.iter().find_map(|(path, below)| {
        let (kind, rest) = path.split_at_checked(2)?;
        let named: Value = serde_json::from_str(rest).ok()?;
        let meant = match (kind, &named) {
            ("k:", Value::Object(keys)) => {
                keys.iter().all(|(key, value)| item.get(key) == Some(value))
            }
            ("v:", value) => item == value,
            ("i:", number) => number.as_u64() == u64::try_from(index).ok(),
            _ => false,
        };
        if meant { below.as_object() } else { None }
    })
}

/// Where in an object a value stands, as far as it matters for how it is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In `resources`, whose parts are maps of quantities.
    Resources,
    /// A map of quantities.
    Quantities,
    /// One quantity.
    Quantity,
    Elsewhere,
}

impl Place {
    fn below(self, field: &str) -> Self {
        match (self, field) {
            (Self::Quantities, _) | (_, "sizeLimit") => Self::Quantity,
            (Self::Resources, "requests" | "limits") => Self::Quantities,
            (_, "resources") => Self::Resources,
            _ => Self::Elsewhere,
        }
    }
}

/// A value written in one way: quantities as the server does, fields that are zero as `null`.
fn normal(value: &Value, place: Place) -> Value {
    match value {
        Value::Array(items) => {
            let items = items.iter().map(|item| normal(item, Place::Elsewhere));
            Value::Array(items.collect())
        }
        Value::Object(map) => {
            let field = |(name, value): (&String, &Value)| {
                let value = match is_zero(value) {
                    true => Value::Null,
                    false => normal(value, place.below(name)),
                };
                (name.clone(), value)
            };
            Value::Object(map.iter().map(field).collect())
        }
        plain if place == Place::Quantity => {
            let text = match plain {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            Value::String(quantity::canonical(&text).unwrap_or(text))
        }
        plain => plain.clone(),
    }
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(yes) => !yes,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
    }
}

/// Takes out fields that are null: whoever applies one owns it, and nobody means to.
pub(crate) fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// JSON with sorted fields and no spaces.
fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(map) => {
            let mut fields: Vec<_> = map.iter().collect();
            fields.sort_by_key(|(name, _)| *name);
            text.push('{');
            for (index, (name, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write_canonical(value, text);
            }
            text.push('}');
        }
        Value::Array(items) => {
            text.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_canonical(item, text);
            }
            text.push(']');
        }
        plain => text.push_str(&plain.to_string()),
    }
}
