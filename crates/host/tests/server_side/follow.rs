//! What is followed: policies, the node, and the connections themselves.

use crate::common::program::SOON;
use crate::world::{World, unique};
use keelson_host::handler::enactment::Standing;
use keelson_host::handler::server::Policy;
use keelson_testbed::until;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::time::timeout;

#[tokio::test]
async fn a_policy_is_known_as_it_is_asked_for_from_its_making_to_its_end() {
    let world = World::new("policies").await;
    let host = world.host().await;
    let name = unique("policy");
    let server = &host.server;
    // Woken again and again, until this holds.
    let known = async |what: &str, so: &dyn Fn(Option<Arc<Policy>>) -> bool| {
        let woken = async {
            loop {
                let policies = server.policies().unwrap_or_default();
                let of_it = |it: &Arc<Policy>| it.object.metadata.name.as_deref() == Some(&name);
                if so(policies.into_iter().find(of_it)) {
                    return;
                }
                server.changed().await;
            }
        };
        timeout(SOON, woken).await.expect(what);
    };
    let made = world.policy(&name).await;
    known("made", &|it| {
        it.is_some_and(|it| it.object.metadata.uid.as_ref() == Some(&made.uid))
    })
    .await;
    let edit = json!({"metadata": {"annotations": {"nmstate.io/revert-on-delete": "true"}},
        "spec": {"maxUnavailable": 3}});
    let edited = world.edit(&name, edit).await;
    known("edited", &|it| {
        it.is_some_and(|it| {
            let annotations = it.object.metadata.annotations.as_ref();
            it.object.metadata.generation == Some(edited.generation)
                && annotations.is_some_and(|it| it.contains_key("nmstate.io/revert-on-delete"))
                && it.object.metadata.creation_timestamp.is_some()
                && it.object.spec.desired_state.is_some()
                && it.unreadable.is_none()
        })
    })
    .await;
    world.delete_policy(&name).await;
    known("deleted", &|it| it.is_none()).await;
}

#[tokio::test]
async fn the_node_is_known_by_its_labels_and_readiness() {
    let world = World::new("node").await;
    let node = unique("node");
    let host = world.host_named(&node);
    host.connected().await;
    assert!(host.server.this_node().is_none());
    world.node(&node, json!({"rack": "1"}), true).await;
    host.comes_to("a node", |it| {
        it.this_node()
            .is_some_and(|it| it.ready && it.labels["rack"] == "1")
    })
    .await;
    world.node(&node, json!({"rack": "2"}), false).await;
    host.comes_to("another label", |it| {
        it.this_node()
            .is_some_and(|it| !it.ready && it.labels["rack"] == "2")
    })
    .await;
}

#[tokio::test]
async fn it_is_told_of_which_enactments_of_its_own_there_are() {
    let world = World::new("enactments").await;
    let host = world.host().await;
    let policy = world.policy(&unique("policy")).await;
    let names = || {
        let known = host.server.enactments()?;
        let names = known.iter().filter_map(|it| it.policy.clone());
        Some(names.collect::<Vec<String>>())
    };
    let told = async |expected: &[String]| {
        let told = async {
            while names().as_deref() != Some(expected) {
                host.server.changed().await;
            }
        };
        timeout(SOON, told).await.expect("it is told of");
    };
    told(&[]).await;
    host.put(&policy, &Standing::Configured);
    told(std::slice::from_ref(&policy.name)).await;
    world.delete_enactment(&host.enactment(&policy)).await;
    told(&[]).await;
}

#[tokio::test]
async fn connections_that_lead_nowhere_are_left_for_new_ones_at_once_when_asked() {
    let world = World::new("anew").await;
    let host = world.host().await;
    host.connected().await;
    world.faults.watching(4).await.expect("four watches");
    assert!(host.server.last_heard() < SOON);
    let _frozen = world.faults.freeze();
    world.faults.forget();
    let name = unique("policy");
    world.policy(&name).await;
    host.server.reconnect();
    let began = Instant::now();
    host.comes_to("the policy", |it| {
        let policies = it.policies().unwrap_or_default();
        policies
            .iter()
            .any(|it| it.object.metadata.name.as_ref() == Some(&name))
    })
    .await;
    let took = began.elapsed();
    println!("heard on new connections after {took:?}");
    assert!(took < Duration::from_secs(2), "{took:?}");
    host.connected().await;
    // Calls, too.
    world.claims_are("").await;
    host.server.release("nobody's").await.expect("an answer");
}

/// A dead connection nobody told us of. Half a minute is too long for every day.
#[tokio::test]
async fn connections_that_died_in_silence_are_noticed_within_half_a_minute() {
    if std::env::var_os("KEELSON_SOAK").is_none() {
        return;
    }
    let world = World::new("silence").await;
    let host = world.host().await;
    host.connected().await;
    world.faults.watching(4).await.expect("four watches");
    let _frozen = world.faults.freeze();
    let name = unique("policy");
    world.policy(&name).await;
    let began = Instant::now();
    until("the policy", Duration::from_secs(30), async || {
        let policies = host.server.policies().unwrap_or_default();
        let mut names = policies.iter().map(|it| it.object.metadata.name.as_ref());
        match names.any(|it| it == Some(&name)) {
            true => Ok(()),
            false => Err(format!("{:?}", host.server.trouble())),
        }
    })
    .await
    .expect("the policy");
    println!("heard after {:?}", began.elapsed());
}
