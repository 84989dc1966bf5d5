//! What of a desired state a host lacks.
//!
//! nmstate's difference is where this begins, and it says too much: it compares lists as a whole and
//! what is not given as if it were, asks again for the removal of what is gone, and for what a host
//! never shows. So a state that was applied and verified still differs. Whatever the host has is taken
//! out of the difference here, by the rule nmstate verifies by: what is not given may be anything.

use keelson_api::policy::State;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

use super::{interfaces, list, text};

/// What an interface is told apart by; a difference has them always.
const IDENTITY: [&str; 3] = ["name", "type", "state"];

/// What is said to nmstate about a change and never seen on a host.
const UNSEEN: [&str; 3] = ["allow-extra-ports", "allow-extra-address", "copy-mac-from"];

/// Interfaces that stay when their configuration goes.
const HARDWARE: [&str; 4] = ["ethernet", "infiniband", "loopback", "unknown"];

/// What the difference of two states says that the host really lacks; empty where it lacks nothing.
pub fn outstanding(difference: &State, desired: &State, current: &State) -> State {
    let left = difference.iter().filter_map(|(part, value)| {
        let rest = match part.as_str() {
            // It is about the text, not about the host.
            "description" => None,
            "interfaces" => some(lacking_interfaces(difference, desired, current)),
            "routes" | "route-rules" => {
                some(lacking_entries(value, current.get(part))).map(|it| json!({ "config": it }))
            }
            _ => Some(value.clone()),
        };
        Some((part.clone(), rest?))
    });
    left.collect()
}

fn some(list: Vec<Value>) -> Option<Value> {
    (!list.is_empty()).then_some(Value::Array(list))
}

fn lacking_interfaces(difference: &State, desired: &State, current: &State) -> Vec<Value> {
    let differing =
        interfaces(difference).filter_map(|it| match (is_to_go(it), find(current, it)) {
            (true, have) => have.is_some_and(is_there).then(|| it.clone()),
            (false, None) => Some(it.clone()),
            (false, Some(have)) => lacking(it, find(desired, it).unwrap_or(it), have),
        });
    differing.map(Value::Object).collect()
}

/// The same interface in another state. A bridge of Open vSwitch may share its name with an interface
/// of the kernel; the others have theirs alone, and a NIC has a more exact type on the host.
fn find<'a>(state: &'a State, interface: &Map<String, Value>) -> Option<&'a Map<String, Value>> {
    let is_apart = |it| text(it, "type") == Some("ovs-bridge");
    interfaces(state).find(|it| {
        text(it, "name") == text(interface, "name") && is_apart(it) == is_apart(interface)
    })
}

fn is_to_go(interface: &Map<String, Value>) -> bool {
    matches!(text(interface, "state"), Some("absent" | "down"))
}

/// Whether an interface that is to go is still there: hardware goes by being down.
fn is_there(interface: &Map<String, Value>) -> bool {
    let kind = text(interface, "type").unwrap_or_default();
    let is_wire = kind == "veth" && !interface.contains_key("veth");
    !(HARDWARE.contains(&kind) || is_wire) || text(interface, "state") == Some("up")
}

/// What an interface lacks of what is wanted of it.
fn lacking(
    difference: &Map<String, Value>,
    wanted: &Map<String, Value>,
    have: &Map<String, Value>,
) -> Option<Map<String, Value>> {
    let mut rest = without_what_is_there(difference, wanted, have);
    let is_up = text(have, "state") == text(difference, "state");
    // A profile that has the interface's name is shown as none.
    if text(&rest, "profile-name") == text(difference, "name") {
        rest.remove("profile-name");
    }
    let more = rest.keys().any(|key| !IDENTITY.contains(&key.as_str()));
    (more || !is_up).then_some(rest)
}

/// The members of an object that another does not have so.
fn without_what_is_there(
    difference: &Map<String, Value>,
    wanted: &Map<String, Value>,
    have: &Map<String, Value>,
) -> Map<String, Value> {
    let nothing = Map::new();
    let mut rest = Map::new();
    for (key, value) in difference {
        let (want, has) = (wanted.get(key), have.get(key));
        let kept = match value {
            _ if UNSEEN.contains(&key.as_str()) => None,
            Value::Object(inner) => {
                let want = want.and_then(Value::as_object).unwrap_or(inner);
                let has = has.and_then(Value::as_object).unwrap_or(&nothing);
                let inner = without_what_is_there(inner, want, has);
                (!inner.is_empty()).then_some(Value::Object(inner))
            }
            Value::Array(_) if key == "address" => {
                let same = addresses(want.or(Some(value))) == addresses(has);
                (!same).then(|| value.clone())
            }
            Value::Array(names) if key == "alt-names" => {
                let kept = lacking_names(names, has);
                (!kept.is_empty()).then_some(Value::Array(kept))
            }
            Value::Array(ports) => {
                let extra = wanted.get("allow-extra-ports") == Some(&Value::Bool(true));
                let same = has_ports(ports, has, extra);
                (!same).then(|| value.clone())
            }
            _ => Some(value.clone()),
        };
        if let Some(kept) = kept {
            rest.insert(key.clone(), kept);
        }
    }
    rest
}

/// Addresses that somebody gave: every interface has one of its link by itself. What else is said of
/// an address, such as how long it is valid, is not what it is.
fn addresses(given: Option<&Value>) -> Vec<(String, u64)> {
    let mut all: Vec<(String, u64)> = list(given)
        .filter_map(|it| {
            let ip = it.get("ip")?.as_str()?;
            let prefix = it.get("prefix-length")?.as_u64()?;
            (!ip.starts_with("fe80:")).then(|| (ip.to_owned(), prefix))
        })
        .collect();
    all.sort();
    all
}

/// Other names that are not there, and those that are there and shall not be.
fn lacking_names(wanted: &[Value], has: Option<&Value>) -> Vec<Value> {
    let is_there = |name: &Value| list(has).any(|it| it.get("name") == name.get("name"));
    let is_to_go = |name: &Value| name.get("state").is_some_and(|it| it == "absent");
    let lacking = wanted.iter().filter(|it| is_there(it) == is_to_go(it));
    lacking.cloned().collect()
}

/// Whether an interface has these ports, and no others unless they may be.
fn has_ports(wanted: &[Value], has: Option<&Value>, others_may_be: bool) -> bool {
    let named = |port: &Value| Some(port.get("name")?.as_str()?.to_owned());
    let known = wanted.iter().all(|port| {
        let same = |it: &&Value| named(it).is_some() && named(it) == named(port);
        list(has)
            .find(same)
            .is_some_and(|it| is_met(Some(port), Some(it)))
    });
    known && (others_may_be || list(has).count() == wanted.len())
}

/// Whether a value is met: of an object every member that is given.
fn is_met(wanted: Option<&Value>, has: Option<&Value>) -> bool {
    match (wanted, has) {
        (None, _) => true,
        (Some(Value::Object(wanted)), has) => wanted.iter().all(|(key, value)| {
            let has = has.and_then(|it| it.get(key));
            match key.as_str() {
                "trunk-tags" => vlans(Some(value)) == vlans(has),
                // Given and empty, it is a wish for none.
                "vlan" if is_empty(value) => has.is_none_or(is_empty),
                _ => is_met(Some(value), has),
            }
        }),
        (wanted, has) => wanted == has,
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

/// The VLANs of a port: a difference has each by itself, a host and a policy have ranges.
fn vlans(tags: Option<&Value>) -> BTreeSet<u64> {
    let number = |it: &Value, path: &str| it.pointer(path).and_then(Value::as_u64);
    list(tags)
        .flat_map(|it| match number(it, "/id") {
            Some(id) => id..=id,
            None => {
                let end = |path| number(it, path).unwrap_or_default();
                end("/id-range/min")..=end("/id-range/max")
            }
        })
        .collect()
}

/// Routes or rules that are not there, and those that are there and shall not be.
fn lacking_entries(difference: &Value, current: Option<&Value>) -> Vec<Value> {
    let there: Vec<&Map<String, Value>> = list(current.and_then(|it| it.get("config")))
        .filter_map(Value::as_object)
        .collect();
    let lacking = |entry: &&Value| {
        let Some(entry) = entry.as_object() else {
            return true;
        };
        let found = there.iter().any(|it| matches(entry, it));
        found == (text(entry, "state") == Some("absent"))
    };
    let differing = list(difference.get("config"));
    differing.filter(lacking).cloned().collect()
}

/// Whether an entry is the one that is asked for. What is not given may be anything, but for the
/// table: without one an entry is in the main table, and it is found in whichever where it is to go.
fn matches(wanted: &Map<String, Value>, entry: &Map<String, Value>) -> bool {
    let refuses = wanted.contains_key("route-type");
    let is_new = text(wanted, "state") != Some("absent") && wanted.contains_key("destination");
    let in_main = entry.get("table-id").and_then(Value::as_u64) == Some(super::gateway::MAIN_TABLE);
    let by_table = ["table-id", "vrf-name"]
        .iter()
        .any(|key| wanted.contains_key(*key));
    let given = wanted.iter().all(|(key, value)| match key.as_str() {
        "state" | "vrf-name" => true,
        // A route that leads nowhere has no interface it leads by.
        "next-hop-interface" if refuses => true,
        "metric" | "priority" if value.as_i64() == Some(-1) => true,
        "table-id" | "route-table" if value.as_i64() == Some(0) => true,
        "metric" if value.as_i64() == Some(0) && !entry.contains_key(key) => true,
        _ => entry.get(key) == Some(value),
    });
    given && (!is_new || by_table || in_main)
}
