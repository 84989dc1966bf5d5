//! Certificates ordered from the real cert-manager: late, refused, and impossible ones, each with what
//! is said and how it is put right.

use keelson_api::SeiNode;
use keelson_api::names::Annotation;
use keelson_api::node_condition::{NodeCondition, NodeReason};
use keelson_api::sidecar::IssuerKind;
use keelson_operator::node::points::Points;
use keelson_operator::platform::AllowedIssuer;
use keelson_testbed::Authority;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams};
use serde_json::json;

use crate::manager;
use crate::operator::{Operator, settings};
use crate::stage::objects::{self, original_proxy, tls_by_issuer};
use crate::stage::{Scene, Stage, platform};
use crate::story::{Cost, annotate, poke, said, tasks};

const STALLED: NodeCondition = NodeCondition::Stalled;
const READY: NodeCondition = NodeCondition::SidecarTlsSecretReady;

/// A running node without TLS.
async fn running(scene: &Scene) {
    scene.full_node("node", json!({})).await;
    scene.settled("node").await;
}

/// Waits until the plan waits for the certificate, for a reason that says this.
async fn until_waiting(scene: &Scene, why: &str) -> SeiNode {
    let waits = scene.until_status("a wait", "node", |_, status| {
        let mut tasks = status.plan.iter().flat_map(|it| &it.tasks);
        tasks.any(|it| {
            let waits = it.waiting_on.as_ref().is_some_and(|it| it.contains(why));
            waits && it.type_.as_str() == "wait-for-sidecar-tls-secret"
        })
    });
    waits.await
}

/// Has the deadline of the task that waits pass now.
async fn run_out_of_time(scene: &Scene, node: &SeiNode) {
    let status = node.status.as_ref().expect("a status");
    let plan = status.plan.as_ref().expect("a plan");
    let at = plan.tasks.iter().position(|it| it.waiting_on.is_some());
    let path = format!("/status/plan/tasks/{}/deadline", at.expect("a wait"));
    let patch = json!([{ "op": "replace", "path": path, "value": "2020-01-01T00:00:00Z" }]);
    let patch = Patch::<()>::Json(serde_json::from_value(patch).expect("a patch"));
    let nodes = scene.api::<SeiNode>();
    let patched = nodes
        .patch_status("node", &PatchParams::default(), &patch)
        .await;
    patched.expect("a deadline");
    poke(scene, "node", "late").await;
}

async fn retry(scene: &Scene, value: &str) {
    annotate(scene, "node", Annotation::Retry.as_str(), value).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_that_comes_late_is_waited_for_by_name_in_the_plan_of_eight_tasks() {
    let scene = Stage::shared().await.scene("late").await;
    let _operator = Operator::start(&scene, platform()).await;
    running(&scene).await;
    let before = scene.seen("node");
    scene
        .edit("node", json!({ "sidecar": tls_by_issuer("x") }))
        .await;
    let why = "the issuer x cannot issue yet: the issuer does not exist";
    let node = until_waiting(&scene, why).await;
    let plan = node.status.clone().expect("a status").plan.expect("a plan");
    assert_eq!(
        tasks(&plan),
        [
            "apply-sidecar-cert",
            "wait-for-sidecar-tls-secret",
            "apply-rbac-proxy-config",
            "apply-statefulset",
            "apply-service",
            "replace-pod",
            "observe-sidecar-tls",
            "mark-ready",
        ]
    );
    assert_eq!(plan.kind.map(|it| it.as_str()), Some("tls-toggle"));
    let expected = (
        "True".to_owned(),
        "TLSToggleStarted".to_owned(),
        "sidecar.tls drift: wanted={issuerName=x issuerKind=Issuer} current=none".to_owned(),
    );
    assert_eq!(said(&node, NodeCondition::NodeUpdateInProgress), expected);
    let doing = said(&node, NodeCondition::Reconciling).2;
    assert_eq!(
        doing,
        format!("the change of TLS is under way (TLS on), at wait-for-sidecar-tls-secret: {why}")
    );
    let (status, reason, _) = said(&node, READY);
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "CertificatePending")
    );
    assert_eq!(scene.serving("node"), Some(("off", None)));

    scene.issuer("x").await;
    let node = scene.settled("node").await;
    let (status, reason, _) = said(&node, NodeCondition::NodeUpdateInProgress);
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "UpdateComplete")
    );
    assert_eq!(said(&node, STALLED).0, "False");
    assert_eq!(said(&node, READY).1, "TLSSecretReady");
    let status = node.status.expect("a status");
    assert_eq!((status.plan, status.last_failed_plan), (None, None));
    assert_eq!(Cost::between(&before, &scene.seen("node")), Cost::NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_that_never_comes_stalls_the_node_until_it_is_asked_to_try_again() {
    let scene = Stage::shared().await.scene("never").await;
    let _operator = Operator::start(&scene, original_proxy()).await;
    running(&scene).await;
    let before = scene.seen("node");
    scene
        .edit("node", json!({ "sidecar": tls_by_issuer("x") }))
        .await;
    let node = until_waiting(&scene, "the issuer does not exist").await;
    run_out_of_time(&scene, &node).await;
    let overdue = scene.until_condition("node", STALLED, true, NodeReason::DeadlineExceeded);
    let node = overdue.await;
    assert_eq!(
        said(&node, STALLED).2,
        "the change of TLS failed at wait-for-sidecar-tls-secret: wait-for-sidecar-tls-secret was not done within 15m: the issuer x cannot issue yet: the issuer does not exist"
    );
    let stalled = scene.events("node", "Stalled").await;
    assert_eq!(stalled, [said(&node, STALLED).2]);
    let (_, reason, _) = said(&node, NodeCondition::NodeUpdateInProgress);
    assert_eq!(reason, "UpdateFailed");
    assert_eq!(Cost::between(&before, &scene.seen("node")), Cost::NOTHING);

    scene.issuer("x").await;
    retry(&scene, "one").await;
    let node = scene.settled("node").await;
    assert_eq!(said(&node, STALLED).0, "False");
    assert_eq!(
        node.status.expect("a status").retried.as_deref(),
        Some("one")
    );
    assert_eq!(Cost::between(&before, &scene.seen("node")), Cost::ONE_POD);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_that_is_not_ready_says_what_it_lacks_and_goes_on_by_itself_when_it_has_it() {
    let scene = Stage::shared().await.scene("unready").await;
    let _operator = Operator::start(&scene, platform()).await;
    running(&scene).await;
    let spec = json!({ "ca": { "secretName": "lacking" } });
    manager::create(&scene, "Issuer", "x", spec).await;
    scene
        .edit("node", json!({ "sidecar": tls_by_issuer("x") }))
        .await;
    let node = until_waiting(&scene, "lacking").await;
    let doing = said(&node, NodeCondition::Reconciling).2;
    assert!(
        doing.contains("the issuer x cannot issue yet: the issuer is not ready: "),
        "{doing}"
    );
    run_out_of_time(&scene, &node).await;
    let overdue = scene.until_condition("node", STALLED, true, NodeReason::DeadlineExceeded);
    assert!(said(&overdue.await, STALLED).2.contains("lacking"));

    let authority = Authority::new("x").expect("an authority");
    scene
        .secret(&objects::authority_secret("lacking", &authority))
        .await;
    let node = scene.settled("node").await;
    assert_eq!(said(&node, STALLED).0, "False");
    assert_eq!(scene.serving("node").expect("a proxy").0, "required");
}

/// Denies the first request for the node's certificate, as an approver would. The issuer is not there
/// yet, so that nobody issues it meanwhile.
async fn deny(scene: &Scene) {
    let requests = manager::of(scene, "CertificateRequest");
    let request = keelson_testbed::until(
        "a request",
        std::time::Duration::from_secs(60),
        async || {
            let listed = requests.list(&ListParams::default()).await;
            let listed = listed.map_err(|error| error.to_string())?;
            let approved = |it: &DynamicObject| {
                it.data["status"]["conditions"]
                    .to_string()
                    .contains("Approved")
            };
            let found = listed.items.into_iter().find(approved);
            found.ok_or_else(|| "none was approved".to_owned())
        },
    );
    let name = request
        .await
        .expect("a request")
        .metadata
        .name
        .expect("a name");
    let now = jiff::Timestamp::now()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string();
    let conditions = json!([
        {
            "type": "Denied", "status": "True", "reason": "policy.example",
            "message": "not on my watch", "lastTransitionTime": now,
        },
        {
            "type": "Ready", "status": "False", "reason": "Denied",
            "message": "not on my watch", "lastTransitionTime": now,
        },
    ]);
    let status = json!({ "status": { "conditions": conditions, "failureTime": now } });
    let patched = requests
        .patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
        .await;
    patched.expect("a denial");
}

/// A node whose certificate was denied.
async fn denied(scene: &Scene) -> SeiNode {
    running(scene).await;
    scene
        .edit("node", json!({ "sidecar": tls_by_issuer("x") }))
        .await;
    deny(scene).await;
    let failed = scene.until_condition("node", STALLED, true, NodeReason::PlanFailed);
    let node = failed.await;
    let why = said(&node, STALLED).2;
    let told = "the change of TLS failed at wait-for-sidecar-tls-secret: cert-manager could not have the Certificate node-sidecar-tls issued: ";
    assert!(
        why.starts_with(told) && why.contains("not on my watch"),
        "{why}"
    );
    let (status, reason, message) = said(&node, READY);
    assert_eq!(
        (status.as_str(), reason.as_str()),
        ("False", "CertificateFailed")
    );
    assert!(message.contains("not on my watch"), "{message}");
    assert_eq!(scene.serving("node"), Some(("off", None)));
    node
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_denied_fails_and_is_made_again_when_a_person_asks() {
    let scene = Stage::shared().await.scene("denied").await;
    let _operator = Operator::start(&scene, platform()).await;
    denied(&scene).await;
    let before = scene.seen("node");
    let first = manager::certificate(&scene, "node-sidecar-tls").await;
    scene.issuer("x").await;
    retry(&scene, "please").await;
    let node = scene.settled("node").await;
    assert_eq!(said(&node, STALLED).0, "False");
    let second = manager::certificate(&scene, "node-sidecar-tls").await;
    let uid = |it: &Option<DynamicObject>| it.as_ref().and_then(|it| it.metadata.uid.clone());
    assert_ne!(uid(&first), uid(&second));
    assert_eq!(Cost::between(&before, &scene.seen("node")), Cost::NOTHING);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_denied_is_made_of_another_issuer_after_an_edit() {
    let scene = Stage::shared().await.scene("denied-edit").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene.issuer("y").await;
    denied(&scene).await;
    scene
        .edit("node", json!({ "sidecar": tls_by_issuer("y") }))
        .await;
    let node = scene.settled("node").await;
    assert_eq!(said(&node, STALLED).0, "False");
    let served = node
        .status
        .expect("a status")
        .current_sidecar_tls
        .expect("TLS");
    assert_eq!(served.issuer_name.as_deref(), Some("y"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_that_is_not_allowed_is_refused_and_the_node_goes_on_as_it_was() {
    let scene = Stage::shared().await.scene("not-allowed").await;
    let mut settings = settings(platform(), scene.namespace());
    settings.issuers = vec![AllowedIssuer {
        kind: IssuerKind::Issuer,
        name: "x".to_owned(),
    }];
    let client = scene.operator_client();
    let _operator = Operator::with(&scene, client, settings, Points::default()).await;
    for issuer in ["x", "y"] {
        scene.issuer(issuer).await;
    }
    scene
        .full_node("node", json!({ "sidecar": tls_by_issuer("x") }))
        .await;
    let before = scene.settled("node").await.status.expect("a status");
    let (seen, serving) = (scene.seen("node"), scene.serving("node"));
    let refusal =
        "Issuer y is not on the platform's list of issuers: choose one that is, or have it added";
    // The kind counts as well as the name.
    for tls in [
        json!({ "issuerName": "y", "issuerKind": "Issuer" }),
        json!({ "issuerName": "x", "issuerKind": "ClusterIssuer" }),
    ] {
        scene
            .edit("node", json!({ "sidecar": { "tls": tls } }))
            .await;
        let valid = NodeCondition::SpecValid;
        let reason = NodeReason::IssuerNotAllowed;
        let refused = scene.until_status("a refusal", "node", |node, status| {
            let (truth, why, _) = said(node, valid);
            status.observed_generation == node.metadata.generation
                && (truth.as_str(), why.as_str()) == ("False", reason.as_str())
        });
        let node = refused.await;
        assert_eq!(said(&node, STALLED).1, reason.as_str());
        if tls["issuerName"] == "y" {
            assert_eq!(said(&node, valid).2, refusal);
            assert_eq!(scene.events("node", "SpecInvalid").await, [refusal]);
        }
        let status = node.status.expect("a status");
        assert_eq!(status.plan, None);
        assert_eq!(status.current_sidecar_tls, before.current_sidecar_tls);
    }
    assert_eq!(scene.serving("node"), serving);
    scene
        .edit("node", json!({ "sidecar": tls_by_issuer("x") }))
        .await;
    let node = scene.settled("node").await;
    assert_eq!(said(&node, NodeCondition::SpecValid).0, "True");
    assert_eq!(scene.serving("node"), serving);
    assert_eq!(Cost::between(&seen, &scene.seen("node")), Cost::NOTHING);
}
