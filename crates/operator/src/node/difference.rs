//! The merge patch that makes one JSON value of another: what differs and nothing else, so that a
//! status of many tasks costs a few bytes to move on.

use serde_json::{Map, Value};

/// The patch; nothing where both are the same. Lists are replaced whole.
pub fn difference(old: &Value, new: &Value) -> Option<Value> {
    match (old, new) {
        (old, new) if old == new => None,
        (Value::Object(old), Value::Object(new)) => {
            let gone = old.keys().filter(|name| !new.contains_key(*name));
            let mut patch: Map<String, Value> =
                gone.map(|name| (name.clone(), Value::Null)).collect();
            for (name, value) in new {
                let changed = match old.get(name) {
                    Some(old) => difference(old, value),
                    None => Some(value.clone()),
                };
                patch.extend(changed.map(|changed| (name.clone(), changed)));
            }
            Some(Value::Object(patch))
        }
        (_, new) => Some(new.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_gone_is_null_and_what_is_the_same_is_absent() {
        let old = json!({ "a": 1, "b": { "c": 2, "d": 3 }, "e": [1, 2] });
        let new = json!({ "a": 1, "b": { "c": 4 }, "e": [1], "f": {} });
        let patch = json!({ "b": { "c": 4, "d": null }, "e": [1], "f": {} });
        assert_eq!(difference(&old, &new), Some(patch));
        assert_eq!(difference(&old, &old), None);
    }
}
