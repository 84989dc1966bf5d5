//! Whose a Secret is: somebody's is neither written nor taken away, and ours goes when it is no longer
//! served, and no sooner.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use keelson_api::node_condition::{NodeCondition, NodeReason};
use kube::api::{DeleteParams, Patch, PatchParams};
use serde_json::json;

use crate::manager;
use crate::operator::Operator;
use crate::stage::objects::{self, original_proxy, tls_by_issuer};
use crate::stage::{Scene, Stage, platform};
use crate::story::{Cost, said, tell};

const OWN: &str = "node-sidecar-tls";

async fn secret(scene: &Scene) -> Option<Secret> {
    let found = scene.api::<Secret>().get_opt(OWN).await;
    found.expect("an answer")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_persons_secret_of_our_name_is_refused_untouched_and_out_of_the_way_when_it_is_gone() {
    let scene = Stage::shared().await.scene("persons").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene.issuer("x").await;
    scene.full_node("node", json!({})).await;
    scene.settled("node").await;
    let before = scene.seen("node");
    scene
        .secret(&objects::secret(OWN, &[("mine", "mine")]))
        .await;
    let theirs = secret(&scene).await;
    scene
        .edit("node", json!({ "sidecar": tls_by_issuer("x") }))
        .await;
    let stalled = (NodeCondition::Stalled, NodeReason::PlanFailed);
    let node = scene
        .until_condition("node", stalled.0, true, stalled.1)
        .await;
    let sentence = "Secret node-sidecar-tls was not written by cert-manager: remove it, or name it as sidecar.tls.secretName";
    let expected = (
        "False".to_owned(),
        "TLSSecretNotOwned".to_owned(),
        sentence.to_owned(),
    );
    assert_eq!(said(&node, NodeCondition::SidecarTlsSecretReady), expected);
    let (_, _, why) = said(&node, NodeCondition::Stalled);
    assert_eq!(
        why,
        format!("the change of TLS failed at apply-sidecar-cert: {sentence}")
    );
    let (_, reason, _) = said(&node, NodeCondition::NodeUpdateInProgress);
    assert_eq!(reason, "UpdateFailed");
    assert_eq!(secret(&scene).await, theirs);
    assert!(manager::certificate(&scene, OWN).await.is_none());
    assert_eq!(scene.serving("node"), Some(("off", None)));

    scene.delete::<Secret>(OWN).await;
    let node = scene.settled("node").await;
    assert_eq!(said(&node, NodeCondition::Stalled).0, "False");
    assert_eq!(scene.serving("node").expect("a proxy").0, "required");
    assert_eq!(Cost::between(&before, &scene.seen("node")), Cost::NOTHING);
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_our_name_that_is_somebodys_is_not_taken() {
    let scene = Stage::shared().await.scene("somebodys").await;
    let _operator = Operator::start(&scene, original_proxy()).await;
    for issuer in ["x", "y"] {
        scene.issuer(issuer).await;
    }
    let spec = json!({
        "secretName": OWN, "dnsNames": ["mine.example"],
        "privateKey": { "algorithm": "ECDSA" }, "issuerRef": { "name": "y" },
    });
    manager::create(&scene, "Certificate", OWN, spec).await;
    scene
        .until_object("a Secret", OWN, |it: Option<&Secret>| it.is_some())
        .await;
    scene.full_node("node", json!({})).await;
    scene.settled("node").await;
    let before = scene.seen("node");
    scene
        .edit("node", json!({ "sidecar": tls_by_issuer("x") }))
        .await;
    let stalled = (NodeCondition::Stalled, NodeReason::PlanFailed);
    let node = scene
        .until_condition("node", stalled.0, true, stalled.1)
        .await;
    let why = said(&node, NodeCondition::Stalled).2;
    assert!(
        why.contains("Certificate node-sidecar-tls was not made for this node"),
        "{why}"
    );
    let theirs = manager::certificate(&scene, OWN).await.expect("theirs");
    assert_eq!(theirs.data["spec"]["issuerRef"]["name"], "y");
    assert_eq!(theirs.data["spec"]["dnsNames"], json!(["mine.example"]));
    assert_eq!(Cost::between(&before, &scene.seen("node")), Cost::NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_goes_only_after_plaintext_was_seen() {
    let scene = Stage::shared().await.scene("goes").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene.issuer("x").await;
    scene
        .full_node("node", json!({ "sidecar": tls_by_issuer("x") }))
        .await;
    scene.settled("node").await;
    let before = scene.seen("node");
    scene.script("node", |script| script.refresh = Duration::from_secs(3600));
    scene.pause("node");
    scene
        .edit("node", json!({ "sidecar": { "tls": null } }))
        .await;
    let waits = scene.until_status("a wait", "node", |_, status| {
        let mut tasks = status.plan.iter().flat_map(|it| &it.tasks);
        tasks.any(|it| it.type_.as_str() == "observe-sidecar-tls" && it.waiting_on.is_some())
    });
    let plan = waits.await.status.expect("a status").plan.expect("a plan");
    assert_eq!(
        crate::story::tasks(&plan),
        [
            "apply-rbac-proxy-config",
            "apply-statefulset",
            "apply-service",
            "replace-pod",
            "observe-sidecar-tls",
            "delete-sidecar-cert",
            "mark-ready",
        ]
    );
    assert!(secret(&scene).await.is_some());
    assert!(manager::certificate(&scene, OWN).await.is_some());

    scene.script("node", |script| script.refresh = Duration::ZERO);
    scene.resume("node");
    scene.touch("node-0").await;
    let node = scene.settled("node").await;
    assert!(secret(&scene).await.is_none());
    assert!(manager::certificate(&scene, OWN).await.is_none());
    let (status, reason, _) = said(&node, NodeCondition::SidecarTlsSecretReady);
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "NotApplicable")
    );
    let status = node.status.expect("a status");
    assert_eq!(
        (status.current_sidecar_tls, status.sidecar_tls),
        (None, None)
    );
    assert_eq!(Cost::between(&before, &scene.seen("node")), Cost::NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_somebody_edits_or_deletes_is_ordered_as_it_was_and_no_pod_goes() {
    let scene = Stage::shared().await.scene("mended-order").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene.issuer("x").await;
    scene
        .full_node("node", json!({ "sidecar": tls_by_issuer("x") }))
        .await;
    scene.settled("node").await;
    let before = scene.seen("node");
    let ordered = manager::certificate(&scene, OWN).await.expect("an order");
    let spec = ordered.data["spec"].clone();
    for edit in [
        json!({ "dnsNames": ["another.example"] }),
        json!({ "issuerRef": { "name": "another" } }),
    ] {
        let (how, edit) = (PatchParams::default(), json!({ "spec": edit }));
        let orders = manager::of(&scene, "Certificate");
        let edited = orders.patch(OWN, &how, &Patch::Merge(edit)).await;
        edited.expect("an edit");
        manager::until_certificate(&scene, OWN, |it| {
            it.is_some_and(|it| it.data["spec"] == spec)
        })
        .await;
    }
    let orders = manager::of(&scene, "Certificate");
    let deleted = orders.delete(OWN, &DeleteParams::default()).await;
    deleted.expect("a deletion");
    manager::until_certificate(&scene, OWN, |it| {
        it.is_some_and(|it| it.metadata.uid != ordered.metadata.uid && it.data["spec"] == spec)
    })
    .await;
    scene.settled("node").await;
    assert_eq!(scene.serving("node").expect("a proxy").0, "required");
    assert_eq!(Cost::between(&before, &scene.seen("node")), Cost::NOTHING);
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_asks_for_the_very_secret_keeps_it_when_the_order_goes() {
    let scene = Stage::shared().await.scene("keeps").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene.issuer("x").await;
    scene
        .full_node("node", json!({ "sidecar": tls_by_issuer("x") }))
        .await;
    scene.settled("node").await;
    let ordered = scene.serving("node");
    let tls = json!({ "issuerName": null, "issuerKind": null, "secretName": OWN });
    let story = tell(&scene, "node", json!({ "sidecar": { "tls": tls } })).await;
    assert_eq!(story.cost, Cost::NOTHING);
    assert!(manager::certificate(&scene, OWN).await.is_none());
    assert!(secret(&scene).await.is_some());
    assert_eq!(scene.serving("node"), ordered);
    let served = story.node.status.expect("a status").current_sidecar_tls;
    let served = served.expect("TLS");
    assert_eq!(
        (served.issuer_name, served.secret_name.as_deref()),
        (None, Some(OWN))
    );
}
