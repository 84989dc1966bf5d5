//! What the platform changes for all nodes: one node after the other, put back where it does not
//! start, or reported and left for the next roll.

use k8s_openapi::api::core::v1::Pod;
use keelson_api::node_condition::{NodeCondition, NodeReason};
use keelson_operator::node::points::Points;
use keelson_render::Platform;
use keelson_wire::TaskType::MarkReady;
use serde_json::json;

use crate::mark::{Change, Mark, annotate, look_again, opened, pod_of, running, said};
use crate::operator::{Operator, settings};
use crate::stage::{Scene, platform};

const OLD: &str = "registry.example/keelson-sidecar:1";

fn with_sidecar(image: &str) -> Platform {
    let mut platform = platform();
    image.clone_into(&mut platform.sidecar.image);
    platform
}

/// The image a pod asks for its sidecar.
fn sidecar(pod: &Pod) -> Option<&str> {
    let spec = pod.spec.as_ref()?;
    let mut all = spec.init_containers.iter().flatten();
    all.find(|it| it.name == "sei-sidecar")?.image.as_deref()
}

/// Which of these nodes run another sidecar than the first, or are about to.
async fn touched(scene: &Scene, nodes: &[&str]) -> Vec<String> {
    let mut touched = Vec::new();
    for node in nodes {
        if sidecar(&pod_of(scene, node).await) != Some(OLD) {
            touched.push((*node).to_owned());
        }
    }
    touched
}

/// Waits until it is one of these nodes' turn, and says whose.
async fn next_turn<'a>(scene: &Scene, nodes: &[&'a str]) -> &'a str {
    let each = nodes.iter().map(|node| {
        let turn = async move {
            let pod = format!("{node}-0");
            let changed = |pod: &Pod| sidecar(pod) != Some(OLD);
            scene.until_pod("its turn", &pod, changed).await;
            *node
        };
        Box::pin(turn)
    });
    futures::future::select_all(each).await.0
}

#[tokio::test(flavor = "multi_thread")]
async fn another_image_of_the_platform_goes_from_node_to_node_in_place() {
    let (scene, operator) = opened("platform-image").await;
    let nodes = ["a", "b", "c"];
    for node in nodes {
        scene.full_node(node, json!({})).await;
    }
    for node in nodes {
        scene.settled(node).await;
    }
    drop(operator);
    let mut marks = Vec::new();
    for node in nodes {
        marks.push(Mark::of(&scene, node).await);
        // Whoever's turn it is is held there.
        scene.pause(node);
    }
    let image = "registry.example/keelson-sidecar:2";
    let _operator = Operator::start(&scene, with_sidecar(image)).await;
    let mut left = nodes.to_vec();
    while !left.is_empty() {
        let turn = next_turn(&scene, &left).await;
        left.retain(|node| *node != turn);
        // While it is not well, no other begins, however often it is looked at.
        for node in &left {
            look_again(&scene, node).await;
        }
        assert_eq!(touched(&scene, &left).await, Vec::<String>::new());
        scene.resume(turn);
    }
    for (node, mark) in nodes.into_iter().zip(&marks) {
        scene
            .until_status("the new image", node, |_, status| {
                let runs = status.current_sidecar_image.as_deref() == Some(image);
                runs && status.plan.is_none()
            })
            .await;
        let change = mark.since(&scene).await;
        assert_eq!(change, Change::in_place("sei-sidecar", &[MarkReady]));
    }
}

/// Which of two nodes says first that it is stalled.
async fn stalled_first<'a>(scene: &Scene, [a, b]: [&'a str; 2]) -> &'a str {
    let (stalled, reason) = (NodeCondition::Stalled, NodeReason::ImageNotStarting);
    tokio::select! {
        _ = scene.until_condition(a, stalled, true, reason) => a,
        _ = scene.until_condition(b, stalled, true, reason) => b,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_of_the_platform_that_does_not_start_is_put_back_and_stops_at_the_first_node() {
    let (scene, operator) = opened("platform-broken").await;
    let nodes = ["a", "b"];
    for node in nodes {
        scene.full_node(node, json!({})).await;
    }
    for node in nodes {
        scene.settled(node).await;
    }
    drop(operator);
    let mut broken = platform();
    "registry.example/keelson-proxy:broken".clone_into(&mut broken.proxy.program.image);
    let marks = [Mark::of(&scene, "a").await, Mark::of(&scene, "b").await];
    let operator = Operator::start(&scene, broken.clone()).await;
    let first = Box::pin(stalled_first(&scene, nodes)).await;
    let other = if first == "a" { "b" } else { "a" };
    let (stalled, reason) = (NodeCondition::Stalled, NodeReason::ImageNotStarting);
    let node = scene.until_condition(first, stalled, true, reason).await;
    let message = said(&node, stalled).message;
    assert!(message.contains("keelson-proxy:broken"), "{message}");
    assert!(
        message.contains("keelson-proxy:1 was put back"),
        "{message}"
    );
    let node = scene.settled(first).await;
    assert_eq!(said(&node, stalled).reason, reason.as_str());
    look_again(&scene, other).await;
    let touched = if first == "a" { &marks[0] } else { &marks[1] };
    let untouched = if first == "a" { &marks[1] } else { &marks[0] };
    let change = touched.since(&scene).await;
    assert_eq!((change.cycles, change.process_starts), (0, 0), "{change:?}");
    assert_eq!(untouched.since(&scene).await, Change::hot(&[]));
    // Another operator process knows it too.
    drop(operator);
    let operator = Operator::start(&scene, broken).await;
    look_again(&scene, other).await;
    look_again(&scene, first).await;
    assert_eq!(untouched.since(&scene).await, Change::hot(&[]));
    // Corrected, it goes on.
    drop(operator);
    let mut good = platform();
    "registry.example/keelson-proxy:2".clone_into(&mut good.proxy.program.image);
    let _operator = Operator::start(&scene, good).await;
    for node in nodes {
        scene
            .until_status("the corrected image", node, |_, status| {
                let image = status.current_proxy_image.as_deref();
                image == Some("registry.example/keelson-proxy:2") && status.plan.is_none()
            })
            .await;
        let reason = NodeReason::NotStalled;
        scene.until_condition(node, stalled, false, reason).await;
    }
    let change = untouched.since(&scene).await;
    assert_eq!(change, Change::in_place("kube-rbac-proxy", &[MarkReady]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sidecar_image_a_person_asks_for_is_put_back_too_and_tried_again_when_asked() {
    let (scene, _operator) = running("sidecar-broken", json!({})).await;
    let mark = Mark::of(&scene, "node").await;
    let broken = "registry.example/keelson-sidecar:broken";
    scene
        .edit("node", json!({ "sidecar": { "image": broken } }))
        .await;
    let (stalled, reason) = (NodeCondition::Stalled, NodeReason::ImageNotStarting);
    scene.until_condition("node", stalled, true, reason).await;
    let node = scene.settled("node").await;
    let status = node.status.expect("a status");
    assert_eq!(status.current_sidecar_image.as_deref(), Some(OLD));
    assert_eq!(status.put_back.len(), 1);
    annotate(&scene, "node", "sei.io/retry", "1").await;
    scene
        .until_pod("another attempt", "node-0", |pod| {
            sidecar(pod) == Some(broken)
        })
        .await;
    let change = mark
        .edit(&scene, json!({ "sidecar": { "image": null } }))
        .await;
    assert_eq!((change.cycles, change.process_starts), (0, 0), "{change:?}");
    let node = scene.settled("node").await;
    assert_eq!(said(&node, stalled).status, "False");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_of_an_older_operator_is_reported_and_rides_on_the_next_roll() {
    // One that asks for a sidecar image of its own is no exception.
    let asks = json!({ "sidecar": { "image": "registry.example/keelson-sidecar:7" } });
    let (scene, operator) = running("outdated", asks).await;
    drop(operator);
    let mark = Mark::of(&scene, "node").await;
    let mut newer = platform();
    newer.termination_grace_seconds += 60;
    let _operator = Operator::start(&scene, newer.clone()).await;
    let outdated = NodeCondition::TemplateOutdated;
    let reason = NodeReason::OperatorUpgraded;
    scene.until_condition("node", outdated, true, reason).await;
    look_again(&scene, "node").await;
    assert_eq!(mark.since(&scene).await, Change::hot(&[]));
    let change = mark
        .edit(&scene, json!({ "image": "registry.example/seid:v6.1.0" }))
        .await;
    assert_eq!(change, Change::rolled(&[MarkReady]));
    let spec = pod_of(&scene, "node").await.spec.expect("a spec");
    let grace = spec.termination_grace_period_seconds;
    assert_eq!(grace, Some(newer.termination_grace_seconds));
    let reason = NodeReason::TemplateCurrent;
    scene.until_condition("node", outdated, false, reason).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_platform_that_rolls_outdated_pods_rolls_them_once() {
    let (scene, operator) = running("outdated-rolls", json!({})).await;
    drop(operator);
    let mark = Mark::of(&scene, "node").await;
    let mut newer = platform();
    newer.termination_grace_seconds += 60;
    let mut settings = settings(newer, scene.namespace());
    settings.rolls_outdated = true;
    let client = scene.operator_client();
    let _operator = Operator::with(&scene, client, settings, Points::default()).await;
    scene
        .until_seen("another pod", "node", |seen| seen.created.len() == 2)
        .await;
    scene
        .until_status("the end of the roll", "node", |_, status| {
            status.plan.is_none()
        })
        .await;
    look_again(&scene, "node").await;
    assert_eq!(mark.since(&scene).await, Change::rolled(&[MarkReady]));
}
