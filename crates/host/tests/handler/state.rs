//! What a state says: what is reported of it, what is filled in, where the way out is, what it touches.

use keelson_api::nmstate::DispatchScripts;
use keelson_host::handler::state::bridge::with_default_vlans;
use keelson_host::handler::state::dispatch::check_dispatch;
use keelson_host::handler::state::gateway::{NoGateway, default_gateways};
use keelson_host::handler::state::report::reported;
use keelson_host::handler::state::touch::{Conflict, touched};
use serde_json::{Value, json};

use crate::state as given;

fn report(state: Value) -> Value {
    Value::Object(reported(given(state)))
}

fn route(destination: &str, device: &str, table: u64) -> Value {
    json!({ "destination": destination, "next-hop-interface": device, "table-id": table })
}

#[test]
fn timers_of_a_bridge_are_not_reported() {
    let bridge = |options: Value| json!({ "name": "br1", "type": "linux-bridge", "bridge": { "options": options, "port": [] } });
    let shown = report(json!({
        "interfaces": [
            { "name": "eth1", "type": "ethernet", "state": "up" },
            bridge(json!({ "gc-timer": 13715, "hello-timer": 0, "hash-max": 512, "stp": { "enabled": false } })),
            // Not a bridge, so not a timer.
            { "name": "x", "type": "other", "bridge": { "options": { "gc-timer": 1 } } },
        ],
        "routes": { "config": [], "running": [route("0.0.0.0/0", "eth1", 254)] },
    }));
    let expected = json!({
        "interfaces": [
            { "name": "eth1", "type": "ethernet", "state": "up" },
            bridge(json!({ "hash-max": 512, "stp": { "enabled": false } })),
            { "name": "x", "type": "other", "bridge": { "options": { "gc-timer": 1 } } },
        ],
        "routes": { "config": [], "running": [route("0.0.0.0/0", "eth1", 254)] },
    });
    assert_eq!(shown, expected);
}

#[test]
fn a_managed_veth_is_reported_with_its_routes() {
    let state = json!({
        "interfaces": [{ "name": "vethab", "type": "veth", "state": "down" }],
        "routes": { "config": [], "running": [route("fd10:244::8c40/128", "vethab", 254)] },
    });
    assert_eq!(report(state.clone()), state);
}

#[test]
fn an_unmanaged_veth_is_not_reported_nor_are_its_routes() {
    let shown = report(json!({
        "interfaces": [
            { "name": "eth1", "type": "ethernet", "state": "ignore" },
            { "name": "veth101", "type": "veth", "state": "up" },
            { "name": "veth102", "type": "veth", "state": "ignore" },
            { "name": "veth103", "type": "veth", "state": "ignore" },
        ],
        "routes": {
            "config": [route("10.0.0.0/8", "veth103", 254), route("10.1.0.0/16", "veth101", 254)],
            "running": [
                route("fd10::1/128", "veth101", 254),
                route("fd10::2/128", "veth102", 254),
                route("0.0.0.0/0", "eth1", 254),
                { "destination": "198.51.100.0/24", "route-type": "blackhole" },
            ],
        },
    }));
    let expected = json!({
        "interfaces": [
            { "name": "eth1", "type": "ethernet", "state": "ignore" },
            { "name": "veth101", "type": "veth", "state": "up" },
        ],
        "routes": {
            "config": [route("10.1.0.0/16", "veth101", 254)],
            "running": [
                route("fd10::1/128", "veth101", 254),
                route("0.0.0.0/0", "eth1", 254),
                { "destination": "198.51.100.0/24", "route-type": "blackhole" },
            ],
        },
    });
    assert_eq!(shown, expected);
}

#[test]
fn lifetimes_of_addresses_are_not_reported() {
    let interface = |address: Value| {
        json!({ "interfaces": [{ "name": "eth0", "type": "ethernet",
            "ipv4": { "address": [address], "enabled": true },
            "ipv6": { "address": [address], "enabled": true } }] })
    };
    let shown = report(interface(json!({
        "ip": "2001:db8::1", "prefix-length": 64,
        "preferred-life-time": "85813sec", "valid-life-time": "85813sec",
    })));
    assert_eq!(
        shown,
        interface(json!({ "ip": "2001:db8::1", "prefix-length": 64 }))
    );
}

#[test]
fn name_servers_are_reported_and_rules_names_and_databases_are_not() {
    let servers =
        json!({ "running": { "server": ["192.0.2.53"], "search": ["example.org"] }, "config": {} });
    let shown = report(json!({
        "dns-resolver": servers,
        "interfaces": [],
        "route-rules": { "config": [{ "ip-to": "192.0.2.0/24" }] },
        "hostname": { "running": "host", "config": "host" },
        "ovs-db": { "external_ids": {} },
    }));
    assert_eq!(shown, json!({ "interfaces": [], "dns-resolver": servers }));
}

#[test]
fn mappings_of_bridges_are_reported_where_there_are_any() {
    let mapping = json!({ "localnet": "datanet", "bridge": "ovs1", "state": "present" });
    let mut more = mapping.clone();
    more["other"] = json!(1);
    for (ovn, expected) in [
        (None, None),
        (Some(json!({})), Some(json!({}))),
        (Some(json!({ "bridge-mappings": [] })), Some(json!({}))),
        (
            Some(json!({ "bridge-mappings": [more] })),
            Some(json!({ "bridge-mappings": [mapping] })),
        ),
    ] {
        let mut state = json!({ "interfaces": [] });
        if let Some(ovn) = ovn {
            state["ovn"] = ovn;
        }
        assert_eq!(report(state).get("ovn"), expected.as_ref());
    }
}

#[test]
fn names_that_look_like_numbers_stay_names() {
    let names = ["0", "1101010", "0.0", "0xfe", "60.e+02", "94475496822e234"];
    let veth = |name: &str, state: &str| json!({ "name": name, "type": "veth", "state": state });
    let all = |state: &str| names.map(|name| veth(name, state)).to_vec();
    let routes: Vec<Value> = names.map(|name| route("10.0.0.0/8", name, 254)).to_vec();
    let kept = json!({ "interfaces": all("up"), "routes": { "running": routes } });
    assert_eq!(report(kept.clone()), kept);
    let dropped = report(json!({ "interfaces": all("ignore"), "routes": { "running": routes } }));
    assert_eq!(
        dropped,
        json!({ "interfaces": [], "routes": { "running": [] } })
    );
}

#[test]
fn what_has_no_interfaces_is_reported_with_an_empty_list_of_them() {
    assert_eq!(report(json!({})), json!({ "interfaces": [] }));
    assert_eq!(
        report(json!({ "interfaces": "none", "routes": [] })),
        json!({ "interfaces": [], "routes": [] })
    );
}

/// A bridge with ports.
fn bridge(name: &str, state: &str, ports: Value) -> Value {
    json!({ "name": name, "type": "linux-bridge", "state": state, "bridge": { "port": ports } })
}

fn filled(interfaces: Value) -> Value {
    let filled = with_default_vlans(given(json!({ "interfaces": interfaces })));
    filled["interfaces"].clone()
}

#[test]
fn a_port_without_vlans_carries_all_of_them() {
    let every =
        json!({ "mode": "trunk", "trunk-tags": [{ "id-range": { "min": 2, "max": 4094 } }] });
    let own = json!({ "mode": "trunk", "trunk-tags": [{ "id": 101 }], "tag": 100, "enable-native": true });
    let shown = filled(json!([
        bridge("br1", "up", json!([{ "name": "eth1" }])),
        bridge(
            "br2",
            "up",
            json!([{ "name": "eth2", "vlan": own }, { "name": "eth3" }])
        ),
        bridge("br3", "up", json!([{ "name": "eth4", "vlan": {} }])),
    ]));
    let expected = json!([
        bridge("br1", "up", json!([{ "name": "eth1", "vlan": every }])),
        bridge(
            "br2",
            "up",
            json!([{ "name": "eth2", "vlan": own }, { "name": "eth3", "vlan": every }])
        ),
        bridge("br3", "up", json!([{ "name": "eth4", "vlan": {} }])),
    ]);
    assert_eq!(shown, expected);
}

#[test]
fn what_is_no_bridge_that_is_up_is_left_alone() {
    for interfaces in [
        json!([]),
        json!("not a list"),
        json!([{ "name": "bond1", "type": "bond", "state": "up", "link-aggregation": { "port": ["eth1"] } }]),
        json!([
            bridge("br1", "down", json!([{ "name": "eth1" }])),
            bridge("br2", "absent", json!([{ "name": "eth2" }]))
        ]),
        json!([{ "name": "br1", "type": "linux-bridge", "state": "up" }]),
        json!([bridge("br1", "up", json!([]))]),
        json!([{ "name": "ovs", "type": "ovs-bridge", "state": "up", "bridge": { "port": [{ "name": "eth1" }] } }]),
    ] {
        assert_eq!(filled(interfaces.clone()), interfaces);
    }
    assert!(with_default_vlans(given(json!({}))).is_empty());
}

fn hop(destination: &str, device: &str, address: &str, table: u64) -> Value {
    let mut hop = route(destination, device, table);
    hop["next-hop-address"] = json!(address);
    hop
}

fn gateways(running: Value) -> Result<Vec<(String, String)>, NoGateway> {
    let found = default_gateways(&given(json!({ "routes": { "running": running } })))?;
    let told = found
        .into_iter()
        .map(|it| (it.device, it.address.to_string()));
    Ok(told.collect())
}

#[test]
fn the_gateway_is_that_of_the_main_table_for_each_family() {
    let elsewhere = hop("172.30.0.0/16", "eth0", "169.254.169.4", 254);
    let four = hop("0.0.0.0/0", "eth1", "10.46.55.254", 254);
    let six = hop("::/0", "eth0", "fe80::dead:beef:fe51:782d", 254);
    let (to_four, to_six) = (
        ("eth1".to_owned(), "10.46.55.254".to_owned()),
        ("eth0".to_owned(), "fe80::dead:beef:fe51:782d".to_owned()),
    );
    for (what, routes, expected) in [
        ("IPv4", json!([elsewhere, four]), Ok(vec![to_four.clone()])),
        (
            "IPv4 beside another table",
            json!([
                elsewhere,
                hop("0.0.0.0/0", "eth0", "169.254.169.4", 56),
                four
            ]),
            Ok(vec![to_four.clone()]),
        ),
        ("none", json!([elsewhere]), Err(NoGateway)),
        ("IPv6", json!([six]), Ok(vec![to_six.clone()])),
        (
            "IPv6 beside another table",
            json!([six, hop("::/0", "eth1", "fe80::baad:cafe", 56)]),
            Ok(vec![to_six.clone()]),
        ),
        (
            "both",
            json!([six, four]),
            Ok(vec![to_four, to_six.clone()]),
        ),
        (
            "both, IPv4 missing",
            json!([elsewhere, six]),
            Ok(vec![to_six]),
        ),
    ] {
        assert_eq!(gateways(routes), expected, "{what}");
    }
}

#[test]
fn a_default_route_without_anybody_behind_it_is_no_gateway() {
    for address in ["", "0.0.0.0", "nonsense"] {
        assert_eq!(
            gateways(json!([hop("0.0.0.0/0", "ppp0", address, 254)])),
            Err(NoGateway)
        );
    }
    assert_eq!(
        gateways(json!([route("0.0.0.0/0", "ppp0", 254)])),
        Err(NoGateway)
    );
    assert_eq!(default_gateways(&given(json!({}))), Err(NoGateway));
}

#[test]
fn of_two_gateways_the_one_with_the_smaller_metric_counts() {
    let with = |device: &str, address: &str, metric: i64| {
        let mut hop = hop("0.0.0.0/0", device, address, 254);
        hop["metric"] = json!(metric);
        hop
    };
    let told = gateways(json!([
        with("wlan0", "192.0.2.1", 600),
        with("eth0", "192.0.2.2", 100)
    ]));
    assert_eq!(told, Ok(vec![("eth0".to_owned(), "192.0.2.2".to_owned())]));
}

#[test]
fn after_a_change_the_gateway_is_that_of_the_new_state() {
    let before = gateways(json!([hop("0.0.0.0/0", "eth0", "192.0.2.1", 254)]));
    let after = gateways(json!([hop("0.0.0.0/0", "br0", "198.51.100.1", 254)]));
    assert_eq!(before.expect("a gateway")[0].0, "eth0");
    assert_eq!(
        after,
        Ok(vec![("br0".to_owned(), "198.51.100.1".to_owned())])
    );
}

#[test]
fn policies_for_one_interface_conflict_by_name() {
    let touched = |state| touched(&given(state));
    let one = touched(json!({ "interfaces": [
        { "name": "eth0", "mtu": 1400 },
        bridge("br0", "up", json!([{ "name": "eth1" }, { "name": "eth2" }])),
        { "name": "ovs0", "type": "ovs-bridge", "bridge": { "port": [
            { "name": "ovs0" },
            { "name": "bond1", "link-aggregation": { "ports": [{ "name": "eth5" }] } } ] } },
    ] }));
    let other = touched(json!({ "interfaces": [
        { "name": "eth0", "mtu": 9000 },
        { "name": "bond0", "type": "bond", "link-aggregation": { "port": ["eth2", "eth3"] } },
        { "name": "eth0.100", "type": "vlan", "vlan": { "base-iface": "eth1", "id": 100 } },
        { "name": "red", "type": "vrf", "vrf": { "port": ["eth5"] } },
    ] }));
    let port = |name: &str, ours: &str, theirs: &str| Conflict::Port {
        name: name.to_owned(),
        ours: ours.to_owned(),
        theirs: theirs.to_owned(),
    };
    assert_eq!(
        one.conflicts(&other),
        [
            Conflict::Described("eth0".to_owned()),
            port("eth2", "br0", "bond0"),
            port("eth5", "ovs0", "red"),
        ]
    );
    let twice = one.conflicts(&one);
    let only = |it: &Conflict| matches!(it, Conflict::Described(_));
    assert!(
        twice.iter().all(only),
        "both have the same ports: {twice:?}"
    );
    let said: Vec<String> = one
        .conflicts(&other)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(said[0], "both configure interface eth0");
    assert_eq!(
        said[1],
        "this one makes interface eth2 a port of br0, the other a port of bond0"
    );
}

#[test]
fn a_bridge_and_its_port_in_two_policies_do_not_conflict_but_are_shared() {
    let touched = |state| touched(&given(state));
    let port = touched(json!({ "interfaces": [{ "name": "eth1", "mtu": 9000 }] }));
    let bridge =
        touched(json!({ "interfaces": [bridge("br1", "up", json!([{ "name": "eth1" }]))] }));
    let routes = touched(json!({ "routes": { "config": [route("10.0.0.0/8", "br1", 254)] } }));
    let none = touched(json!({ "interfaces": [{ "type": "no name" }] }));
    assert_eq!(port.conflicts(&bridge), []);
    assert_eq!(port.shared(&bridge), ["eth1".to_owned()].into());
    assert_eq!(bridge.shared(&routes), ["br1".to_owned()].into());
    assert_eq!(port.shared(&routes), [].into());
    assert_eq!(none, Default::default());
}

#[test]
fn dispatch_scripts_are_refused_unless_allowed() {
    let scripts = given(json!({ "interfaces": [
        { "name": "eth0" },
        { "name": "eth1", "dispatch": { "post-activation": "touch /tmp/x" } },
    ] }));
    let refused = check_dispatch(&scripts, DispatchScripts::Refused).expect_err("scripts");
    assert!(refused.to_string().contains("as eth1 has one"), "{refused}");
    assert_eq!(check_dispatch(&scripts, DispatchScripts::Allowed), Ok(()));
    let plain = given(json!({ "interfaces": [{ "name": "dispatch" }] }));
    assert_eq!(check_dispatch(&plain, DispatchScripts::Refused), Ok(()));
}
