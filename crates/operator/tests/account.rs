//! The operator as the account its install gives it, with the install's policies in force: it can do
//! all of its work, and is refused nothing on the way.

mod stage;

#[path = "platform/deployed.rs"]
mod deployed;
#[path = "node/operator.rs"]
mod operator;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use keelson_api::SeiNode;
use keelson_operator::node::world::Scope;
use keelson_operator::rights::{NAMESPACE, OPERATOR};
use keelson_render::names;
use keelson_wire::TaskType;
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use deployed::{OBJECTS, apply, token};
use operator::{Operator, settings};
use stage::{Scene, Stage, objects, platform};

/// Everything `deploy/operator` has but the Deployment.
async fn install(client: &Client) {
    let objects = OBJECTS.iter().filter(|it| it["kind"] != "Deployment");
    for object in objects {
        apply(client, object).await;
    }
}

/// A client of the operator's own account, through the scene's fault proxy.
async fn account(scene: &Scene) -> Client {
    let token = token(&scene.client(), NAMESPACE, OPERATOR).await;
    let mut config: Config = scene.faults().config();
    config.auth_info.token = Some(token.into());
    Client::try_from(config).expect("a client")
}

/// One test at a time: the operator of each looks after all namespaces.
static TURN: Mutex<()> = Mutex::const_new(());

/// The operator as it is installed: as its account, for all namespaces.
async fn installed(scene: &Scene) -> Operator {
    install(&scene.client()).await;
    let mut settings = settings(platform(), scene.namespace());
    settings.sidecar_client.namespace = NAMESPACE.to_owned();
    let client = account(scene).await;
    Operator::within(scene, client, settings, Scope::Cluster, |_| ()).await
}

/// What the operator was refused.
fn refused(scene: &Scene) -> Vec<String> {
    let calls = scene.faults().calls();
    let refused = calls.iter().filter(|call| call.code == Some(403));
    refused.map(ToString::to_string).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_account_is_refused_nothing_that_its_work_needs() {
    let _turn = TURN.lock().await;
    let scene = Stage::shared().await.scene("account").await;
    let _operator = installed(&scene).await;

    scene.issuer("ca").await;
    scene.full_node("full", objects_tls("ca")).await;
    scene.bootstrapped("replayed", 100, json!({})).await;
    scene.validator("validator", json!({})).await;
    for node in ["full", "replayed", "validator"] {
        scene.settled(node).await;
    }
    scene
        .edit(
            "full",
            json!({ "image": "registry.example/seid:v7.0.0", "sidecar": { "tls": null } }),
        )
        .await;
    scene
        .edit(
            "validator",
            json!({
                "sidecar": { "image": "registry.example/keelson-sidecar:2" },
                "overrides": { "network.p2p.max_connections": "7" },
                "dataVolume": { "retainOnDelete": false },
            }),
        )
        .await;
    scene.settled("full").await;
    scene.settled("validator").await;
    scene.delete::<SeiNode>("validator").await;
    scene
        .until_object(
            "its end",
            "data-validator",
            |it: Option<&PersistentVolumeClaim>| it.is_none(),
        )
        .await;

    assert_eq!(refused(&scene), Vec::<String>::new());
    assert_eq!(scene.violations(), Vec::<String>::new());
}

/// A node's host, as others call it.
fn host(scene: &Scene, node: &str) -> String {
    let [_, host] = names::dns(node, scene.namespace());
    host
}

/// Waits until a node's peers are these, in its status and at its sidecar.
async fn found(scene: &Scene, node: &str, hosts: &[String]) {
    let status = scene.until_status("finding its peers", node, |_, status| {
        status.resolved_peers == hosts && status.plan.is_none()
    });
    status.await;
    let seen = scene.seen(node);
    let mut told = seen.submitted.iter().rev();
    let told = told.find(|it| it.type_ == TaskType::DiscoverPeers);
    let told = told.map(|it| serde_json::to_value(&it.params).expect("JSON"));
    let endpoints = told.map(|it| it["sources"][0]["endpoints"].clone());
    assert_eq!(endpoints, Some(json!(hosts)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_finds_peers_by_label_in_the_namespace_it_names_and_not_in_its_own() {
    let _turn = TURN.lock().await;
    let stage = Stage::shared().await;
    let (scene, elsewhere) = (stage.scene("seeks").await, stage.scene("is-sought").await);
    let _operator = installed(&scene).await;
    // The same name in both: only the namespace tells them apart.
    let selector = json!({ "chain": "pacific" });
    for scene in [&scene, &elsewhere] {
        let labels = json!({ "name": "peer", "labels": selector });
        let spec = json!({ "chainId": "pacific-1", "image": "seid:1", "fullNode": {} });
        let node = json!({
            "apiVersion": "sei.io/v1alpha1", "kind": "SeiNode", "metadata": labels, "spec": spec,
        });
        scene.create::<SeiNode>(node).await;
    }
    let label = |namespace: Option<&str>| json!({ "peers": [{ "label": { "selector": selector, "namespace": namespace } }] });
    scene
        .full_node("node", label(Some(elsewhere.namespace())))
        .await;
    scene.settled("node").await;
    let there = host(&elsewhere, "peer");
    found(&scene, "node", std::slice::from_ref(&there)).await;
    let before = scene.seen("node");

    // Its own namespace, and both.
    scene.edit("node", label(None)).await;
    let here = host(&scene, "peer");
    found(&scene, "node", std::slice::from_ref(&here)).await;
    let both = json!([
        label(None)["peers"][0],
        label(Some(elsewhere.namespace()))["peers"][0],
    ]);
    scene.edit("node", json!({ "peers": both })).await;
    let mut hosts = [here.clone(), there];
    hosts.sort();
    found(&scene, "node", &hosts).await;

    // One that goes there is noticed here.
    elsewhere.delete::<SeiNode>("peer").await;
    found(&scene, "node", &[here]).await;
    let after = scene.seen("node");
    assert_eq!(after.created, before.created);
    assert_eq!(after.process_starts, before.process_starts);
    assert_eq!(after.restarts, before.restarts);
    assert_eq!(refused(&scene), Vec::<String>::new());
}

fn objects_tls(issuer: &str) -> Value {
    json!({ "sidecar": objects::tls_by_issuer(issuer) })
}
