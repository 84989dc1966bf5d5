//! What is filled in for the ports of a bridge where a policy says nothing about VLANs.
//!
//! Such a port carries every VLAN. A port with a `vlan` of its own, even an empty one, is left alone.

use keelson_api::policy::State;
use serde_json::{Value, json};

/// The state with every port of its bridges decided.
pub fn with_default_vlans(mut state: State) -> State {
    let interfaces = state.get_mut("interfaces").and_then(Value::as_array_mut);
    for interface in interfaces.into_iter().flatten() {
        if interface["type"] != "linux-bridge" || interface["state"] != "up" {
            continue;
        }
        let ports = interface
            .pointer_mut("/bridge/port")
            .and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
            port.entry("vlan").or_insert_with(every_vlan);
        }
    }
    state
}

/// The first VLAN is what untagged frames belong to, and the last number means something else.
fn every_vlan() -> Value {
    json!({ "mode": "trunk", "trunk-tags": [{ "id-range": { "min": 2, "max": 4094 } }] })
}
