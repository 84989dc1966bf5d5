//! Secrets somebody provides: what is wrong with one is said, nothing is cycled for it, and a good one
//! is taken as soon as it is there.

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use keelson_api::SeiNode;
use keelson_api::node_condition::{NodeCondition, NodeReason};
use keelson_api::plan::TaskPlan;
use keelson_render::names;
use keelson_testbed::Authority;
use keelson_testbed::faults::{Fault, On, Verb};
use serde_json::json;

use crate::operator::Operator;
use crate::stage::objects::{self, original_proxy, tls_by_secret};
use crate::stage::{Scene, Stage, platform};
use crate::story::{Cost, poke, said, tasks, tell};

const READY: NodeCondition = NodeCondition::SidecarTlsSecretReady;

/// A certificate for other names, in a Secret for the node.
fn secret_for(names: &[&str], authority: &Authority) -> Secret {
    let identity = authority.server(names).expect("a certificate");
    objects::tls_secret("given", &identity, authority)
}

fn message(node: &SeiNode) -> String {
    said(node, READY).2
}

async fn until(scene: &Scene, reason: NodeReason) -> SeiNode {
    scene.until_condition("node", READY, false, reason).await
}

/// The plan, when it waits for the Secret.
async fn until_waiting(scene: &Scene) -> TaskPlan {
    let waits = scene.until_status("a wait", "node", |_, status| {
        let plan = status.plan.as_ref();
        let at = plan.and_then(|it| it.tasks.iter().find(|it| it.waiting_on.is_some()));
        at.is_some_and(|it| it.type_.as_str() == "wait-for-sidecar-tls-secret")
    });
    let status = waits.await.status.expect("a status");
    status.plan.expect("a plan")
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_wrong_with_a_secret_is_said_and_cycles_no_pod_until_it_is_right() {
    let scene = Stage::shared().await.scene("wrong").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene.full_node("node", json!({})).await;
    scene.settled("node").await;
    let before = scene.seen("node");
    let authority = Authority::new("given").expect("an authority");
    let [service, pod] = names::dns("node", scene.namespace());

    // An image edited with it waits as well: its pod would mount what is not there.
    let image = "registry.example/seid:v6.1.0";
    let edit = json!({ "sidecar": tls_by_secret("given"), "image": image });
    scene.edit("node", edit).await;
    let node = until(&scene, NodeReason::TlsSecretNotFound).await;
    assert_eq!(message(&node), "there is no Secret given");
    let status = node.status.clone().expect("a status");
    let required = status.sidecar_tls.expect("what the certificate must be");
    assert_eq!(required.secret_name.as_deref(), Some("given"));
    assert_eq!(required.required_dns_names, [service.clone(), pod.clone()]);
    assert_eq!(required.ca_bundle, None);
    // What is asked for is not what is observed.
    let url = status.sidecar_url.expect("an address");
    assert_eq!(url, format!("http://{pod}:8443"));
    assert_eq!(status.current_sidecar_tls, None);
    let (_, reason, _) = said(&node, NodeCondition::NodeUpdateInProgress);
    assert_eq!(reason, "UpdateAndTLSToggleStarted");

    scene.secret(&secret_for(&[&service], &authority)).await;
    let node = until(&scene, NodeReason::TlsSecretSansMismatch).await;
    let expected =
        format!("the certificate in Secret given must name {pod} too; it names {service}");
    assert_eq!(message(&node), expected);

    let mut mismatched = secret_for(&[&service, &pod], &authority);
    let other = authority.server(&["other"]).expect("a certificate");
    let data = mismatched.data.get_or_insert_default();
    data.insert("tls.key".to_owned(), ByteString(other.key.into_bytes()));
    scene.secret(&mismatched).await;
    let node = until(&scene, NodeReason::TlsSecretMalformed).await;
    let told = message(&node);
    let expected = "tls.crt and tls.key of Secret given are no key pair: ";
    assert!(told.starts_with(expected), "{told}");

    let mut keyless = secret_for(&[&service, &pod], &authority);
    let data = keyless.data.get_or_insert_default();
    data.insert("tls.key".to_owned(), ByteString(Vec::new()));
    scene.secret(&keyless).await;
    let without_key =
        |node: &SeiNode, _: &_| message(node).contains("tls.key of Secret given is missing");
    scene
        .until_status("an empty key", "node", without_key)
        .await;

    // Nobody lost a pod over all this, and the plan waits where it should.
    assert_eq!(Cost::between(&before, &scene.seen("node")), Cost::NOTHING);
    let plan = until_waiting(&scene).await;
    assert_eq!(plan.kind.map(|it| it.as_str()), Some("node-update-tls"));

    // More names than needed do no harm.
    let names = [service.as_str(), &pod, "another.example"];
    scene.secret(&secret_for(&names, &authority)).await;
    let node = scene.settled("node").await;
    assert_eq!(Cost::between(&before, &scene.seen("node")), Cost::ONE_POD);
    assert_eq!(said(&node, READY).1, "TLSSecretReady");
    let status = node.status.expect("a status");
    assert_eq!(status.current_image.as_deref(), Some(image));
    let bundle = status.sidecar_tls.expect("a contract").ca_bundle;
    assert_eq!(bundle.as_deref(), Some(authority.certificate()));
    assert_eq!(status.sidecar_url, Some(format!("https://{pod}:8443")));
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_another_type_is_malformed() {
    let scene = Stage::shared().await.scene("opaque").await;
    let _operator = Operator::start(&scene, platform()).await;
    let authority = Authority::new("given").expect("an authority");
    let identity = objects::identity(&authority, "node", scene.namespace());
    let mut opaque = objects::tls_secret("given", &identity, &authority);
    opaque.type_ = None;
    scene.secret(&opaque).await;
    scene
        .full_node("node", json!({ "sidecar": tls_by_secret("given") }))
        .await;
    let node = until(&scene, NodeReason::TlsSecretMalformed).await;
    let expected = "Secret given is of type \"Opaque\": make one of type kubernetes.io/tls";
    assert_eq!(message(&node), expected);
    until_waiting(&scene).await;
    assert_eq!(scene.seen("node").created.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_born_without_its_secret_says_what_the_secret_must_be_and_waits() {
    let scene = Stage::shared().await.scene("unborn").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene
        .full_node("node", json!({ "sidecar": tls_by_secret("given") }))
        .await;
    let node = until(&scene, NodeReason::TlsSecretNotFound).await;
    let required = node.status.expect("a status").sidecar_tls;
    let required = required.expect("what the certificate must be");
    assert_eq!(required.secret_name.as_deref(), Some("given"));
    assert_eq!(
        required.required_dns_names,
        names::dns("node", scene.namespace())
    );
    until_waiting(&scene).await;
    assert_eq!(scene.seen("node").created.len(), 0);
    let authority = Authority::new("given").expect("an authority");
    scene.tls_secret("given", "node", &authority).await;
    scene.settled("node").await;
    let seen = scene.seen("node");
    assert_eq!((seen.created.len(), seen.deleted.len()), (1, 0));
    assert!(
        seen.shown.iter().all(|it| !it.plaintext),
        "{:?}",
        seen.shown
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_that_cannot_be_read_is_unknown_and_nothing_happens_to_the_node() {
    let scene = Stage::shared().await.scene("unread").await;
    let authority = Authority::new("given").expect("an authority");
    scene.tls_secret("given", "node", &authority).await;
    let _operator = Operator::start(&scene, platform()).await;
    scene
        .full_node("node", json!({ "sidecar": tls_by_secret("given") }))
        .await;
    let node = scene.settled("node").await;
    let served = node.status.expect("a status").current_sidecar_tls;
    let before = scene.seen("node");
    let rule = scene
        .faults()
        .inject(Fault::Unavailable, On::verb(Verb::Get).resource("secrets"));
    poke(&scene, "node", "one").await;
    let unknown = scene.until_status("an unread Secret", "node", |node, _| {
        let (status, reason, _) = said(node, READY);
        (status.as_str(), reason.as_str()) == ("Unknown", "TLSSecretUnavailable")
    });
    let node = unknown.await;
    let status = node.status.clone().expect("a status");
    assert_eq!((status.plan, status.current_sidecar_tls), (None, served));
    rule.clear();
    poke(&scene, "node", "two").await;
    scene
        .until_condition("node", READY, true, NodeReason::TlsSecretReady)
        .await;
    assert_eq!(Cost::between(&before, &scene.seen("node")), Cost::NOTHING);
}

async fn deleted_and_restored(scene: &Scene, name: &str) {
    let authority = Authority::new("given").expect("an authority");
    let identity = objects::identity(&authority, "node", scene.namespace());
    let secret = objects::tls_secret(name, &identity, &authority);
    scene.secret(&secret).await;
    scene
        .full_node("node", json!({ "sidecar": tls_by_secret(name) }))
        .await;
    let node = scene.settled("node").await;
    let served = node.status.expect("a status").current_sidecar_tls;
    assert!(served.is_some());
    let (before, serving) = (scene.seen("node"), scene.serving("node"));
    scene.faults().forget();

    scene.delete::<Secret>(name).await;
    let node = until(scene, NodeReason::TlsSecretNotFound).await;
    let lost = scene.events("node", "SidecarTLSSecretNotReady").await;
    assert_eq!(lost, [said(&node, READY).2]);
    // The proxy's files are gone by now, and it serves what it has.
    scene
        .until_files("node", |files| files.pair.is_none())
        .await;
    poke(scene, "node", "gone").await;
    let generation = node.metadata.generation;
    scene.settled("node").await;
    let status = node.status.expect("a status");
    assert_eq!(
        (status.plan, status.current_sidecar_tls),
        (None, served.clone())
    );

    scene.secret(&secret).await;
    let restored = scene.until_condition("node", READY, true, NodeReason::TlsSecretReady);
    let node = restored.await;
    assert_eq!(node.metadata.generation, generation);
    let status = node.status.expect("a status");
    assert_eq!((status.plan, status.current_sidecar_tls), (None, served));
    assert_eq!(scene.serving("node"), serving);
    assert_eq!(Cost::between(&before, &scene.seen("node")), Cost::NOTHING);
    // Nothing was written but what the node says of itself.
    let writes = scene.faults().writes().into_iter();
    let spoken = ["seinodes", "events"];
    let elsewhere: Vec<String> = writes
        .filter(|it| !spoken.contains(&it.resource.as_str()))
        .map(|it| it.to_string())
        .collect();
    assert_eq!(elsewhere, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_deleted_under_a_running_node_changes_nothing_but_the_condition() {
    let scene = Stage::shared().await.scene("deleted").await;
    let _operator = Operator::start(&scene, platform()).await;
    deleted_and_restored(&scene, "given").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_it_is_where_the_secret_has_the_name_we_would_have_chosen() {
    let scene = Stage::shared().await.scene("deleted-own").await;
    let _operator = Operator::start(&scene, platform()).await;
    deleted_and_restored(&scene, "node-sidecar-tls").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_it_is_with_the_original_proxy() {
    let scene = Stage::shared().await.scene("deleted-original").await;
    let _operator = Operator::start(&scene, original_proxy()).await;
    deleted_and_restored(&scene, "given").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_secret_of_the_name_we_would_have_chosen_needs_no_other_pod() {
    let scene = Stage::shared().await.scene("named").await;
    let _operator = Operator::start(&scene, platform()).await;
    let authority = Authority::new("given").expect("an authority");
    scene.full_node("node", json!({})).await;
    scene.settled("node").await;
    scene
        .tls_secret("node-sidecar-tls", "node", &authority)
        .await;
    let edit = json!({ "sidecar": tls_by_secret("node-sidecar-tls") });
    let story = tell(&scene, "node", edit).await;
    assert_eq!(story.cost, Cost::NOTHING);
    let status = story.node.status.expect("a status");
    let served = status.current_sidecar_tls.expect("TLS");
    assert_eq!(served.secret_name.as_deref(), Some("node-sidecar-tls"));
    assert_eq!((served.issuer_name, served.issuer_kind), (None, None));
    // It is somebody's: turned off again, TLS leaves it where it is.
    let story = tell(&scene, "node", json!({ "sidecar": { "tls": null } })).await;
    assert_eq!(story.cost, Cost::NOTHING);
    assert!(!tasks(&story.plans[0]).contains(&"delete-sidecar-cert"));
    let (_, reason, _) = said(&story.node, READY);
    assert_eq!(reason, "NotApplicable");
    assert_eq!(story.node.status.expect("a status").sidecar_tls, None);
    let kept = scene.api::<Secret>().get_opt("node-sidecar-tls").await;
    assert!(kept.expect("an answer").is_some());
}
