//! What is known is old: watches lag and somebody else wrote in between. No pod goes twice.

use keelson_api::SeiNode;
use keelson_testbed::faults::{Fault, On, Pause, Rule, Verb};
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::operator::Operator;
use crate::stage::{Scene, Stage, platform};

/// From now on nothing new is heard of objects of this kind.
async fn deafen(scene: &Scene, resource: &'static str) -> Rule {
    let watches = On::watches().resource(resource);
    let held = Fault::SlowRequest(Pause::UntilCleared);
    let rule = scene.faults().inject(held, watches);
    assert!(scene.faults().cut_watches() > 0);
    rule.hit(1).await.expect("a watch that is opened again");
    rule
}

async fn annotate(scene: &Scene, value: usize) {
    let patch = json!({ "metadata": { "annotations": { "test/nudge": value.to_string() } } });
    let nodes = scene.api::<SeiNode>();
    let params = PatchParams::default();
    let patched = nodes.patch("node", &params, &Patch::Merge(patch)).await;
    patched.expect("an annotation");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_is_not_deleted_for_its_predecessor_that_is_still_known() {
    let scene = Stage::shared().await.scene("stale-pods").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene.full_node("node", json!({})).await;
    scene.settled("node").await;
    let deaf = deafen(&scene, "pods").await;
    scene.faults().forget();
    let edit = json!({ "image": "registry.example/seid:v6.1.0" });
    scene.edit("node", edit).await;
    scene
        .until_seen("a new pod", "node", |seen| seen.created.len() == 2)
        .await;
    // The operator still knows the old pod, and is made to look again and again.
    let is_deletion =
        |call: &keelson_testbed::faults::Call| call.verb == Verb::Delete && call.resource == "pods";
    let deletions = || {
        let mut calls = scene.faults().calls();
        calls.retain(is_deletion);
        calls
    };
    for round in 0..3 {
        annotate(&scene, round).await;
        let refused = move |call: &keelson_testbed::faults::Call| {
            is_deletion(call) && call.code.is_some_and(|code| code >= 400)
        };
        let tried = scene.faults().called("a refused deletion", refused);
        tried.await.expect("an attempt to delete what is gone");
    }
    let made = deletions().iter().filter(|it| it.code == Some(200)).count();
    assert_eq!(made, 1, "{:?}", deletions());
    deaf.clear();
    scene.settled("node").await;
    assert_eq!(scene.seen("node").deleted.len(), 1);
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_somebody_else_changed_is_not_overwritten_and_no_pod_goes_twice() {
    let scene = Stage::shared().await.scene("stale-node").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene.full_node("node", json!({})).await;
    scene.settled("node").await;
    // The deletion waits at the door until the test has written.
    let deletions = On::verb(Verb::Delete).resource("pods");
    let held = Fault::SlowRequest(Pause::UntilCleared);
    let door = scene.faults().inject(held, deletions.next(1));
    let edit = json!({ "image": "registry.example/seid:v6.1.0" });
    scene.edit("node", edit).await;
    door.hit(1).await.expect("a deletion");
    let deaf = deafen(&scene, "seinodes").await;
    annotate(&scene, 1).await;
    scene.faults().forget();
    door.clear();
    let conflict = |call: &keelson_testbed::faults::Call| {
        call.subresource.as_deref() == Some("status") && call.code == Some(409)
    };
    let refused = scene.faults().called("a refused write", conflict);
    refused.await.expect("a write on what is old");
    scene
        .until_seen("a new pod", "node", |seen| seen.created.len() == 2)
        .await;
    deaf.clear();
    let node = scene.settled("node").await;
    let annotations = node.metadata.annotations.unwrap_or_default();
    assert_eq!(annotations.get("test/nudge").map(String::as_str), Some("1"));
    assert_eq!(scene.seen("node").deleted.len(), 1);
    assert_eq!(scene.violations(), Vec::<String>::new());
}
