//! What policies ask of one host, from the first look at them to their deletion.

use crate::common::homes::SOON;
use crate::member::{Member, Told, condition, holds, message};
use crate::states::{bridge, nowhere, way_out_under};
use crate::world::World;
use keelson_api::condition::HostCondition;
use keelson_api::enactment::NodeNetworkConfigurationEnactmentStatus as Status;
use keelson_api::host_condition::EnactmentCondition::{
    Aborted, Available, Failing, Pending, Progressing,
};
use keelson_host::handler::journal::End;
use keelson_host::handler::points::{Act, Point};
use keelson_testbed::{DEVICE, Process, until};
use kube::api::{Patch, PatchParams};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_for_the_hosts_its_labels_select_as_long_as_they_do() {
    let world = World::new("labels").await;
    let host = world.host_with(json!({"rack": "1"})).await;
    let _handler = host.start(Told::default());
    let wanted = |rack: &str, bridge_name: &str| {
        let selector = json!({"rack": rack, "fleet": world.selector()["fleet"]});
        json!({"nodeSelector": selector, "desiredState": bridge(bridge_name, "192.0.2.1")})
    };
    let policy = world.policy_of("labels", wanted("1", "br1")).await;
    let other = world.policy_of("labels", wanted("2", "br2")).await;
    world.all_looked_at(&host).await;
    assert_eq!(host.enactment(&policy).await, None, "one label is missing");
    world.label(&host.node, world.selector()).await;
    let status = host.comes_to(&policy, Available).await;
    assert_eq!(status.policy_generation, Some(1));
    assert_eq!(host.enactment(&other).await, None, "another rack");
    assert!(host.links().contains("br1"));
    // What it brought about stays.
    world.label(&host.node, json!({"rack": null})).await;
    host.is_rid_of(&policy).await;
    assert!(host.links().contains("br1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_captured_once_stays_and_another_start_changes_nothing() {
    let world = World::new("captures").await;
    let host = world.host().await;
    let handler = host.start(Told::default());
    let policy = world.policy_of("captures", way_out_under("br1")).await;
    let status = host.comes_to(&policy, Available).await;
    let captured = |name: &str| {
        let state = status.captured_states[name].state.clone();
        json!(state.expect("a state"))
    };
    assert_eq!(captured("nic")["interfaces"][0]["name"], DEVICE);
    let asked = json!(status.desired_state);
    let ports = &asked["interfaces"][0]["bridge"]["port"];
    assert_eq!(*ports, json!([{"name": DEVICE, "vlan": {}}]));
    let meta = status.captured_states["nic"]
        .meta_info
        .clone()
        .expect("meta");
    assert!(meta.version.is_some() && meta.time.is_some());
    assert_eq!(
        says(&status, Available),
        ("True", "SuccessfullyConfigured", "successfully reconciled")
    );
    for other in [Failing, Progressing, Pending, Aborted] {
        assert_eq!(
            says(&status, other),
            ("False", "SuccessfullyConfigured", ""),
            "{other}"
        );
    }
    assert_eq!(status.features, ["static-route"]);
    // By now the bridge has the way out, so that a second look would capture something else.
    let (change, network) = (host.journal(), host.snapshot());
    handler.ask_to_end();
    handler.ended().await;
    let told = host.enactment(&policy).await;
    let _again = host.start(Told::default());
    world.all_looked_at(&host).await;
    assert_eq!(host.enactment(&policy).await, told);
    assert_eq!(host.journal(), change, "nothing was applied");
    assert_eq!(host.snapshot().differences(&network), Vec::<String>::new());
    assert_eq!(world.claims().await, [], "and no turn is held");
}

fn says(
    status: &Status,
    kind: keelson_api::host_condition::EnactmentCondition,
) -> (&str, &str, &str) {
    let condition: &HostCondition = condition(status, kind).expect("a condition");
    let reason = condition.reason.as_deref().unwrap_or_default();
    (&condition.status, reason, message(status, kind))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_fails_is_tried_as_often_as_it_may_and_then_says_so_where_people_look() {
    let world = World::new("retries").await;
    let host = world.host().await;
    let before = host.snapshot();
    let handler = host.start(Told {
        probes: 3,
        attempts: 2,
        // However soon the second attempt comes, and whatever it does to the network: what came of the
        // first is told before.
        pause: 0,
        stop: Some(Point::Before(Act::Probe)),
        ..Told::default()
    });
    let policy = world.policy("nowhere", &nowhere()).await;
    stopped(&handler).await;
    let first = host.journal().map(|it| it.began);
    handler.thaw();
    until("a second attempt", SOON, async || match host.journal() {
        Some(entry) if Some(entry.began) != first && handler.is_frozen() => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await
    .expect("a second attempt");
    let retrying = host.enactment(&policy).await.expect("an enactment");
    handler.thaw();
    assert!(holds(&retrying, Failing) && holds(&retrying, Progressing));
    assert_eq!(retrying.retry_count.get("1"), Some(&1));
    let said = message(&retrying, Failing);
    assert!(
        said.contains(&format!("on node {}. Retrying 2/2: ", host.node)),
        "{said}"
    );
    assert!(said.contains("did not answer after the change"), "{said}");
    let failed = host
        .comes_to_where(&policy, Failing, |it| !holds(it, Progressing))
        .await;
    assert_eq!(failed.retry_count.get("1"), Some(&2));
    let said = says(&failed, Failing);
    assert_eq!(said.1, "FailedToConfigure");
    let event = world.event(&policy).await;
    assert!(event.contains("the default gateway"), "{event}");
    assert_eq!(host.snapshot().differences(&before), Vec::<String>::new());
    // An edit is tried, however often what was there before failed.
    world.edit(&policy, &bridge("br1", "192.0.2.1")).await;
    stopped(&handler).await;
    handler.thaw();
    let mended = host.comes_to(&policy, Available).await;
    assert_eq!(mended.policy_generation, Some(2));
    assert!(mended.retry_count.is_empty(), "{:?}", mended.retry_count);
}

async fn stopped(handler: &Process) {
    until("the point", SOON, async || match handler.is_frozen() {
        true => Ok(()),
        false => Err(handler.tail(10)),
    })
    .await
    .expect("a stop");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_in_the_middle_of_a_change_comes_next() {
    let world = World::new("edit").await;
    let host = world.host().await;
    let stop = Some(Point::Before(Act::Probe));
    let handler = host.start(Told {
        stop,
        ..Told::default()
    });
    let policy = world.policy("edit", &bridge("br1", "192.0.2.1")).await;
    stopped(&handler).await;
    world.edit(&policy, &bridge("br1", "192.0.2.2")).await;
    handler.thaw();
    // The first change comes to its end, and the second to the same point.
    until("the second change", SOON, async || match host.journal() {
        Some(entry) if entry.policy.generation == 2 && handler.is_frozen() => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await
    .expect("a second change");
    assert!(host.links().contains("br1"));
    handler.thaw();
    let status = host.comes_to_where(&policy, Available, |it| it.policy_generation == Some(2));
    assert!(status.await.retry_count.is_empty(), "nothing failed");
    let entry = host.closed().await;
    assert_eq!((entry.policy.generation, entry.end), (2, Some(End::Kept)));
    assert!(
        host.snapshot()
            .addresses
            .contains(&"br1 192.0.2.2/24".to_owned())
    );
    assert!(
        !host
            .snapshot()
            .addresses
            .contains(&"br1 192.0.2.1/24".to_owned())
    );
}

const REVERT: &str = "nmstate.io/revert-on-delete";

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_policy_leaves_the_host_as_it_is_unless_it_says_otherwise() {
    let world = World::new("delete").await;
    let host = world.host().await;
    let _handler = host.start(Told::default());
    let stays = world.policy("stays", &bridge("br1", "192.0.2.1")).await;
    host.comes_to(&stays, Available).await;
    let before = host.snapshot();
    let spec = json!({"desiredState": bridge("br2", "198.51.100.1")});
    let goes = world.annotated("goes", spec, json!({REVERT: "true"})).await;
    host.comes_to(&goes, Available).await;
    assert_ne!(host.snapshot(), before);
    world.delete(&goes).await;
    host.is_rid_of(&goes).await;
    assert_eq!(host.snapshot().differences(&before), Vec::<String>::new());
    // Even from the way out; what nmstate writes of it into a profile are other words for the same.
    let spec = way_out_under("br2");
    let goes = world.annotated("goes", spec, json!({REVERT: "true"})).await;
    host.comes_to(&goes, Available).await;
    world.delete(&goes).await;
    host.is_rid_of(&goes).await;
    let now = host.snapshot();
    let differences = now.differences(&before).into_iter();
    let other: Vec<String> = differences
        .filter(|it| !it.contains("profile eth0 "))
        .collect();
    assert_eq!(other, Vec::<String>::new());
    world.delete(&stays).await;
    host.is_rid_of(&stays).await;
    assert!(host.links().contains("br1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_says_so_no_more_when_it_is_deleted_leaves_the_host_as_it_is() {
    let world = World::new("last-word").await;
    let host = world.host().await;
    let handler = host.start(Told::default());
    let spec = json!({"desiredState": bridge("br1", "192.0.2.1")});
    let policy = world.annotated("goes", spec, json!({REVERT: "true"})).await;
    host.comes_to(&policy, Available).await;
    let before = host.snapshot();
    // The handler hears of both at once.
    handler.freeze();
    let edit = Patch::Merge(json!({"metadata": {"annotations": {REVERT: null}}}));
    let (policies, plain) = (world.policies(), PatchParams::default());
    let edited = policies.patch(&policy, &plain, &edit);
    edited.await.expect("an edit");
    world.delete(&policy).await;
    handler.thaw();
    host.is_rid_of(&policy).await;
    assert_eq!(host.snapshot().differences(&before), Vec::<String>::new());
    assert!(host.links().contains("br1"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_does_not_go_back_where_that_would_undo_what_came_later() {
    let world = World::new("later").await;
    let host = world.host().await;
    let _handler = host.start(Told::default());
    let spec = json!({"desiredState": bridge("br1", "192.0.2.1")});
    let first = world
        .annotated("first", spec, json!({REVERT: "true"}))
        .await;
    host.comes_to(&first, Available).await;
    let route = json!({"routes": {"config": [{
        "destination": "198.51.100.0/24", "next-hop-address": "192.0.2.254",
        "next-hop-interface": "br1", "table-id": 254,
    }]}});
    let second = world.policy("second", &route).await;
    host.comes_to(&second, Available).await;
    let before = host.snapshot();
    world.delete(&first).await;
    host.is_rid_of(&first).await;
    let event = world.event(&first).await;
    assert!(
        event.contains(&format!(
            "that would undo what {second} brought about later"
        )),
        "{event}"
    );
    assert_eq!(host.snapshot().differences(&before), Vec::<String>::new());
    assert!(holds(&host.comes_to(&second, Available).await, Available));
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_policies_that_disagree_the_older_stays_until_it_is_deleted() {
    let world = World::new("conflict").await;
    let host = world.host().await;
    let _handler = host.start(Told::default());
    // Names say nothing: of these the second is the older one.
    let older = world.policy("z-older", &bridge("br1", "192.0.2.1")).await;
    host.comes_to(&older, Available).await;
    world.another_second().await;
    let younger = world.policy("a-younger", &bridge("br1", "192.0.2.2")).await;
    let status = host.comes_to(&younger, Failing).await;
    let said = format!("conflicts with policy {older}: both configure interface br1");
    assert_eq!(
        says(&status, Failing),
        ("True", "PolicyConflict", said.as_str())
    );
    assert!(holds(&host.comes_to(&older, Available).await, Available));
    let change = host.journal().expect("a change");
    assert_eq!(change.policy.name, older, "nothing was tried for the other");
    world.delete(&older).await;
    host.comes_to(&younger, Available).await;
    assert!(
        host.snapshot()
            .addresses
            .contains(&"br1 192.0.2.2/24".to_owned())
    );
    // The one that is there now is the older of the next two, whichever is looked at first.
    world.another_second().await;
    let next = world.policy("0-next", &bridge("br1", "192.0.2.3")).await;
    let status = host.comes_to(&next, Failing).await;
    assert!(message(&status, Failing).contains(&younger), "{status:#?}");
}

/// The host's links, as a kernel tells them.
impl Member {
    pub(crate) fn links(&self) -> String {
        self.host.run("ip -o link show").expect("links")
    }
}
