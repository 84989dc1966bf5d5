//! States that policies ask for.

use keelson_testbed::DEVICE;
use serde_json::{Value, json};
use std::net::Ipv4Addr;

/// The host's own cable under a bridge that takes its address and its way out.
pub(crate) fn under_a_bridge(address: Ipv4Addr, gateway: Ipv4Addr) -> Value {
    json!({
        "interfaces": [
            {
                "name": "br1", "type": "linux-bridge", "state": "up",
                "ipv4": {
                    "enabled": true, "dhcp": false,
                    "address": [{"ip": address, "prefix-length": 24}],
                },
                "bridge": {"options": {"stp": {"enabled": false}}, "port": [{"name": DEVICE, "vlan": {}}]},
            },
            {"name": DEVICE, "type": "ethernet", "state": "up", "ipv4": {"enabled": false}, "ipv6": {"enabled": false}},
        ],
        "routes": {"config": [
            {"destination": "0.0.0.0/0", "next-hop-address": gateway, "next-hop-interface": "br1"},
        ]},
    })
}

/// An address and a way out that lead nowhere.
pub(crate) fn nowhere() -> Value {
    json!({
        "interfaces": [{
            "name": DEVICE, "type": "ethernet", "state": "up",
            "ipv4": {
                "enabled": true, "dhcp": false,
                "address": [{"ip": "192.0.2.9", "prefix-length": 24}],
            },
        }],
        "routes": {"config": [
            {"destination": "0.0.0.0/0", "state": "absent"},
            {"destination": "0.0.0.0/0", "next-hop-address": "192.0.2.1", "next-hop-interface": DEVICE},
        ]},
    })
}
