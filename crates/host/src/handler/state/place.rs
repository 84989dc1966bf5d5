//! Where in a state something is that nmstate cannot read: its message says what is wrong, and seldom
//! with which of many interfaces.

use keelson_api::policy::State;
use nmstate::{Interface, RouteEntry, RouteRuleEntry};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::list;

/// What begins a part that is filled in from captures, and cannot be read before.
const TEMPLATE: &str = "{{";

/// The first interface, route or rule that cannot be read; none where the fault is elsewhere, or a part
/// is yet to be filled in.
pub fn unreadable(state: &State) -> Option<String> {
    let entries = |part: &str| state.get(part).and_then(|it| it.get("config"));
    let found = first::<Interface>(state.get("interfaces"), "interfaces")
        .or_else(|| first::<RouteEntry>(entries("routes"), "routes.config"));
    found.or_else(|| first::<RouteRuleEntry>(entries("route-rules"), "route-rules.config"))
}

fn first<T: DeserializeOwned>(entries: Option<&Value>, part: &str) -> Option<String> {
    let unread = |it: &Value| {
        let filled = !it.to_string().contains(TEMPLATE);
        filled && serde_json::from_value::<T>(it.clone()).is_err()
    };
    let mut entries = list(entries).enumerate();
    let (at, entry) = entries.find(|(_, it)| unread(it))?;
    Some(match entry.get("name").and_then(Value::as_str) {
        Some(name) => format!("{part}[{at}] ({name})"),
        None => format!("{part}[{at}]"),
    })
}
