//! Which edits are a change of TLS and which are not, and what the conditions say of each.

use keelson_api::node_condition::NodeCondition;
use keelson_api::sidecar::IssuerKind;
use serde_json::json;

use crate::covered::{Covered, missing};
use crate::matrix;
use crate::operator::Operator;
use crate::stage::objects::{tls_by_issuer, tls_by_secret};
use crate::stage::{Stage, platform};
use crate::story::{Cost, follow, poke, said, tasks, tell};

const COVERED: Covered = &[(
    an_issuer_of_another_kind_under_the_same_name_is_another_issuer,
    &["sidecar.tls.issuerKind"],
)];

#[test]
fn every_row_of_tls_has_a_test_that_edits_it() {
    let tests = [COVERED, matrix::COVERED];
    let missing = missing(&tests, |row| row.starts_with("sidecar.tls."));
    assert_eq!(missing, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_of_another_kind_under_the_same_name_is_another_issuer() {
    let scene = Stage::shared().await.scene("kind").await;
    let _operator = Operator::start(&scene, platform()).await;
    let name = scene.namespace();
    scene.issuer(name).await;
    let cluster = scene.cluster_issuer(name).await;
    scene
        .full_node("node", json!({ "sidecar": tls_by_issuer(name) }))
        .await;
    scene.settled("node").await;
    let first = scene.serving("node");
    let tls = json!({ "issuerName": name, "issuerKind": "ClusterIssuer" });
    let story = tell(&scene, "node", json!({ "sidecar": { "tls": tls } })).await;
    let message = format!(
        "sidecar.tls drift: wanted={{issuerName={name} issuerKind=ClusterIssuer}} current={{issuerName={name} issuerKind=Issuer}}"
    );
    assert_eq!(story.reasons, [("TLSToggleStarted".to_owned(), message)]);
    assert_eq!(story.plans.len(), 1);
    assert_eq!(story.cost, Cost::NOTHING);
    assert_ne!(scene.serving("node"), first);
    let status = story.node.status.expect("a status");
    let served = status.current_sidecar_tls.expect("TLS");
    assert_eq!(served.issuer_kind, Some(IssuerKind::ClusterIssuer));
    let bundle = status.sidecar_tls.expect("a contract").ca_bundle;
    assert_eq!(bundle.as_deref(), Some(cluster.certificate()));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_served_already_is_no_change_and_an_image_beside_it_is_an_update() {
    let scene = Stage::shared().await.scene("converged").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene.issuer("x").await;
    scene
        .full_node("node", json!({ "sidecar": tls_by_issuer("x") }))
        .await;
    let node = scene.settled("node").await;
    let before = scene.seen("node");
    scene.faults().forget();
    poke(&scene, "node", "again").await;
    // An edit that leaves TLS as it is; its end is after the look the annotation caused.
    let image = "registry.example/seid:v6.1.0";
    let story = tell(
        &scene,
        "node",
        json!({ "sidecar": tls_by_issuer("x"), "image": image }),
    )
    .await;
    let [plan] = story.plans.as_slice() else {
        panic!("{:?}", story.plans);
    };
    assert_eq!(plan.kind.map(|it| it.as_str()), Some("node-update"));
    assert_eq!(plan.causes, ["image"]);
    // The pod that comes mounts what is waited for first, and its proxy is told before it starts.
    assert_eq!(
        tasks(plan),
        [
            "wait-for-sidecar-tls-secret",
            "apply-rbac-proxy-config",
            "apply-statefulset",
            "apply-service",
            "replace-pod",
            "observe-image",
            "mark-ready",
        ]
    );
    let [(reason, message)] = story.reasons.as_slice() else {
        panic!("{:?}", story.reasons);
    };
    assert_eq!(reason, "UpdateStarted");
    assert_eq!(
        *message,
        format!("image drift: wanted={image} current=registry.example/seid:v6.0.0")
    );
    assert_eq!(story.cost, Cost::ONE_POD);
    let served =
        |node: &keelson_api::SeiNode| node.status.clone().and_then(|it| it.current_sidecar_tls);
    assert_eq!(served(&story.node), served(&node));
    assert_eq!(before.created.len(), 1);
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_taken_back_while_it_waits_costs_nothing_and_leaves_nothing() {
    let scene = Stage::shared().await.scene("taken-back").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene.full_node("node", json!({})).await;
    let node = scene.settled("node").await;
    let before = scene.seen("node");
    let first = scene
        .edit("node", json!({ "sidecar": tls_by_secret("never") }))
        .await;
    let waits = |node: &keelson_api::SeiNode| {
        let status = node.status.clone().unwrap_or_default();
        status
            .plan
            .is_some_and(|plan| plan.generation == node.metadata.generation)
    };
    let story = follow(&scene, &first, before.clone(), waits).await;
    assert_eq!(story.reasons[0].0, "TLSToggleStarted");
    assert_eq!(
        story.reasons[0].1,
        "sidecar.tls drift: wanted={secretName=never} current=none; tls-mount drift: it is brought in line with the spec"
    );
    let first = story.plans[0].id.clone();
    // Asked for another Secret, the plan for the first one is dropped for a new one.
    let edited = scene
        .edit("node", json!({ "sidecar": tls_by_secret("neither") }))
        .await;
    let another = |node: &keelson_api::SeiNode| waits(node);
    let story = follow(&scene, &edited, before.clone(), another).await;
    assert_ne!(story.plans.last().expect("a plan").id, first);
    let story = tell(&scene, "node", json!({ "sidecar": { "tls": null } })).await;
    assert_eq!(Cost::between(&before, &scene.seen("node")), Cost::NOTHING);
    let status = story.node.status.clone().expect("a status");
    assert_eq!(status.plan, None);
    assert_eq!(
        status.sidecar_url,
        node.status.expect("a status").sidecar_url
    );
    let (truth, reason, _) = said(&story.node, NodeCondition::SidecarTlsSecretReady);
    assert_eq!(
        (truth.as_str(), reason.as_str()),
        ("False", "NotApplicable")
    );
    assert_eq!(said(&story.node, NodeCondition::Stalled).0, "False");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disabled_and_enabled_node_serves_again_from_the_secret_its_pod_kept() {
    let scene = Stage::shared().await.scene("again").await;
    let _operator = Operator::start(&scene, platform()).await;
    let authority = keelson_testbed::Authority::new("given").expect("an authority");
    scene.tls_secret("given", "node", &authority).await;
    scene
        .full_node("node", json!({ "sidecar": tls_by_secret("given") }))
        .await;
    scene.settled("node").await;
    let off = tell(&scene, "node", json!({ "sidecar": { "tls": null } })).await;
    assert_eq!(off.cost, Cost::NOTHING);
    let on = tell(&scene, "node", json!({ "sidecar": tls_by_secret("given") })).await;
    assert_eq!(on.cost, Cost::NOTHING);
    assert_eq!(on.plans.len(), 1);
    assert_eq!(scene.serving("node").expect("a proxy").0, "required");
}
