//! What a host lacks of a state: what nmstate's difference says, less what the host has.

use keelson_host::handler::state::outstanding::outstanding;
use serde_json::{Value, json};

use crate::state as given;

/// What is lacking where nmstate's difference is the whole desired state.
fn lacking(desired: Value, current: Value) -> Value {
    let desired = given(desired);
    Value::Object(outstanding(&desired, &desired, &given(current)))
}

fn interface(value: Value) -> Value {
    json!({ "interfaces": [value] })
}

fn config(part: &str, entry: Value) -> Value {
    json!({ part: { "config": [entry] } })
}

#[test]
fn ports_are_met_by_what_is_said_of_them() {
    let bridge = |ports: Value| {
        interface(json!({ "name": "br0", "type": "linux-bridge", "state": "up", "bridge": ports }))
    };
    let port = |name: &str| json!({ "name": name, "stp-priority": 32, "stp-path-cost": 100 });
    let wanted = bridge(json!({ "port": [{ "name": "eth1", "vlan": {} }] }));
    let there = bridge(json!({ "port": [port("eth1")] }));
    assert_eq!(lacking(wanted.clone(), there), json!({}));
    for (what, ports) in [
        ("none", json!([])),
        ("another", json!([port("eth2")])),
        ("one too many", json!([port("eth1"), port("eth2")])),
    ] {
        let left = lacking(wanted.clone(), bridge(json!({ "port": ports })));
        assert_eq!(left, wanted, "{what}");
    }
    let open = bridge(json!({ "allow-extra-ports": true, "port": [{ "name": "eth1" }] }));
    let two = bridge(json!({ "port": [port("eth1"), port("eth2")] }));
    assert_eq!(lacking(open, two), json!({}));
    let cost = bridge(json!({ "port": [{ "name": "eth1", "stp-path-cost": 4 }] }));
    let there = bridge(json!({ "port": [port("eth1")] }));
    assert_eq!(lacking(cost.clone(), there), cost);
    let trunk = bridge(json!({ "port": [{ "name": "eth1", "vlan": { "mode": "trunk" } }] }));
    let there = bridge(json!({ "port": [port("eth1")] }));
    assert_eq!(lacking(trunk.clone(), there), trunk);
}

#[test]
fn vlans_of_a_port_are_the_same_one_by_one_and_as_a_range() {
    let bridge = |vlan: Value| {
        interface(
            json!({ "name": "br0", "type": "linux-bridge", "state": "up",
            "bridge": { "port": [{ "name": "eth1", "vlan": vlan }] } }),
        )
    };
    let trunk = |tags: Value| bridge(json!({ "mode": "trunk", "trunk-tags": tags }));
    let range = |min: u32, max: u32| json!([{ "id-range": { "min": min, "max": max } }]);
    let each: Value = (2..=4094).map(|id| json!({ "id": id })).collect();
    assert_eq!(
        lacking(trunk(each.clone()), trunk(range(2, 4094))),
        json!({})
    );
    let less = trunk(range(2, 100));
    assert_eq!(lacking(trunk(each.clone()), less), trunk(each));
    // Nothing is said of VLANs, and what was there is to go.
    let none = bridge(json!({}));
    assert_eq!(lacking(none.clone(), trunk(range(2, 4094))), none);
    assert_eq!(lacking(none.clone(), none), json!({}));
}

#[test]
fn what_is_to_go_is_lacking_while_it_is_there() {
    let nothing = json!({ "interfaces": [] });
    let iface =
        |kind: &str, state: &str| interface(json!({ "name": "x", "type": kind, "state": state }));
    for state in ["absent", "down"] {
        for kind in ["linux-bridge", "ethernet", "vxlan"] {
            assert_eq!(lacking(iface(kind, state), nothing.clone()), json!({}));
            let wanted = iface(kind, state);
            assert_eq!(lacking(wanted.clone(), iface(kind, "up")), wanted);
        }
        // A NIC stays and is down; a bridge that is not managed has to go.
        assert_eq!(
            lacking(iface("ethernet", state), iface("ethernet", "down")),
            json!({})
        );
        let bridge = iface("linux-bridge", state);
        assert_eq!(
            lacking(bridge.clone(), iface("linux-bridge", "ignore")),
            bridge
        );
    }
    let pair =
        interface(json!({ "name": "x", "type": "veth", "state": "down", "veth": { "peer": "y" } }));
    let wanted = iface("ethernet", "absent");
    assert_eq!(lacking(wanted.clone(), pair), wanted);
    assert_eq!(lacking(wanted, iface("veth", "down")), json!({}));
}

#[test]
fn what_is_to_be_up_is_lacking_while_it_is_not() {
    let wanted = interface(json!({ "name": "eth1", "type": "ethernet", "state": "up" }));
    for state in ["down", "ignore"] {
        let have = interface(json!({ "name": "eth1", "type": "veth", "state": state }));
        assert_eq!(lacking(wanted.clone(), have), wanted);
    }
    let up = interface(json!({ "name": "eth1", "type": "veth", "state": "up" }));
    assert_eq!(lacking(wanted.clone(), up), json!({}));
    assert_eq!(lacking(wanted.clone(), json!({})), wanted);
}

#[test]
fn a_member_that_differs_is_lacking_and_its_neighbours_are_not() {
    let desired = given(interface(json!({
        "name": "eth1", "type": "ethernet", "state": "up", "profile-name": "eth1",
        "mtu": 9000, "ipv4": { "enabled": true, "allow-extra-address": false },
    })));
    let difference = given(interface(json!({
        "name": "eth1", "type": "ethernet", "state": "up", "profile-name": "eth1",
        "mtu": 9000, "ipv4": { "allow-extra-address": false },
    })));
    let have = given(interface(json!({
        "name": "eth1", "type": "ethernet", "state": "up", "mtu": 1500, "ipv4": { "enabled": true },
    })));
    let left = outstanding(&difference, &desired, &have);
    let expected =
        interface(json!({ "name": "eth1", "type": "ethernet", "state": "up", "mtu": 9000 }));
    assert_eq!(Value::Object(left), expected);
}

#[test]
fn addresses_are_the_same_in_any_order_and_whatever_else_is_said_of_them() {
    let lo = |family: &str, addresses: Value| {
        interface(json!({ "name": "lo", "type": "loopback", "state": "up",
            family: { "address": addresses } }))
    };
    let one = |ip: &str, prefix: u64| json!({ "ip": ip, "prefix-length": prefix });
    let wanted = lo("ipv6", json!([one("::1", 128), one("2001:db8::53", 128)]));
    let shown = lo(
        "ipv6",
        json!([
            one("2001:db8::53", 128),
            { "ip": "::1", "prefix-length": 128, "protocol": "lo" },
            one("fe80::1", 64),
        ]),
    );
    assert_eq!(lacking(wanted.clone(), shown), json!({}));
    for addresses in [json!([one("::1", 128)]), json!([]), Value::Null] {
        assert_eq!(lacking(wanted.clone(), lo("ipv6", addresses)), wanted);
    }
    // A captured address was leased then and is given now: nmstate's difference has none.
    let leased = json!([{ "ip": "192.0.2.7", "prefix-length": 24, "valid-life-time": "3600sec" }]);
    let desired = given(lo("ipv4", leased));
    let difference = given(lo("ipv4", json!([])));
    let kept = given(lo("ipv4", json!([one("192.0.2.7", 24)])));
    assert!(outstanding(&difference, &desired, &kept).is_empty());
    let lost = given(lo("ipv4", json!([])));
    assert!(!outstanding(&difference, &desired, &lost).is_empty());
}

#[test]
fn a_route_is_met_by_one_that_has_what_it_says() {
    let shown = json!({ "destination": "198.51.100.0/24", "next-hop-interface": "eth1",
        "next-hop-address": "192.0.2.1", "metric": 100, "table-id": 254 });
    let there = config("routes", shown.clone());
    let met = |change: &dyn Fn(&mut Value)| {
        let mut route = shown.clone();
        change(&mut route);
        lacking(config("routes", route), there.clone()) == json!({})
    };
    let without = |route: &mut Value, keys: &[&str]| {
        let route = route.as_object_mut().expect("a route");
        route.retain(|key, _| !keys.contains(&key.as_str()));
    };
    assert!(met(&|_| {}));
    assert!(met(&|it| without(it, &["metric", "table-id"])));
    assert!(met(&|it| without(it, &["next-hop-address"])));
    assert!(met(&|it| it["metric"] = json!(-1)));
    assert!(met(&|it| it["table-id"] = json!(0)));
    assert!(!met(&|it| it["metric"] = json!(5)));
    assert!(!met(&|it| it["table-id"] = json!(100)));
    assert!(!met(&|it| it["next-hop-address"] = json!("192.0.2.9")));
    assert!(!met(&|it| it["next-hop-interface"] = json!("eth2")));
    // Without a table it is the main one.
    let elsewhere = config(
        "routes",
        json!({ "destination": "198.51.100.0/24", "next-hop-interface": "eth1", "table-id": 100 }),
    );
    let wanted = config(
        "routes",
        json!({ "destination": "198.51.100.0/24", "next-hop-interface": "eth1" }),
    );
    assert_eq!(lacking(wanted.clone(), elsewhere), wanted);
    let refused = json!({ "destination": "203.0.113.0/24", "route-type": "blackhole",
        "next-hop-interface": "lo" });
    let shown = json!({ "destination": "203.0.113.0/24", "table-id": 254,
        "route-type": "blackhole" });
    assert_eq!(
        lacking(config("routes", refused), config("routes", shown)),
        json!({})
    );
}

#[test]
fn a_route_or_rule_that_is_to_go_is_lacking_while_one_matches() {
    let route = json!({ "destination": "198.51.100.0/24", "next-hop-interface": "eth1",
        "table-id": 100 });
    let gone = config(
        "routes",
        json!({ "state": "absent", "next-hop-interface": "eth1" }),
    );
    assert_eq!(lacking(gone.clone(), config("routes", route)), gone);
    assert_eq!(lacking(gone.clone(), json!({})), json!({}));
    let rule = json!({ "ip-from": "192.0.2.0/24", "priority": 1000, "route-table": 101 });
    let gone = config(
        "route-rules",
        json!({ "state": "absent", "route-table": 101 }),
    );
    assert_eq!(lacking(gone.clone(), config("route-rules", rule)), gone);
    assert_eq!(lacking(gone, json!({})), json!({}));
}

#[test]
fn a_rule_is_met_by_one_that_has_what_it_says() {
    let shown = json!({ "family": "ipv4", "ip-to": "203.0.113.0/24", "priority": 2005,
        "route-table": 254, "action": "prohibit" });
    let there = config("route-rules", shown);
    let wanted = |more: Value| {
        let mut rule = json!({ "ip-to": "203.0.113.0/24", "action": "prohibit" });
        let more = more.as_object().expect("an object").clone();
        rule.as_object_mut().expect("a rule").extend(more);
        config("route-rules", rule)
    };
    for more in [
        json!({}),
        json!({ "priority": 2005 }),
        json!({ "priority": -1 }),
    ] {
        assert_eq!(lacking(wanted(more), there.clone()), json!({}));
    }
    for more in [json!({ "priority": 7 }), json!({ "iif": "eth1" })] {
        let wanted = wanted(more);
        assert_eq!(lacking(wanted.clone(), there.clone()), wanted);
    }
}

#[test]
fn other_parts_are_taken_from_the_difference_and_a_description_is_not() {
    let difference = json!({ "description": "a text", "dns-resolver": { "config": {} },
        "interfaces": [], "routes": { "config": [] } });
    assert_eq!(
        lacking(difference, json!({})),
        json!({ "dns-resolver": { "config": {} } })
    );
}

#[test]
fn a_bridge_of_open_vswitch_is_not_its_interface_of_the_same_name() {
    let wanted = interface(json!({ "name": "ovs0", "type": "ovs-bridge", "state": "up" }));
    let other = interface(json!({ "name": "ovs0", "type": "ovs-interface", "state": "up" }));
    assert_eq!(lacking(wanted.clone(), other), wanted);
    assert_eq!(lacking(wanted.clone(), wanted), json!({}));
}

#[test]
fn another_name_is_lacking_until_it_is_there_or_gone_as_asked() {
    let nic = |names: Value| {
        let nic = json!({ "name": "eth1", "type": "ethernet", "state": "up", "alt-names": names });
        interface(nic)
    };
    let wanted = nic(json!([{ "name": "uplink" }, { "name": "old", "state": "absent" }]));
    let named = |names: &[&str]| {
        let names = names.iter().map(|it| json!({ "name": it }));
        nic(names.collect())
    };
    assert_eq!(
        lacking(wanted.clone(), named(&["uplink", "other"])),
        json!({})
    );
    let left = lacking(wanted.clone(), named(&["uplink", "old"]));
    assert_eq!(left, nic(json!([{ "name": "old", "state": "absent" }])));
    let bare = interface(json!({ "name": "eth1", "type": "ethernet", "state": "up" }));
    let left = lacking(wanted, bare);
    assert_eq!(left, nic(json!([{ "name": "uplink" }])));
}
