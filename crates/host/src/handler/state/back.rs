//! The way back from a change: what nmstate makes of it, completed.
//!
//! nmstate takes back the very members a change names. Where those decide about others, more is lost:
//! addresses with `enabled: false`, what DHCP may bring with `dhcp: false`, and a name that was not
//! there is not taken away. What stood beside them before goes into the way back here; what nmstate
//! would not take goes out of it.

use keelson_api::policy::State;
use serde_json::{Map, Value, json};

use super::{interfaces, list, text};

/// The way back to the state of before, from what nmstate makes of it for a desired state.
pub fn way_back(mut revert: State, desired: &State, before: &State) -> State {
    let changed = revert.get_mut("interfaces").and_then(Value::as_array_mut);
    for interface in changed
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        if text(interface, "state") == Some("absent") {
            continue;
        }
        let named = |it: &&Map<String, Value>| text(it, "name") == text(interface, "name");
        let (asked, had) = (
            interfaces(desired).find(named),
            interfaces(before).find(named),
        );
        let Some(had) = had else { continue };
        for family in ["ipv4", "ipv6"] {
            if interface.contains_key(family)
                && let Some(had) = had.get(family)
            {
                interface.insert(family.to_owned(), had.clone());
            }
        }
        let names = surplus_names(asked, had);
        if !names.is_empty() {
            interface.insert("alt-names".to_owned(), Value::Array(names));
        }
    }
    forget_domains(&mut revert);
    revert
}

/// Routes that are to go are found by their tables: nmstate takes none that names a routing domain which
/// goes along with it.
fn forget_domains(revert: &mut State) {
    let routes = revert
        .get_mut("routes")
        .and_then(|it| it.get_mut("config"))
        .and_then(Value::as_array_mut);
    for route in routes
        .into_iter()
        .flatten()
        .filter_map(Value::as_object_mut)
    {
        if text(route, "state") == Some("absent") && route.contains_key("table-id") {
            route.remove("vrf-name");
        }
    }
}

/// The other names an interface is given and did not have, to be taken away.
fn surplus_names(asked: Option<&Map<String, Value>>, had: &Map<String, Value>) -> Vec<Value> {
    let names = |it: &Map<String, Value>| -> Vec<Value> {
        list(it.get("alt-names"))
            .map(|it| it["name"].clone())
            .collect()
    };
    let before = names(had);
    let new = asked.map(names).unwrap_or_default().into_iter();
    new.filter(|name| !before.contains(name))
        .map(|name| json!({ "name": name, "state": "absent" }))
        .collect()
}
