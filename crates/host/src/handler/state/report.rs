//! What of a host's state is reported: the parts people look at, without what changes by itself.
//!
//! A report is written only where it differs from the last one, so whatever counts down is left out,
//! and so are the interfaces of pods: veths that NetworkManager does not manage, and their routes.

use std::collections::BTreeSet;

use keelson_api::policy::State;
use serde_json::{Map, Value};

use super::{interfaces, list, text};

/// Parts of a state that are reported, but for the interfaces.
const PARTS: [&str; 3] = ["routes", "dns-resolver", "ovn"];

/// Members of a bridge mapping that are reported.
const MAPPING: [&str; 3] = ["localnet", "bridge", "state"];

/// What is reported of a state. It is taken apart, because a large host's is large.
pub fn reported(mut state: State) -> State {
    let dropped: BTreeSet<String> = interfaces(&state)
        .filter(|it| is_foreign_veth(it))
        .filter_map(|it| text(it, "name"))
        .map(str::to_owned)
        .collect();
    let mut kept = match state.swap_remove("interfaces") {
        Some(Value::Array(interfaces)) => interfaces,
        _ => Vec::new(),
    };
    kept.retain(|it| !it.as_object().is_some_and(is_foreign_veth));
    kept.iter_mut().for_each(steady);
    let mut report = State::new();
    report.insert("interfaces".to_owned(), Value::Array(kept));
    for part in PARTS {
        let value = match (part, state.swap_remove(part)) {
            (_, None) => continue,
            ("routes", Some(routes)) => without_routes_of(routes, &dropped),
            ("ovn", Some(ovn)) => mappings(&ovn),
            (_, Some(value)) => value,
        };
        report.insert(part.to_owned(), value);
    }
    report
}

/// A veth that nobody asked NetworkManager for: the host's end of a pod's interface.
fn is_foreign_veth(interface: &Map<String, Value>) -> bool {
    text(interface, "type") == Some("veth") && text(interface, "state") == Some("ignore")
}

/// Takes from an interface what counts by itself.
fn steady(interface: &mut Value) {
    if interface["type"] == "linux-bridge"
        && let Some(options) = interface.pointer_mut("/bridge/options")
    {
        remove(options, &["gc-timer", "hello-timer"]);
    }
    for family in ["ipv4", "ipv6"] {
        let addresses = interface
            .get_mut(family)
            .and_then(|it| it.get_mut("address"))
            .and_then(Value::as_array_mut);
        for address in addresses.into_iter().flatten() {
            remove(address, &["preferred-life-time", "valid-life-time"]);
        }
    }
}

fn remove(from: &mut Value, keys: &[&str]) {
    if let Some(object) = from.as_object_mut() {
        object.retain(|key, _| !keys.contains(&key.as_str()));
    }
}

fn without_routes_of(mut routes: Value, dropped: &BTreeSet<String>) -> Value {
    for kind in ["config", "running"] {
        if let Some(list) = routes.get_mut(kind).and_then(Value::as_array_mut) {
            list.retain(|route| {
                let through = route.get("next-hop-interface").and_then(Value::as_str);
                !through.is_some_and(|name| dropped.contains(name))
            });
        }
    }
    routes
}

/// The mappings of bridges to networks; an empty list of them is left out.
fn mappings(ovn: &Value) -> Value {
    let mut kept = Map::new();
    let all: Vec<Value> = list(ovn.get("bridge-mappings"))
        .filter_map(Value::as_object)
        .map(|it| {
            let known = it
                .iter()
                .filter(|(key, _)| MAPPING.contains(&key.as_str()))
                .map(|(key, value)| (key.clone(), value.clone()));
            Value::Object(known.collect())
        })
        .collect();
    if !all.is_empty() {
        kept.insert("bridge-mappings".to_owned(), Value::Array(all));
    }
    Value::Object(kept)
}
