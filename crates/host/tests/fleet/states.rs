//! What policies ask for here.

use serde_json::{Value, json};

pub(crate) use crate::common::desired::nowhere;

/// Whatever has the way out goes under a bridge, which takes its addresses and routes: the same words
/// for every host.
pub(crate) fn way_out_under(bridge: &str) -> Value {
    json!({
        "capture": {
            "gw": "routes.running.destination==\"0.0.0.0/0\"",
            "nic": "interfaces.name==capture.gw.routes.running.0.next-hop-interface",
            "routes": format!("capture.gw | routes.running.next-hop-interface:=\"{bridge}\""),
        },
        "desiredState": {
            "interfaces": [{
                "name": bridge, "type": "linux-bridge", "state": "up",
                "ipv4": "{{ capture.nic.interfaces.0.ipv4 }}",
                "bridge": {
                    "options": {"stp": {"enabled": false}},
                    "port": [{"name": "{{ capture.nic.interfaces.0.name }}", "vlan": {}}],
                },
            }],
            "routes": {"config": "{{ capture.routes.routes.running }}"},
        },
    })
}

/// A bridge of its own, which is in nobody's way.
pub(crate) fn bridge(name: &str, address: &str) -> Value {
    json!({"interfaces": [{
        "name": name, "type": "linux-bridge", "state": "up",
        "ipv4": {
            "enabled": true, "dhcp": false,
            "address": [{"ip": address, "prefix-length": 24}],
        },
        "bridge": {"options": {"stp": {"enabled": false}}, "port": []},
    }]})
}
