use std::sync::atomic::Ordering;

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};
use kube::api::DynamicObject;
use serde_json::{Value, json};

use super::*;
use crate::node::seen::{Claim, Ordered, Plain, SeenJob, Set};
use crate::node::world::certificate_resource;

fn key() -> Key {
    Key {
        namespace: "here".to_owned(),
        name: "node".to_owned(),
    }
}

fn node(spec: Value) -> SeiNode {
    let mut whole = json!({ "chainId": "chain", "image": "seid:1", "fullNode": {} });
    let whole_spec = whole.as_object_mut().expect("a spec");
    whole_spec.extend(spec.as_object().expect("a spec").clone());
    let node = json!({
        "apiVersion": "sei.io/v1alpha1",
        "kind": "SeiNode",
        "metadata": { "name": "node", "namespace": "here", "resourceVersion": "7" },
        "spec": whole,
    });
    serde_json::from_value(node).expect("a node")
}

fn plain() -> Plain {
    Plain::read(&DynamicObject::new("any", &certificate_resource()))
}

fn ask() -> Ask {
    Ask {
        pod: Arc::new(SeenPod::read(&Pod::default())),
        over: Arc::new(Transport::Plaintext),
    }
}

/// Whether a node that rests in this world still does after this.
fn rests_after(node: &SeiNode, change: impl FnOnce(&World)) -> bool {
    let (world, rests) = (World::new(), Rests::default());
    let ground = Ground::of(&world, &key(), node).expect("a ground");
    rests.begin(&key(), ground, ask());
    change(&world);
    let now = Ground::of(&world, &key(), node).expect("a ground");
    rests.ask(&key(), &now).is_some()
}

fn named(name: impl Into<String>) -> Key {
    at(&key(), name.into())
}

#[test]
fn a_node_rests_while_nothing_changes() {
    assert!(rests_after(&node(json!({})), |_| {}));
    assert!(rests_after(&node(json!({})), |world| {
        world.services.note(named("another"), "8", plain());
        world.secrets.note(named("another"), "8", "8".to_owned());
        world.labelled.fetch_add(1, Ordering::Relaxed);
    }));
}

#[test]
fn every_object_of_a_node_ends_its_rest() {
    type Change = (&'static str, fn(&World));
    let changes: [Change; 9] = [
        ("set", |world| {
            let set = Set::read(&StatefulSet::default());
            world
                .sets
                .note(named(names::stateful_set("node")), "8", set);
        }),
        ("service", |world| {
            world
                .services
                .note(named(names::service("node")), "8", plain());
        }),
        ("config", |world| {
            world
                .configs
                .note(named(names::proxy_config("node")), "8", plain());
        }),
        ("policy", |world| {
            world
                .policies
                .note(named(names::network_policy("node")), "8", plain());
        }),
        ("certificate", |world| {
            let ordered = Ordered::read(&DynamicObject::new("any", &certificate_resource()));
            world
                .certificates
                .note(named(names::certificate("node")), "8", ordered);
        }),
        ("claim", |world| {
            let claim = Claim::read(&PersistentVolumeClaim::default());
            world
                .claims
                .note(named(names::own_claim("node")), "8", claim);
        }),
        ("pod", |world| {
            let pod = SeenPod::read(&Pod::default());
            world.pods.note(named(names::pod("node")), "8", pod);
        }),
        ("job", |world| {
            let job = SeenJob::read(&Job::default());
            world
                .jobs
                .note(named(names::bootstrap_job("node")), "8", job);
        }),
        ("secret", |world| {
            let secret = named(names::certificate("node"));
            world.secrets.note(secret, "8", "8".to_owned());
        }),
    ];
    for (what, change) in changes {
        assert!(!rests_after(&node(json!({})), change), "{what}");
    }
}

#[test]
fn an_imported_claim_and_a_persons_secret_end_the_rest() {
    let importing = json!({ "dataVolume": { "import": { "pvcName": "mine" } } });
    assert!(!rests_after(&node(importing), |world| {
        let claim = Claim::read(&PersistentVolumeClaim::default());
        world.claims.note(named("mine"), "8", claim);
    }));
    let serving = json!({ "sidecar": { "tls": { "secretName": "mine" } } });
    assert!(!rests_after(&node(serving), |world| {
        world.secrets.note(named("mine"), "8", "8".to_owned());
    }));
}

#[test]
fn a_node_that_finds_peers_by_label_is_looked_at_when_nodes_come_and_go() {
    let seeking = json!({ "peers": [{ "label": { "selector": { "chain": "c" } } }] });
    assert!(!rests_after(&node(seeking), |world| {
        world.labelled.fetch_add(1, Ordering::Relaxed);
    }));
}

#[test]
fn another_state_of_the_node_ends_its_rest() {
    let (world, rests) = (World::new(), Rests::default());
    let mut node = node(json!({}));
    let ground = Ground::of(&world, &key(), &node).expect("a ground");
    rests.begin(&key(), ground, ask());
    node.metadata.resource_version = Some("8".to_owned());
    let now = Ground::of(&world, &key(), &node).expect("a ground");
    assert!(rests.ask(&key(), &now).is_none());
}

#[test]
fn one_that_signs_never_rests() {
    let mut node = node(json!({}));
    let signing = json!({ "signingKey": { "secret": { "secretName": "key" } } });
    node.spec.validator = Some(serde_json::from_value(signing).expect("a validator"));
    assert!(Ground::of(&World::new(), &key(), &node).is_none());
}

#[tokio::test(start_paused = true)]
async fn after_a_while_a_node_is_looked_at_all_the_same() {
    let (world, rests, node) = (World::new(), Rests::default(), node(json!({})));
    let ground = || Ground::of(&world, &key(), &node).expect("a ground");
    rests.begin(&key(), ground(), ask());
    tokio::time::advance(REST - Duration::from_secs(1)).await;
    assert!(rests.ask(&key(), &ground()).is_some());
    tokio::time::advance(Duration::from_secs(1)).await;
    assert!(rests.ask(&key(), &ground()).is_none());
}
