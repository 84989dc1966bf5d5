//! A StatefulSet somebody scaled, changed or deleted is put right: the pod that stayed is not cycled,
//! and a second pod, which would have the same keys, does not live on.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use keelson_api::node_condition::{NodeCondition, NodeReason};
use keelson_wire::TaskType::MarkReady;
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::mark::{Change, Mark, look_again, opened, running};
use crate::operator::Operator;
use crate::stage::{Scene, platform};

async fn patch(scene: &Scene, spec: Value) {
    let (how, patch) = (
        PatchParams::default(),
        Patch::Merge(json!({ "spec": spec })),
    );
    let patched = scene.api::<StatefulSet>().patch("node", &how, &patch).await;
    patched.expect("a patch");
}

/// Waits until the StatefulSet has one pod, replaced by the operator alone.
async fn until_mended(scene: &Scene) {
    let mended = |set: Option<&StatefulSet>| {
        let spec = set.and_then(|set| set.spec.as_ref());
        spec.is_some_and(|spec| {
            let strategy = spec.update_strategy.as_ref();
            let on_delete = strategy
                .filter(|it| it.rolling_update.is_none())
                .and_then(|it| it.type_.as_deref());
            spec.replicas == Some(1) && on_delete == Some("OnDelete")
        })
    };
    scene.until_object("its repair", "node", mended).await;
}

/// Waits until the second pod is gone, or going.
async fn until_second_pod_goes(scene: &Scene) {
    let goes = |pod: Option<&Pod>| pod.is_none_or(|it| it.metadata.deletion_timestamp.is_some());
    scene.until_object("its end", "node-1", goes).await;
}

async fn until_second_pod(scene: &Scene) {
    let is_there = |pod: &Pod| pod.metadata.deletion_timestamp.is_none();
    scene.until_pod("a second pod", "node-1", is_there).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stateful_set_scaled_to_nothing_gets_its_pod_back() {
    let (scene, _operator) = running("scaled-down", json!({})).await;
    let mark = Mark::of(&scene, "node").await;
    patch(&scene, json!({ "replicas": 0 })).await;
    until_mended(&scene).await;
    let notes = scene.events("node", "WorkloadMended").await;
    let note = "StatefulSet node was changed by hand and has one pod again";
    assert_eq!(notes, [note]);
    // Its controller may have ended the pod before it was told otherwise.
    let (ready, reason) = (NodeCondition::Ready, NodeReason::NodeReady);
    scene.until_condition("node", ready, true, reason).await;
    scene.settled("node").await;
    let change = mark.since(&scene).await;
    assert!(change.cycles <= 1, "{change:?}");
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stateful_set_scaled_to_two_keeps_its_pod_and_no_second_one() {
    let (scene, _operator) = running("scaled-up", json!({})).await;
    let mark = Mark::of(&scene, "node").await;
    patch(&scene, json!({ "replicas": 2 })).await;
    until_mended(&scene).await;
    until_second_pod_goes(&scene).await;
    scene.settled("node").await;
    let change = mark.since(&scene).await;
    assert!(change.same_pod && change.restarts.is_empty(), "{change:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_pod_is_ended_though_the_first_one_is_not_ready() {
    let (scene, operator) = running("second", json!({})).await;
    let (ready, reason) = (NodeCondition::Ready, NodeReason::NodeReady);
    scene.until_condition("node", ready, true, reason).await;
    drop(operator);
    let mark = Mark::of(&scene, "node").await;
    patch(&scene, json!({ "replicas": 2 })).await;
    until_second_pod(&scene).await;
    // Now its controller waits for the first pod before it ends the second.
    scene.pause("node");
    let conditions = json!([{ "type": "Ready", "status": "False" }]);
    let status = Patch::Strategic(json!({ "status": { "conditions": conditions } }));
    let pods = scene.api::<Pod>();
    let how = PatchParams::default();
    let patched = pods.patch_status("node-0", &how, &status).await;
    patched.expect("a status");
    let _operator = Operator::start(&scene, platform()).await;
    until_mended(&scene).await;
    until_second_pod_goes(&scene).await;
    scene.resume("node");
    let gone = |pod: Option<&Pod>| pod.is_none();
    scene.until_object("its end", "node-1", gone).await;
    let change = mark.since(&scene).await;
    assert!(change.same_pod && change.restarts.is_empty(), "{change:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_pod_is_ended_whatever_a_plan_waits_for() {
    let (scene, _operator) = opened("second-waiting").await;
    scene.node("node", "validator", json!({}), json!({})).await;
    scene.settled("node").await;
    let mark = Mark::of(&scene, "node").await;
    let key = |name: &str| json!({ "secret": { "secretName": name } });
    let keys = json!({ "signingKey": key("missing"), "nodeKey": key("missing-too") });
    scene.edit("node", json!({ "validator": keys })).await;
    let waits = (
        NodeCondition::SigningKeyReady,
        NodeReason::SigningKeyNotReady,
    );
    scene.until_condition("node", waits.0, false, waits.1).await;
    patch(&scene, json!({ "replicas": 2 })).await;
    until_mended(&scene).await;
    until_second_pod_goes(&scene).await;
    let change = mark.since(&scene).await;
    assert!(change.same_pod && change.restarts.is_empty(), "{change:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strategy_that_would_replace_pods_by_itself_is_taken_back() {
    let (scene, _operator) = running("strategy", json!({})).await;
    let mark = Mark::of(&scene, "node").await;
    patch(
        &scene,
        json!({ "updateStrategy": { "type": "RollingUpdate" } }),
    )
    .await;
    until_mended(&scene).await;
    look_again(&scene, "node").await;
    assert_eq!(mark.since(&scene).await, Change::hot(&[]));
    let edit = json!({ "image": "registry.example/seid:v6.1.0" });
    let change = mark.edit(&scene, edit).await;
    assert_eq!(change, Change::rolled(&[MarkReady]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stateful_set_that_is_deleted_comes_back_and_takes_the_pod_it_left() {
    let (scene, _operator) = running("orphaned", json!({})).await;
    let mark = Mark::of(&scene, "node").await;
    let sets = scene.api::<StatefulSet>();
    let first = sets.get("node").await.expect("a StatefulSet").metadata.uid;
    let orphan = DeleteParams {
        propagation_policy: Some(kube::api::PropagationPolicy::Orphan),
        ..DeleteParams::default()
    };
    sets.delete("node", &orphan).await.expect("a deletion");
    let another = |set: Option<&StatefulSet>| set.is_some_and(|it| it.metadata.uid != first);
    let set = scene.until_object("its return", "node", another).await;
    let uid = set.and_then(|set| set.metadata.uid);
    let is_owned = |pod: &Pod| {
        let mut owners = pod.metadata.owner_references.iter().flatten();
        owners.any(|owner| Some(&owner.uid) == uid.as_ref())
    };
    scene.until_pod("its owner", "node-0", is_owned).await;
    scene.settled("node").await;
    let change = mark.since(&scene).await;
    assert!(change.same_pod && change.restarts.is_empty(), "{change:?}");
    // With its pod, as most are deleted, it comes back too.
    scene.delete::<StatefulSet>("node").await;
    let another = |set: Option<&StatefulSet>| {
        set.is_some_and(|it| it.metadata.uid != uid && it.metadata.uid.is_some())
    };
    scene.until_object("its return", "node", another).await;
    let (ready, reason) = (NodeCondition::Ready, NodeReason::NodeReady);
    scene.until_condition("node", ready, true, reason).await;
    scene.settled("node").await;
    assert_eq!(scene.violations(), Vec::<String>::new());
}
