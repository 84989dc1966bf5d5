//! The story that started it, with bonds: a policy moves the host's own cable under a bond, or under a
//! bond under a bridge, the API server goes away right after the apply, and the handler dies.

use crate::turns::{Change, Turn, told};
use crate::world::World;
use keelson_host::handler::journal::End;
use keelson_host::handler::points::{Act, Point};
use keelson_testbed::DEVICE;
use serde_json::{Value, json};

/// The second cable of the bond.
const SECOND: &str = "eth1";

/// The host's own cable and a second one as one, with the host's address and way out.
const BOND: Change = Change {
    name: "bond",
    cables: &[SECOND],
    desired: |world| {
        let mut bond = bond();
        bond["ipv4"] = address(world);
        json!({ "interfaces": [bond], "routes": way_out(world, "bond0") })
    },
};

/// The same under a bridge that has the address and carries every VLAN.
const BOND_UNDER_BRIDGE: Change = Change {
    name: "bond-under-bridge",
    cables: &[SECOND],
    desired: |world| {
        let bridge = json!({
            "name": "br1", "type": "linux-bridge", "state": "up", "ipv4": address(world),
            "bridge": {"options": {"stp": {"enabled": false}}, "port": [{"name": "bond0"}]},
        });
        json!({ "interfaces": [bond(), bridge], "routes": way_out(world, "br1") })
    },
};

/// It has the hardware address of one of its ports: one that is copied would stand in the profile, and
/// every host has another.
fn bond() -> Value {
    json!({
        "name": "bond0", "type": "bond", "state": "up",
        "link-aggregation": {
            "mode": "active-backup", "options": {"miimon": 100, "primary": DEVICE},
            "port": [DEVICE, SECOND],
        },
    })
}

fn address(world: &World) -> Value {
    let address = json!([{"ip": world.host.address(), "prefix-length": 24}]);
    json!({"enabled": true, "dhcp": false, "address": address})
}

fn way_out(world: &World, device: &str) -> Value {
    json!({"config": [{"destination": "0.0.0.0/0", "next-hop-address": world.network.address(),
        "next-hop-interface": device}]})
}

/// One after the other: several at once take each other's time, and a handler that gets no answer in
/// time changes nothing, which is another story.
const AT_ONCE: usize = 1;

/// Undone, because nobody could tell whether the apply was through.
const IN_THE_APPLY: Turn = Turn {
    dies: Point::After(Act::Apply),
    away: true,
    end: End::Undone,
    told: "the handler or NetworkManager ended while the state was applied",
};

/// Undone, because the API server does not answer.
const BEFORE_THE_PROBES: Turn = Turn {
    dies: Point::Before(Act::Probe),
    away: true,
    end: End::Undone,
    told: "the API server and the node's readiness did not answer after the change",
};

/// Kept, because the probes had passed.
const VERIFIED: Turn = Turn {
    dies: Point::After(Act::NoteVerified),
    away: true,
    end: End::Kept,
    told: "successfully reconciled",
};

#[tokio::test(flavor = "multi_thread")]
#[ignore = "for the second kernel: `make test-kernel`"]
async fn with_a_bond_the_host_is_reachable_and_in_one_of_two_states_whenever_the_handler_dies() {
    told(BOND, &[VERIFIED, IN_THE_APPLY], AT_ONCE).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "for the second kernel: `make test-kernel`"]
async fn with_a_bond_under_a_bridge_the_host_is_reachable_and_in_one_of_two_states() {
    told(BOND_UNDER_BRIDGE, &[BEFORE_THE_PROBES], AT_ONCE).await;
}
