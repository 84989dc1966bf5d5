//! Reporting the state of a host: made, changed, deleted, and left alone.

use crate::common::program::SOON;
use crate::world::{Host, World, unique};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use keelson_api::NodeNetworkState;
use keelson_api::condition::HostCondition;
use keelson_host::handler::enactment::Standing;
use keelson_host::handler::server::StateReport;
use keelson_testbed::until;
use kube::Api;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::time::timeout;

const STATES: &str = "nodenetworkstates";

fn report(state: Value) -> StateReport {
    StateReport {
        state: state.as_object().expect("a state").clone(),
        host_network_manager_version: Some("1.50.0".to_owned()),
        handler_nmstate_version: Some("2.2.62".to_owned()),
        conditions: vec![HostCondition {
            type_: "NetworkManagerReachable".to_owned(),
            status: "True".to_owned(),
            last_heartbeat_time: Some(Time(Timestamp::now())),
            last_transition_time: Some(Time(Timestamp::now())),
            ..HostCondition::default()
        }],
    }
}

impl World {
    fn states(&self) -> Api<NodeNetworkState> {
        Api::all(self.client.clone())
    }

    async fn delete_state(&self, name: &str) {
        let how = DeleteParams::default();
        let deleted = self.states().delete(name, &how).await;
        deleted.expect("a state to delete");
    }

    /// What the garbage collector does with a state whose node is gone. It does so itself, and maybe
    /// first, once it has heard of our types: that takes it half a minute.
    async fn collect_state(&self, name: &str) {
        let deleted = self.states().delete(name, &DeleteParams::default()).await;
        match deleted {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            deleted => drop(deleted.expect("a state to delete")),
        }
    }

    /// Waits until the state of a host is so, and returns it.
    async fn state_is(
        &self,
        host: &Host,
        so: impl Fn(&NodeNetworkState) -> bool,
    ) -> NodeNetworkState {
        until("a state", SOON, async || {
            let found = self.states().get_opt(&host.node).await;
            let found = found.map_err(|it| it.to_string())?;
            match found {
                Some(found) if so(&found) => Ok(found),
                other => Err(format!("{other:?} and {:?}", host.server.trouble())),
            }
        })
        .await
        .expect("a state")
    }

    /// Waits until it has answered something later than the last report of a host: a report about a
    /// policy, told after it.
    async fn settled(&self, host: &Host) {
        let policy = self.policy(&unique("policy")).await;
        host.put(&policy, &Standing::Configured);
        host.all_told().await;
    }
}

fn says(object: &NodeNetworkState, state: &Value) -> bool {
    let status = object.status.as_ref();
    let current = status.and_then(|it| it.current_state.as_ref());
    current == state.as_object()
}

#[tokio::test]
async fn a_state_is_written_once_and_again_only_when_it_changes() {
    let world = World::new("state").await;
    let host = world.host().await;
    // As nmstate has it: numbers, nothings, and names that look like numbers.
    let first = json!({"interfaces": [{"name": "0123", "mtu": 1500, "alias": null, "up": true}],
        "routes": {"running": []}});
    host.server.report(report(first.clone()));
    let made = world.state_is(&host, |it| says(it, &first)).await;
    let owners = made.metadata.owner_references.expect("owners");
    let node = host.server.this_node().expect("a node");
    assert_eq!(
        (owners[0].kind.as_str(), &owners[0].uid),
        ("Node", &node.uid)
    );
    let labels = made.metadata.labels.expect("labels");
    assert_eq!(labels["app.kubernetes.io/part-of"], "a-test");
    let status = made.status.expect("a status");
    assert_eq!(
        status.host_network_manager_version.as_deref(),
        Some("1.50.0")
    );
    assert_eq!(status.handler_nmstate_version.as_deref(), Some("2.2.62"));
    let since = status.last_successful_update_time.expect("a time");
    assert_eq!(world.writes(STATES).len(), 2, "it and its status");

    // The same again: by us, on new connections, and by who comes after us.
    host.server.report(report(first.clone()));
    world.settled(&host).await;
    host.server.reconnect();
    host.server.report(report(first.clone()));
    world.settled(&host).await;
    let node = host.node.clone();
    let host = world.host_in(&node, host.kill().await);
    host.server.report(report(first.clone()));
    world.settled(&host).await;
    assert_eq!(world.writes(STATES).len(), 2, "{:?}", world.faults.writes());

    // Only a version is another: the state has not changed, and says so.
    let old = json!("2020-01-01T00:00:00Z");
    let aged = Patch::Merge(json!({"status": {"lastSuccessfulUpdateTime": old}}));
    let how = PatchParams::default();
    let written = world.states().patch_status(&node, &how, &aged).await;
    written.expect("a status");
    let newer = StateReport {
        host_network_manager_version: Some("1.52.0".to_owned()),
        ..report(first.clone())
    };
    let updated = |it: &NodeNetworkState| {
        let status = it.status.clone().unwrap_or_default();
        let at = status.last_successful_update_time.map(|it| json!(it));
        (status.host_network_manager_version, at)
    };
    host.server.report(newer);
    let version = Some("1.52.0".to_owned());
    world
        .state_is(&host, |it| {
            updated(it) == (version.clone(), Some(old.clone()))
        })
        .await;

    let second = json!({"interfaces": []});
    host.server.report(report(second.clone()));
    let changed = world.state_is(&host, |it| says(it, &second)).await;
    let at = changed
        .status
        .expect("a status")
        .last_successful_update_time;
    assert!(at.expect("a time").0 >= since.0);
    assert_eq!(world.writes(STATES).len(), 4, "{:?}", world.faults.writes());
}

#[tokio::test]
async fn a_state_that_was_deleted_or_changed_by_others_is_put_right() {
    let world = World::new("put-right").await;
    let host = world.host().await;
    let state = json!({"interfaces": []});
    host.server.report(report(state.clone()));
    let made = world.state_is(&host, |it| says(it, &state)).await;
    world.delete_state(&host.node).await;
    let anew = |it: &NodeNetworkState| says(it, &state) && it.metadata.uid != made.metadata.uid;
    world.state_is(&host, anew).await;
    let other = Patch::Merge(json!({"status": {"currentState": {"interfaces": [{}]}}}));
    let how = PatchParams::default();
    let written = world.states().patch_status(&host.node, &how, &other).await;
    let written = written.expect("a status").metadata.resource_version;
    let right = |it: &NodeNetworkState| says(it, &state) && it.metadata.resource_version != written;
    world.state_is(&host, right).await;
    world.settled(&host).await;
    assert_eq!(world.writes(STATES).len(), 5, "{:?}", world.faults.writes());
}

#[tokio::test]
async fn without_a_node_no_state_is_made() {
    let world = World::new("no-owner").await;
    let node = unique("node");
    let host = world.host_named(&node);
    let state = json!({"interfaces": []});
    host.server.report(report(state.clone()));
    host.connected().await;
    world.node(&node, json!({}), true).await;
    world.state_is(&host, |it| says(it, &state)).await;
    world.delete_node(&node).await;
    host.comes_to("no node", |it| it.this_node().is_none())
        .await;
    world.collect_state(&node).await;
    world.node(&node, json!({}), true).await;
    let anew = world.state_is(&host, |it| says(it, &state)).await;
    let owner = host.server.this_node().expect("a node").uid.clone();
    let owners = anew.metadata.owner_references.expect("owners");
    assert_eq!(owners[0].uid, owner, "not the node of before");
    assert_eq!(world.writes(STATES).len(), 4, "{:?}", world.faults.writes());
}

#[tokio::test]
async fn what_was_reported_in_an_outage_is_written_after_it() {
    let world = World::new("state-outage").await;
    let host = world.host().await;
    host.connected().await;
    let outage = world.faults.refuse();
    let (first, second) = (json!({"interfaces": [1]}), json!({"interfaces": [2]}));
    host.server.report(report(first));
    host.comes_to("a named trouble", |it| it.trouble().is_some())
        .await;
    assert!(!host.server.is_connected());
    host.server.report(report(second.clone()));
    outage.clear();
    world.state_is(&host, |it| says(it, &second)).await;
    assert_eq!(world.writes(STATES).len(), 2, "{:?}", world.faults.writes());
}

#[tokio::test]
async fn the_label_that_asks_for_a_report_is_told_of() {
    let world = World::new("refresh").await;
    let host = world.host().await;
    let state = json!({"interfaces": []});
    host.server.report(report(state.clone()));
    world.state_is(&host, |it| says(it, &state)).await;
    for asked in ["1", "2"] {
        let label = json!({"metadata": {"labels": {"nmstate.io/force-nns-refresh": asked}}});
        let how = PatchParams::default();
        let label = Patch::Merge(label);
        let written = world.states().patch(&host.node, &how, &label).await;
        written.expect("a label");
        let told = async {
            while host.server.refresh().as_deref() != Some(asked) {
                host.server.changed().await;
            }
        };
        timeout(SOON, told).await.expect("it is told of");
    }
    world.settled(&host).await;
    assert_eq!(world.writes(STATES).len(), 2, "{:?}", world.faults.writes());
}
