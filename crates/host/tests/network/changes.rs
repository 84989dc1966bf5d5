//! What becomes of a change that nothing befalls.

use crate::common::desired;
use crate::world::{SOON, World};
use keelson_host::handler::journal::End;
use keelson_testbed::until;
use serde_json::{Value, json};

/// The host's own cable under a bridge that takes its address and its way out.
pub(crate) fn under_a_bridge(world: &World) -> Value {
    desired::under_a_bridge(world.host.address(), world.network.address())
}

/// An address and a way out that lead nowhere.
pub(crate) fn nowhere(_: &World) -> Value {
    desired::nowhere()
}

/// The same, and another name for the cable, which neither a checkpoint nor a profile takes back.
pub(crate) fn nowhere_by_another_name(_: &World) -> Value {
    let mut desired = desired::nowhere();
    desired["interfaces"][0]["alt-names"] = json!([{"name": "uplink"}]);
    desired
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hosts_own_cable_goes_under_a_bridge() {
    let world = World::new().await;
    let before = world.snapshot();
    world.policy("bridge", &under_a_bridge(&world));
    let handler = world.handler(None);
    handler.start().expect("a handler");
    world.ready().await;
    let entry = world.closed().await;
    assert_eq!(
        entry.end,
        Some(End::Kept),
        "{:?}\n{}",
        entry.why,
        handler.tail(30)
    );
    let now = world.snapshot();
    assert_eq!(now.addresses, ["br1 @/24", "lo 127.0.0.1/8"], "{now:#?}");
    assert!(
        now.routes
            .iter()
            .any(|it| it.starts_with("default via 10.77.0.1 dev br1")),
        "{now:#?}"
    );
    assert_eq!(now.profiles["spare"], before.profiles["spare"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_costs_the_gateway_is_undone_in_time() {
    let world = World::new().await;
    let before = world.snapshot();
    world.policy("nowhere", &nowhere(&world));
    let handler = world.handler(None);
    handler.start().expect("a handler");
    world.ready().await;
    let entry = world.closed().await;
    assert_eq!(entry.end, Some(End::Undone), "{}", handler.tail(30));
    let why = entry.why.expect("a reason");
    assert!(
        why.contains("the default gateway did not answer after the change"),
        "{why}"
    );
    assert_eq!(world.snapshot(), before);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_befalls_the_host_while_a_probe_does_not_answer_is_in_its_state_of_before() {
    let world = World::new().await;
    world.policy("bridge", &under_a_bridge(&world));
    // Nobody answers for the API server, so the probes before the change take seconds.
    let handler = world.handler_probing(None, 5, &["--v=debug"]);
    handler.start().expect("a handler");
    until("a look", SOON, async || {
        let log = handler.tail(2000);
        match log.contains("network read") && !log.contains("baseline asked") {
            true => Ok(()),
            false => Err(log),
        }
    })
    .await
    .expect("a look before the change");
    let late = "192.0.2.77";
    let add = format!("ip address add {late}/24 dev lo");
    world.host.run(&add).expect("an address");
    let entry = world.closed().await;
    assert_eq!(entry.end, Some(End::Kept), "{:?}", entry.why);
    let before = serde_json::to_string(&entry.before).expect("a state");
    assert!(before.contains(late), "{before}");
}
