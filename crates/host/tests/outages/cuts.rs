//! Policies that cut a host off: undone by themselves, and told once the API server is reached again.

use crate::common::desired;
use crate::common::outage::IN_SYNC;
use crate::world::{PROBES, World};
use keelson_api::host_condition::EnactmentCondition;
use keelson_host::handler::journal::{End, Phase};
use keelson_testbed::{DEVICE, until};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// What undoing takes besides the time of the probes, however busy the machine.
const UNDOING: Duration = Duration::from_secs(10);

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_cuts_the_api_server_alone_is_undone_by_itself() {
    let world = World::new("cut").await;
    let server = world.faults.address().ip();
    let desired = json!({"routes": {"config": [{
        "destination": format!("{server}/32"),
        "next-hop-address": "10.77.0.254",
        "next-hop-interface": DEVICE,
    }]}});
    let why = is_undone(&world, "way", &desired).await;
    assert!(
        why.contains("the API server and the node's readiness did not answer after the change"),
        "{why}"
    );
    assert!(!why.contains("gateway"), "{why}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_cuts_gateway_and_api_server_is_undone_by_itself() {
    let world = World::new("cut").await;
    let why = is_undone(&world, "nowhere", &desired::nowhere()).await;
    let expected = "the default gateway and the API server and the node's readiness did not answer \
                    after the change";
    assert!(why.contains(expected), "{why}");
}

/// Why the enactment says that it was undone.
async fn is_undone(world: &World, name: &str, desired: &Value) -> String {
    let before = world.snapshot();
    let handler = world.handler(None);
    handler.start().expect("a handler");
    world.ready().await;
    let policy = world.ask_for(name, desired).await;
    until("a change", Duration::from_secs(30), async || {
        match world.journal() {
            Some(entry) if entry.phase >= Phase::Applied => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
    .expect("a change");
    let applied = Instant::now();
    let entry = world.closed().await;
    let undone = applied.elapsed();
    assert_eq!(entry.end, Some(End::Undone), "{}", handler.tail(30));
    let why = world.comes_to(&policy, EnactmentCondition::Failing).await;
    let told = applied.elapsed().saturating_sub(undone);
    println!("{name}: undone after {undone:.1?}, told {told:.1?} later: {why}");
    assert_eq!(world.snapshot(), before);
    assert!(
        undone <= Duration::from_secs(PROBES) + UNDOING,
        "{undone:?}"
    );
    assert!(told <= IN_SYNC, "{told:?}");
    why
}
