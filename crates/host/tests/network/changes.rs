//! What becomes of a change that nothing befalls.

use crate::common::desired;
use crate::world::World;
use keelson_host::handler::journal::End;
use serde_json::Value;

/// The host's own cable under a bridge that takes its address and its way out.
pub(crate) fn under_a_bridge(world: &World) -> Value {
    desired::under_a_bridge(world.host.address(), world.network.address())
}

/// An address and a way out that lead nowhere.
pub(crate) fn nowhere(_: &World) -> Value {
    desired::nowhere()
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
