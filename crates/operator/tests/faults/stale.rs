//! What is known is old: watches lag and somebody else wrote in between. No pod goes twice.

use futures::FutureExt;
use keelson_api::SeiNode;
use keelson_api::node_condition::{NodeCondition, NodeReason};
use keelson_operator::node::points::{Point, Points};
use keelson_plan::Task;
use keelson_testbed::faults::{Fault, On, Pause, Rule, Verb};
use keelson_wire::TaskType;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

use crate::operator::{Operator, settings};
use crate::stage::objects::tls_by_issuer;
use crate::stage::{Scene, Stage, platform};
use crate::toll::Toll;

/// Much longer than an operator that knows everything takes to look at a node.
const A_LOOK: Duration = Duration::from_secs(2);

/// From now on nothing new is heard of objects of these kinds.
async fn deafen<const N: usize>(scene: &Scene, resources: [&'static str; N]) -> [Rule; N] {
    let rules = resources.map(|resource| {
        let held = Fault::SlowRequest(Pause::UntilCleared);
        let watches = On::watches().resource(resource);
        scene.faults().inject(held, watches)
    });
    assert!(scene.faults().cut_watches() > 0);
    for rule in &rules {
        rule.hit(1).await.expect("a watch that is opened again");
    }
    rules
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
    // The pod does not change any more, and the operator knows it as it is.
    scene
        .until_condition("node", NodeCondition::Ready, true, NodeReason::NodeReady)
        .await;
    let [deaf] = deafen(&scene, ["pods"]).await;
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
    let [deaf] = deafen(&scene, ["seinodes"]).await;
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

/// Has another operator write the template, say that it did, and get no further.
async fn another_writes_the_template(scene: &Scene) {
    let written = Arc::new(Notify::new());
    let bell = Arc::clone(&written);
    let points = Points::guarded(move |_, point| match point {
        Point::AfterStep(step) if step.task == Task::ApplyStatefulSet => {
            bell.notify_one();
            pending().boxed()
        }
        _ => async {}.boxed(),
    });
    let settings = settings(platform(), scene.namespace());
    let another = Operator::with(scene, scene.client(), settings, points).await;
    let edit = json!({ "image": "registry.example/seid:v6.1.0" });
    scene.edit("node", edit).await;
    written.notified().await;
    drop(another);
    let mut node = scene.raw_node("node").await;
    let tasks = node["status"]["plan"]["tasks"].as_array_mut();
    for task in tasks.expect("tasks") {
        task["status"] = json!("Complete");
        if task["type"] == "apply-statefulset" {
            break;
        }
    }
    let plan = json!({ "status": { "plan": node["status"]["plan"] } });
    let nodes = scene.api::<SeiNode>();
    let (params, patch) = (PatchParams::default(), Patch::Merge(plan));
    let said = nodes.patch_status("node", &params, &patch).await;
    said.expect("a plan whose template is written");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_is_not_deleted_before_the_template_of_its_successor_is_known() {
    let scene = Stage::shared().await.scene("stale-sets").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene.full_node("node", json!({})).await;
    scene.settled("node").await;
    let kinds = ["statefulsets", "seinodes"];
    let [deaf_to_sets, deaf_to_nodes] = deafen(&scene, kinds).await;
    another_writes_the_template(&scene).await;
    // What the other said comes in steps; who acts on the first of them writes the template too.
    let writes = On::verb(Verb::Patch).resource("statefulsets");
    let mute = scene.faults().inject(Fault::Unavailable, writes);
    deaf_to_nodes.clear();
    scene
        .until_status("a wait for the template", "node", |_, status| {
            let mut tasks = status.plan.iter().flat_map(|plan| &plan.tasks);
            tasks.any(|task| {
                task.waiting_on
                    .as_deref()
                    .is_some_and(|it| it.contains("template"))
            })
        })
        .await;
    assert_eq!(scene.seen("node").deleted.len(), 0);
    mute.clear();
    deaf_to_sets.clear();
    scene.settled("node").await;
    assert_eq!(scene.seen("node").deleted.len(), 1);
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_that_does_not_know_the_certificates_yet_takes_no_node_to_lack_its_own() {
    let scene = Stage::shared().await.scene("unknown-certificates").await;
    scene.issuer("issuer").await;
    {
        let _operator = Operator::start(&scene, platform()).await;
        let tls = json!({ "sidecar": tls_by_issuer("issuer") });
        scene.full_node("node", tls).await;
        scene
            .until_condition("node", NodeCondition::Ready, true, NodeReason::NodeReady)
            .await;
        scene.settled("node").await;
    }
    let before = Toll::of(&scene.seen("node"));
    let lists = On::verb(Verb::List).resource("certificates");
    let held = Fault::SlowRequest(Pause::UntilCleared);
    let door = scene.faults().inject(held, lists);
    scene.faults().forget();
    let _operator = Operator::start(&scene, platform()).await;
    door.hit(1).await.expect("a list of Certificates");
    let is_status = |call: &keelson_testbed::faults::Call| {
        call.verb.writes() && call.subresource.as_deref() == Some("status")
    };
    let written = scene.faults().called("a write", is_status);
    let written = timeout(A_LOOK, written).await;
    assert!(written.is_err(), "{:?}", scene.faults().writes());
    // What is asked for meanwhile is done by one plan, the order taken back included.
    scene
        .edit("node", json!({ "sidecar": { "tls": null } }))
        .await;
    door.clear();
    scene.settled("node").await;
    let taken = Toll::of(&scene.seen("node")).since(&before);
    let once = Toll {
        tasks: [(TaskType::MarkReady, 1)].into(),
        ..Toll::default()
    };
    assert_eq!(taken, once);
    assert_eq!(scene.violations(), Vec::<String>::new());
}
