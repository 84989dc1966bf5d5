//! Nodes can be made in every mode, and what they say of themselves can be waited for.

use k8s_openapi::api::core::v1::Pod;
use keelson_api::SeiNode;
use keelson_api::node_condition::{NodeCondition, NodeReason};
use keelson_api::node_status::NodePhase;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::json;

use crate::stage::place::Target;
use crate::stage::waiting::is_settled;
use crate::stage::world::{Deed, World};
use crate::stage::{Place, Stage};

#[tokio::test]
async fn nodes_of_every_mode_are_admitted() {
    let scene = Stage::shared().await.scene("modes").await;
    scene.full_node("full", json!({})).await;
    scene.bootstrapped("bootstrapped", 10, json!({})).await;
    scene.archive("archive", json!({})).await;
    scene.replayer("replayer", 10).await;
    scene.validator("validator", json!({})).await;
    let nodes = scene.api::<SeiNode>();
    let made = nodes.list(&ListParams::default()).await;
    assert_eq!(made.expect("a list").items.len(), 5);
}

#[tokio::test]
async fn what_a_node_says_of_itself_can_be_waited_for() {
    let scene = Stage::shared().await.scene("said").await;
    scene.full_node("n", json!({})).await;
    let condition = json!({
        "type": "Reconciling", "status": "False", "reason": "Settled", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    });
    let say = async |generation: i64| {
        let status = json!({
            "phase": "Running", "observedGeneration": generation, "conditions": [condition],
        });
        let patch = Patch::Merge(json!({ "status": status }));
        let nodes = scene.api::<SeiNode>();
        let said = nodes
            .patch_status("n", &PatchParams::default(), &patch)
            .await;
        said.expect("a status");
    };
    say(1).await;
    scene.until_phase("n", NodePhase::Running).await;
    scene.settled("n").await;
    let (reconciling, settled) = (NodeCondition::Reconciling, NodeReason::Settled);
    scene
        .until_condition("n", reconciling, false, settled)
        .await;

    let edit = json!({ "image": "registry.example/seid:v7.0.0" });
    let edited = scene.edit("n", edit).await;
    assert!(!is_settled(&edited), "that was said of an older spec");
    let (settled, ()) = tokio::join!(scene.settled("n"), say(2));
    assert!(is_settled(&settled));
}

#[test]
fn only_the_two_names_of_a_certificate_lead_to_a_node() {
    let target = |health| {
        let node = Place::new("chain", "n");
        Some(Target { node, health })
    };
    assert_eq!(
        Target::read("n-0.n.chain.svc.cluster.local:8443"),
        target(false)
    );
    assert_eq!(Target::read("n.chain.svc.cluster.local"), target(false));
    assert_eq!(
        Target::read("n-0.n.chain.svc.cluster.local:8444"),
        target(true)
    );
    for other in [
        "n-1.n.chain.svc.cluster.local",
        "n.chain",
        "127.0.0.1:1",
        "x.n-0.n.chain.svc.cluster.local",
    ] {
        assert_eq!(Target::read(other), None, "{other}");
    }
}

#[test]
fn a_world_that_is_paused_does_nothing_and_goes_on_where_it_was() {
    let claim = || {
        let claim = json!({ "metadata": { "name": "c", "namespace": "x", "uid": "1" } });
        serde_json::from_value(claim).expect("a claim")
    };
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {
            "name": "n-0", "namespace": "x", "uid": "2", "labels": { "sei.io/node": "n" },
        },
        "spec": {
            "containers": [],
            "volumes": [{ "name": "data", "persistentVolumeClaim": { "claimName": "c" } }],
        },
    }))
    .expect("a pod");
    let mut world = World::default();
    world.script.paused = true;
    assert_eq!(world.seen_claim(claim()), []);
    assert_eq!(world.seen_pod(pod), []);
    world.script.paused = false;
    let deeds = world.consider_all();
    assert!(
        matches!(deeds.as_slice(), [Deed::Provide { .. }, Deed::Bind { .. }]),
        "{deeds:?}"
    );
    assert_eq!(world.consider_all(), [], "nothing is done twice");
    assert_eq!(world.seen_claim(claim()), []);
}
