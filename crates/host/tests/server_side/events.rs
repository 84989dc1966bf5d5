//! What is said about policies, for whoever looks at them.

use crate::common::program::SOON;
use crate::world::{World, unique};
use k8s_openapi::api::events::v1::Event;
use keelson_testbed::until;
use kube::Api;
use kube::api::ListParams;

#[tokio::test]
async fn a_failure_is_said_of_the_policy_even_if_the_server_was_away() {
    let world = World::new("events").await;
    let host = world.host().await;
    let policy = world.policy(&unique("policy")).await;
    let outage = world.faults.refuse();
    host.server
        .say_failed(&policy, "the cable is out".to_owned());
    outage.clear();
    let events = Api::<Event>::namespaced(world.client.clone(), "default");
    let how = ListParams::default().fields(&format!("regarding.uid={}", policy.uid));
    let event = until("an event", SOON, async || {
        let found = events.list(&how).await.map_err(|it| it.to_string())?;
        found
            .items
            .into_iter()
            .next()
            .ok_or_else(|| "none".to_owned())
    })
    .await
    .expect("an event");
    assert_eq!(event.type_.as_deref(), Some("Warning"));
    assert_eq!(event.reason.as_deref(), Some("ReconcileFailed"));
    assert_eq!(event.note.as_deref(), Some("the cable is out"));
    let speaker = format!("{}.nmstate-handler", host.node);
    assert_eq!(event.reporting_controller, Some(speaker));
    let about = event.regarding.expect("an object");
    assert_eq!(
        about.kind.as_deref(),
        Some("NodeNetworkConfigurationPolicy")
    );
    assert_eq!(about.name, Some(policy.name));
}

#[tokio::test]
async fn a_node_with_a_long_name_is_heard_too() {
    let world = World::new("long").await;
    let node = format!(
        "{}.{}",
        unique("node"),
        "a-very-long-name-of-a-zone.of-a-cloud.internal"
    );
    world.node(&node, serde_json::json!({}), true).await;
    let host = world.host_named(&node);
    let policy = world.policy(&unique("policy")).await;
    host.server
        .say_failed(&policy, "the cable is out".to_owned());
    let written =
        |call: &keelson_testbed::faults::Call| call.resource == "events" && call.code == Some(201);
    world
        .faults
        .called("an event", written)
        .await
        .expect("an event");
}
