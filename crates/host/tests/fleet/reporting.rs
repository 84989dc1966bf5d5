//! What is told of a host's network: as it is, soon, and not again while it is the same.

use crate::common::homes::SOON;
use crate::member::{Member, Told};
use crate::states::bridge;
use crate::world::World;
use keelson_api::NodeNetworkState;
use keelson_api::condition::{HostCondition, Truth};
use keelson_api::host_condition::EnactmentCondition::Available;
use keelson_api::host_condition::StateCondition;
use keelson_testbed::{DEVICE, until};
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

impl World {
    fn states(&self) -> Api<NodeNetworkState> {
        Api::all(self.client.clone())
    }

    /// Waits until what is told of a host is like this, and gives it.
    async fn told(
        &self,
        host: &Member,
        so: impl Fn(&NodeNetworkState) -> bool,
    ) -> NodeNetworkState {
        let told = until("a report", SOON, async || {
            match self.states().get_opt(&host.node).await {
                Ok(Some(state)) if so(&state) => Ok(state),
                other => Err(format!("{other:?}")),
            }
        });
        told.await
            .unwrap_or_else(|error| panic!("{error}\n{}", host.log(20)))
    }

    /// Asks for a report at once.
    async fn wish(&self, host: &Member, value: &str) {
        let labels = json!({"nmstate.io/force-nns-refresh": value});
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        let how = PatchParams::default();
        let wished = self.states().patch(&host.node, &how, &patch).await;
        wished.expect("a wish");
    }
}

fn current(state: &NodeNetworkState) -> Value {
    let status = state.status.clone().unwrap_or_default();
    Value::Object(status.current_state.unwrap_or_default())
}

fn names(state: &NodeNetworkState) -> Vec<String> {
    let current = current(state);
    let interfaces = current["interfaces"]
        .as_array()
        .cloned()
        .unwrap_or_default();
    let names = interfaces
        .iter()
        .map(|it| it["name"].as_str().unwrap_or_default().to_owned());
    names.collect()
}

fn has(name: &'static str) -> impl Fn(&NodeNetworkState) -> bool {
    move |state| names(state).iter().any(|it| it == name)
}

fn version(state: &NodeNetworkState) -> String {
    state.metadata.resource_version.clone().expect("a version")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_is_told_as_it_is_and_not_again_while_it_is_the_same() {
    let world = World::new("same").await;
    let host = world.host().await;
    // What a pod's end of a cable is like: nobody asked NetworkManager for it.
    host.host
        .run("ip link add pod0 type veth peer name pod1")
        .expect("a cable");
    host.host
        .run("nmcli device set pod0 managed no")
        .expect("a device");
    host.host
        .run("nmcli device set pod1 managed no")
        .expect("a device");
    let _handler = host.start(Told {
        refresh: 1,
        ..Told::default()
    });
    let told = world.told(&host, has(DEVICE)).await;
    assert_eq!(names(&told), [DEVICE, "lo"]);
    let parts = current(&told);
    let parts: Vec<&str> = parts
        .as_object()
        .into_iter()
        .flatten()
        .map(|(key, _)| key.as_str())
        .collect();
    assert!(
        parts
            .iter()
            .all(|it| ["interfaces", "routes", "dns-resolver", "ovn"].contains(it)),
        "{parts:?}"
    );
    let owners = told.metadata.owner_references.clone().unwrap_or_default();
    assert_eq!(
        (owners[0].kind.as_str(), owners[0].name.as_str()),
        ("Node", host.node.as_str())
    );
    let status = told.status.clone().expect("a status");
    let manager = host.host.run("nmcli --version").expect("a version");
    let known = status.host_network_manager_version.expect("a version");
    assert!(manager.contains(&known), "{known} of {manager}");
    assert_eq!(status.handler_nmstate_version.as_deref(), Some("2.2.62"));
    // Time is what is tried here: three looks, and no write.
    tokio::time::sleep(Duration::from_millis(3500)).await;
    let later = world.told(&host, |_| true).await;
    assert_eq!(version(&later), version(&told));
    // Whatever others do is seen at the next look.
    host.host
        .run("ip link add br9 type bridge")
        .expect("a bridge");
    let changed = Instant::now();
    let seen = world.told(&host, has("br9")).await;
    println!("a change by others is told after {:?}", changed.elapsed());
    let last = seen.status.and_then(|it| it.last_successful_update_time);
    assert!(last > status.last_successful_update_time);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_network_is_told_at_once_after_a_change_of_ours_a_wish_and_a_deletion() {
    let world = World::new("at-once").await;
    let host = world.host().await;
    let _handler = host.start(Told {
        refresh: 3600,
        ..Told::default()
    });
    let first = world.told(&host, has(DEVICE)).await;
    let policy = world.policy("told", &bridge("br1", "192.0.2.1")).await;
    host.comes_to(&policy, Available).await;
    world.told(&host, has("br1")).await;
    // Nobody tells of what others do before the next look, which is far away.
    host.host
        .run("ip link add br9 type bridge")
        .expect("a bridge");
    world.all_looked_at(&host).await;
    assert!(!has("br9")(&world.told(&host, |_| true).await));
    world.wish(&host, "1").await;
    world.told(&host, has("br9")).await;
    let how = DeleteParams::default();
    world
        .states()
        .delete(&host.node, &how)
        .await
        .expect("a report");
    let anew = world.told(&host, has("br9")).await;
    assert_ne!(anew.metadata.uid, first.metadata.uid);
}

fn is_available(state: &NodeNetworkState) -> Truth {
    let status = state.status.clone().unwrap_or_default();
    HostCondition::truth(&status.conditions, StateCondition::Available)
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_network_cannot_be_read_what_was_told_last_stays_and_is_said_to_be_old() {
    let world = World::new("unreadable").await;
    let host = world.host().await;
    let _handler = host.start(Told {
        refresh: 1,
        ..Told::default()
    });
    let first = world.told(&host, has(DEVICE)).await;
    assert_eq!(is_available(&first), Truth::True);
    host.host.network_manager().kill().await;
    let old = |state: &NodeNetworkState| is_available(state) == Truth::False;
    let told = world.told(&host, old).await;
    assert_eq!(current(&told), current(&first));
    let status = told.status.clone().expect("a status");
    let last = |state: &NodeNetworkState| {
        let status = state.status.clone().unwrap_or_default();
        status.last_successful_update_time
    };
    assert_eq!(last(&told), last(&first));
    let why = status.conditions[0].message.clone().unwrap_or_default();
    assert!(why.contains("NetworkManager"), "{why}");
    // Time is what is tried here: three looks that fail, and no write.
    tokio::time::sleep(Duration::from_millis(3500)).await;
    let later = world.told(&host, |_| true).await;
    assert_eq!(version(&later), version(&told));
    host.host.network_manager().start().expect("NetworkManager");
    let new = |state: &NodeNetworkState| is_available(state) == Truth::True;
    world.told(&host, new).await;
}
