//! The operator as the account its install gives it, with the install's policies in force: it can do
//! all of its work, and is refused nothing on the way.

mod stage;

#[path = "platform/deployed.rs"]
mod deployed;
#[path = "node/operator.rs"]
mod operator;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use keelson_api::SeiNode;
use keelson_operator::node::points::Points;
use keelson_operator::rights::{NAMESPACE, OPERATOR};
use kube::{Client, Config};
use serde_json::{Value, json};

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

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_account_is_refused_nothing_that_its_work_needs() {
    let scene = Stage::shared().await.scene("account").await;
    install(&scene.client()).await;
    let mut settings = settings(platform(), scene.namespace());
    settings.sidecar_client.namespace = NAMESPACE.to_owned();
    let client = account(&scene).await;
    let _operator = Operator::with(&scene, client, settings, Points::default()).await;

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

    let refused: Vec<String> = scene
        .faults()
        .calls()
        .iter()
        .filter(|call| call.code == Some(403))
        .map(ToString::to_string)
        .collect();
    assert_eq!(refused, Vec::<String>::new());
    assert_eq!(scene.violations(), Vec::<String>::new());
}

fn objects_tls(issuer: &str) -> Value {
    json!({ "sidecar": objects::tls_by_issuer(issuer) })
}
