//! The way back from a change, completed with what stood beside the members it names.

use keelson_host::handler::state::back::way_back;
use serde_json::{Value, json};

use crate::state as given;

fn back(revert: Value, desired: Value, before: Value) -> Value {
    Value::Object(way_back(given(revert), &given(desired), &given(before)))
}

fn eth1(more: Value) -> Value {
    let mut interface = json!({ "name": "eth1", "type": "ethernet", "state": "up" });
    let more = more.as_object().expect("an object").clone();
    interface.as_object_mut().expect("one").extend(more);
    json!({ "interfaces": [interface] })
}

#[test]
fn addresses_come_back_where_a_family_was_turned_off() {
    let addresses = json!([{ "ip": "192.0.2.1", "prefix-length": 24 }]);
    let had = eth1(json!({ "mtu": 1500, "ipv4": { "enabled": true, "address": addresses } }));
    let off = eth1(json!({ "ipv4": { "enabled": false } }));
    let revert = eth1(json!({ "ipv4": { "enabled": true } }));
    let expected = eth1(json!({ "ipv4": { "enabled": true, "address": addresses } }));
    assert_eq!(back(revert, off, had), expected);
}

#[test]
fn what_dhcp_may_bring_comes_back_with_it() {
    let leased = json!({ "enabled": true, "dhcp": true, "auto-gateway": false, "auto-dns": false });
    let had = eth1(json!({ "ipv4": leased, "ipv6": { "enabled": false } }));
    let fixed = eth1(json!({ "ipv4": { "enabled": true, "dhcp": false } }));
    let revert = eth1(json!({ "ipv4": { "enabled": true, "dhcp": true } }));
    assert_eq!(back(revert, fixed, had), eth1(json!({ "ipv4": leased })));
}

#[test]
fn names_that_were_not_there_are_taken_away() {
    let name = |name: &str| json!({ "name": name });
    let had = eth1(json!({ "alt-names": [name("old")] }));
    let asked = eth1(json!({ "alt-names": [name("old"), name("new")] }));
    let expected = eth1(json!({ "alt-names": [{ "name": "new", "state": "absent" }] }));
    assert_eq!(back(eth1(json!({})), asked.clone(), had), expected);
    assert_eq!(back(eth1(json!({})), asked.clone(), asked), eth1(json!({})));
}

#[test]
fn what_was_not_there_goes_and_nothing_else_is_added() {
    let gone = json!({ "interfaces": [{ "name": "br0", "type": "linux-bridge", "state": "absent" }],
        "dns-resolver": { "config": {} } });
    let bridge = json!({ "interfaces": [{ "name": "br0", "ipv4": { "enabled": true } }] });
    let had = eth1(json!({ "ipv4": { "enabled": true } }));
    assert_eq!(back(gone.clone(), bridge, had), gone);
    assert_eq!(back(json!({}), json!({}), json!({})), json!({}));
}

#[test]
fn a_route_of_a_domain_that_goes_with_it_is_found_by_its_table() {
    let route = |more: Value| {
        let mut route = json!({ "destination": "198.51.100.0/24", "next-hop-interface": "eth1" });
        let more = more.as_object().expect("an object").clone();
        route.as_object_mut().expect("one").extend(more);
        json!({ "routes": { "config": [route] } })
    };
    let gone = json!({ "state": "absent", "table-id": 100 });
    let named = json!({ "state": "absent", "table-id": 100, "vrf-name": "blue" });
    assert_eq!(back(route(named), json!({}), json!({})), route(gone));
    // One that comes back, or has no other name, keeps its domain.
    for kept in [
        json!({ "table-id": 100, "vrf-name": "blue" }),
        json!({ "state": "absent", "vrf-name": "blue" }),
    ] {
        let kept = route(kept);
        assert_eq!(back(kept.clone(), json!({}), json!({})), kept);
    }
}
