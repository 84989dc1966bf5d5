//! A new certificate from the same source: no plan, no pod, and the status follows the handshake.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::events::v1::Event;
use keelson_api::SeiNode;
use keelson_api::node_condition::{NodeCondition, NodeReason};
use keelson_operator::node::controller::Controller;
use keelson_operator::node::loading::Loading;
use keelson_operator::node::world::Scope;
use keelson_render::Platform;
use keelson_testbed::Authority;
use keelson_tls::Pair;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};

use crate::manager;
use crate::operator::{Operator, settings};
use crate::stage::objects::{original_proxy, tls_by_issuer, tls_by_secret};
use crate::stage::{Scene, Stage, platform};
use crate::story::{Cost, follow, poke, said};

fn fingerprint(node: &SeiNode) -> String {
    let status = node.status.as_ref().expect("a status");
    let served = status.current_sidecar_tls.as_ref().expect("TLS");
    served.fingerprint.clone().expect("a fingerprint")
}

/// Has cert-manager renew the node's certificate, as its own command does.
async fn renew(scene: &Scene) {
    let name = "node-sidecar-tls";
    let certificate = manager::certificate(scene, name).await.expect("an order");
    let mut conditions = certificate.data["status"]["conditions"].clone();
    let now = jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string();
    if let Value::Array(conditions) = &mut conditions {
        conditions.push(json!({
            "type": "Issuing", "status": "True", "reason": "ManuallyTriggered",
            "message": "", "lastTransitionTime": now,
        }));
    }
    let patch = Patch::Merge(json!({ "status": { "conditions": conditions } }));
    let certificates = manager::of(scene, "Certificate");
    let patched = certificates
        .patch_status(name, &PatchParams::default(), &patch)
        .await;
    patched.expect("a renewal");
}

/// Deletes the Secret, which cert-manager then has issued anew.
async fn lose(scene: &Scene) {
    scene.delete::<Secret>("node-sidecar-tls").await;
}

async fn renewal_costs_nothing(name: &str, platform: Platform, renew: impl AsyncFn(&Scene)) {
    let scene = Stage::shared().await.scene(name).await;
    let _operator = Operator::start(&scene, platform).await;
    scene.issuer("x").await;
    scene
        .full_node("node", json!({ "sidecar": tls_by_issuer("x") }))
        .await;
    let node = scene.settled("node").await;
    let (before, first) = (scene.seen("node"), fingerprint(&node));
    renew(&scene).await;
    let renewed = |node: &SeiNode| {
        let ready = said(node, NodeCondition::SidecarTlsSecretReady).1 == "TLSSecretReady";
        ready && fingerprint(node) != first
    };
    let story = follow(&scene, &node, before, renewed).await;
    assert!(story.plans.is_empty(), "{:?}", story.plans);
    assert_eq!(story.cost, Cost::NOTHING);
    let served = scene.serving("node");
    assert_eq!(served, Some(("required", Some(fingerprint(&story.node)))));
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_renewed_without_a_plan_or_another_pod() {
    renewal_costs_nothing("renewed", platform(), renew).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_renewed_without_a_plan_or_another_pod_under_the_original_proxy() {
    renewal_costs_nothing("renewed-original", original_proxy(), renew).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_is_lost_is_issued_again_without_a_plan_or_another_pod() {
    renewal_costs_nothing("lost", platform(), lose).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_is_not_served_yet_is_said_at_once_and_taken_back_when_it_is() {
    let scene = Stage::shared().await.scene("not-loaded").await;
    let _operator = Operator::start(&scene, platform()).await;
    let authority = Authority::new("given").expect("an authority");
    scene.tls_secret("given", "node", &authority).await;
    scene
        .full_node("node", json!({ "sidecar": tls_by_secret("given") }))
        .await;
    let node = scene.settled("node").await;
    let (before, first) = (scene.seen("node"), fingerprint(&node));
    scene.script("node", |script| script.refresh = Duration::from_secs(3600));
    scene.pause("node");
    scene.tls_secret("given", "node", &authority).await;
    let told = (
        NodeCondition::SidecarTlsSecretReady,
        NodeReason::CertificateNotLoaded,
    );
    let told = scene.until_condition("node", told.0, true, told.1).await;
    let (_, _, message) = said(&told, NodeCondition::SidecarTlsSecretReady);
    assert_eq!(
        message,
        "the new certificate is there and is not served yet"
    );
    assert_eq!(fingerprint(&told), first);
    assert_eq!(told.status.as_ref().expect("a status").plan, None);
    let (status, _, _) = said(&told, NodeCondition::SidecarReady);
    assert_eq!(status, "True");

    scene.resume("node");
    scene.touch("node-0").await;
    let renewed = |node: &SeiNode| {
        let ready = said(node, NodeCondition::SidecarTlsSecretReady).1 == "TLSSecretReady";
        ready && fingerprint(node) != first
    };
    let story = follow(&scene, &told, before, renewed).await;
    assert!(story.plans.is_empty(), "{:?}", story.plans);
    assert_eq!(story.cost, Cost::NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_is_not_served_for_long_is_told_in_an_event_once() {
    let scene = Stage::shared().await.scene("not-loaded-long").await;
    let settings = settings(platform(), scene.namespace());
    let (client, scope) = (
        scene.operator_client(),
        Scope::Namespace(scene.namespace().to_owned()),
    );
    // Five minutes are a second here.
    let patience = Duration::from_secs(1);
    let set = |it: &mut Controller| it.loading = Loading::patient_for(patience);
    let _operator = Operator::within(&scene, client, settings, scope, set).await;
    let authority = Authority::new("given").expect("an authority");
    scene.tls_secret("given", "node", &authority).await;
    scene
        .full_node("node", json!({ "sidecar": tls_by_secret("given") }))
        .await;
    let first = fingerprint(&scene.settled("node").await);
    // One that is served in time is not told.
    scene.tls_secret("given", "node", &authority).await;
    let renewed = |node: &SeiNode, _: &_| fingerprint(node) != first;
    scene.until_status("a renewal", "node", renewed).await;

    scene.script("node", |script| script.refresh = Duration::from_secs(3600));
    scene.pause("node");
    scene.tls_secret("given", "node", &authority).await;
    let secret = scene.api::<Secret>().get("given").await.expect("a Secret");
    let data = secret.data.expect("data");
    let pair = Pair::from_pem(&data["tls.crt"].0, &data["tls.key"].0).expect("a pair");
    let leaf = pair.leaf().fingerprint;
    let note = format!(
        "the certificate {leaf} was renewed and is not served after five minutes: look at the proxy of the pod"
    );
    let reason = "CertificateNotLoaded";
    assert_eq!(scene.events("node", reason).await, [note]);
    // Looks that find it so again say nothing: what is said again is counted.
    for look in ["one", "another", "a third"] {
        let before = scene.seen("node").requests;
        poke(&scene, "node", look).await;
        scene
            .until_seen("another look", "node", |seen| seen.requests > before)
            .await;
    }
    let events = scene.api::<Event>().list(&ListParams::default()).await;
    let events = events.expect("events").items.into_iter();
    let events = events.filter(|it| it.reason.as_deref() == Some(reason));
    let counts: Vec<_> = events.map(|it| it.series.map(|it| it.count)).collect();
    assert_eq!(counts, [None]);
}
