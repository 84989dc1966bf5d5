//! The right of a namespace's proxies to ask who calls: given once for the namespace, tried again after
//! a failure, and nobody's trouble where the operator may not give it.

use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
use keelson_operator::rights::proxy_binding;
use keelson_testbed::faults::{Call, Fault, On, Rule};
use kube::api::DeleteParams;
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::operator::Operator;
use crate::stage::{self, Scene, Stage, platform};

const RESOURCE: &str = "clusterrolebindings";

/// The binding of a scene, as it is to be and as it is.
async fn binding(scene: &Scene) -> (ClusterRoleBinding, Option<ClusterRoleBinding>) {
    let wanted = proxy_binding(scene.namespace(), &platform().service_account);
    let bindings = Api::<ClusterRoleBinding>::all(scene.client());
    let found = bindings.get_opt(&wanted.name_any()).await;
    (wanted, found.expect("an answer"))
}

async fn is_bound(scene: &Scene) {
    let (wanted, found) = binding(scene).await;
    let found = found.expect("a binding");
    assert_eq!(found.role_ref, wanted.role_ref);
    assert_eq!(found.subjects, wanted.subjects);
    let bindings = Api::<ClusterRoleBinding>::all(scene.client());
    let deleted = bindings
        .delete(&found.name_any(), &DeleteParams::default())
        .await;
    deleted.expect("its end");
}

/// How often bindings were asked for or made.
fn calls(scene: &Scene) -> usize {
    let calls = scene.faults().calls();
    calls.iter().filter(|it| it.resource == RESOURCE).count()
}

/// A scene whose operator meets this fault at bindings.
async fn opened(name: &str, fault: Option<(Fault, On)>) -> (Scene, Operator, Option<Rule>) {
    let scene = Stage::shared().await.scene(name).await;
    let rule = fault.map(|(fault, on)| scene.faults().inject(fault, on.resource(RESOURCE)));
    let operator = Operator::start(&scene, platform()).await;
    (scene, operator, rule)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proxies_of_a_namespace_are_bound_once_for_all_its_nodes() {
    let (scene, _operator, _) = opened("bound", None).await;
    for node in ["one", "other"] {
        scene.full_node(node, json!({})).await;
        scene.settled(node).await;
    }
    assert_eq!(calls(&scene), 2, "one look and one creation");
    is_bound(&scene).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binding_the_server_failed_at_is_made_after_all() {
    let fault = (Fault::Unavailable, On::every().next(2));
    let (scene, _operator, rule) = opened("bound-late", Some(fault)).await;
    // Without it no proxy lets anyone through.
    scene.fault("node", Some(stage::Fault::Refuse));
    scene.full_node("node", json!({})).await;
    let made =
        |call: &Call| call.resource == RESOURCE && call.verb.writes() && call.code == Some(201);
    let made = scene.faults().called("a binding", made);
    made.await.expect("a binding");
    scene.fault("node", None);
    scene.settled("node").await;
    assert_eq!(rule.map(Rule::clear), Some(2));
    is_bound(&scene).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_binding_the_operator_may_not_make_holds_nobody_up_and_is_said_once() {
    let fault = (Fault::Forbidden, On::writes());
    let (scene, _operator, rule) = opened("not-bound", Some(fault)).await;
    for node in ["one", "other"] {
        scene.full_node(node, json!({})).await;
        scene.settled(node).await;
    }
    assert_eq!(rule.map(Rule::clear), Some(1));
    let notes = scene.events("one", "ProxiesNotBound").await;
    let [note] = notes.as_slice() else {
        panic!("{notes:?}");
    };
    assert!(
        note.contains("bound to ClusterRole sei-rbac-proxy by hand"),
        "{note}"
    );
    assert_eq!(binding(&scene).await.1, None);
}
