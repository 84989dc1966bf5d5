//! What a handler makes of bridges and VLANs where the kernel knows them: a bridge without ports filters
//! none, a port of which nothing is said carries all of them, and one whose `vlan` is empty is left
//! alone.

use crate::common::homes::SOON;
use crate::world::World;
use keelson_api::host_condition::EnactmentCondition;
use keelson_testbed::until;
use serde_json::{Value, json};

/// The bridge with these ports.
fn bridge(ports: &Value) -> Value {
    json!({"interfaces": [{
        "name": "br-lab", "type": "linux-bridge", "state": "up",
        "ipv4": {"enabled": false}, "ipv6": {"enabled": false},
        "bridge": {"options": {"stp": {"enabled": false}}, "port": ports},
    }]})
}

/// The bridge with a bond of two cables for its port.
fn with_a_bond() -> Value {
    let mut both = bridge(&json!([{"name": "bond0"}]));
    let bond = json!({
        "name": "bond0", "type": "bond", "state": "up",
        "ipv4": {"enabled": false}, "ipv6": {"enabled": false},
        "link-aggregation": {"mode": "active-backup", "options": {"miimon": 100}, "port": ["eth1", "eth2"]},
    });
    let interfaces = both["interfaces"].as_array_mut();
    interfaces.expect("a list").push(bond);
    both
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "for the second kernel: `make test-kernel`"]
async fn a_port_carries_every_vlan_unless_something_is_said_of_it() {
    let world = World::new("bridges").await;
    for device in ["eth1", "eth2"] {
        world.host.plug(device).expect("a cable");
    }
    let handler = world.handler(None);
    handler.start().expect("a handler");
    let policy = world.ask_for("lab", &bridge(&json!([]))).await;
    is_enacted(&world, &policy, 1).await;
    println!("| the bridge has | vlan_filtering | VLANs of the port |\n|---|---|---|");
    assert_eq!(filtering(&world), "0", "without ports");
    println!("| no ports | 0 | |");

    world
        .ask_anew(&policy, &bridge(&json!([{"name": "eth1"}])))
        .await;
    is_enacted(&world, &policy, 2).await;
    assert_eq!(filtering(&world), "1", "with a port");
    assert_eq!(vlans(&world, "eth1"), "1, 2-4094");
    println!("| a NIC | 1 | 1, 2-4094 |");

    world
        .ask_anew(&policy, &bridge(&json!([{"name": "eth1", "vlan": {}}])))
        .await;
    is_enacted(&world, &policy, 3).await;
    assert_eq!(filtering(&world), "0", "with a port left alone");
    println!("| the NIC with `vlan: {{}}` | 0 | |");

    world.ask_anew(&policy, &with_a_bond()).await;
    is_enacted(&world, &policy, 4).await;
    assert_eq!(filtering(&world), "1", "with a bond");
    assert_eq!(vlans(&world, "bond0"), "1, 2-4094");
    println!("| a bond of two NICs | 1 | 1, 2-4094 |");
}

/// Waits until this generation of a policy is enacted.
async fn is_enacted(world: &World, policy: &str, generation: i64) {
    let what = format!("generation {generation} of {policy}");
    let enacted = until(&what, SOON, async || {
        let status = world.enactment(policy).await.unwrap_or_default();
        let holds = |kind: EnactmentCondition| {
            let mut all = status.conditions.iter();
            all.find(|it| it.type_ == kind.as_str() && it.status == "True")
        };
        if status.policy_generation != Some(generation) {
            return Err(world.log(10));
        }
        if let Some(failing) = holds(EnactmentCondition::Failing) {
            return Ok(Err(failing.message.clone()));
        }
        match holds(EnactmentCondition::Available) {
            Some(_) => Ok(Ok(())),
            None => Err(world.log(10)),
        }
    });
    let enacted = enacted.await.expect("an end");
    enacted.unwrap_or_else(|why| panic!("{what} failed: {why:?}"));
}

/// Whether the bridge filters.
fn filtering(world: &World) -> String {
    let said = world
        .host
        .run("cat /sys/class/net/br-lab/bridge/vlan_filtering");
    said.expect("a setting").trim().to_owned()
}

/// The VLANs of a port, as `bridge` lists them: the first alone, the others as a range.
fn vlans(world: &World, port: &str) -> String {
    let said = world
        .host
        .run(&format!("bridge -json -compressvlans vlan show dev {port}"));
    let said: Value = serde_json::from_str(&said.expect("a list")).expect("JSON");
    let vlans = said[0]["vlans"].as_array().cloned().unwrap_or_default();
    let named = vlans.iter().map(|it| match it.get("vlanEnd") {
        Some(end) => format!("{}-{end}", it["vlan"]),
        None => it["vlan"].to_string(),
    });
    named.collect::<Vec<_>>().join(", ")
}
