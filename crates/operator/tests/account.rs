//! The operator as the account its install gives it, with the install's policies in force: it can do
//! all of its work, and is refused nothing on the way.

mod stage;

#[path = "node/operator.rs"]
mod operator;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, ServiceAccount};
use keelson_api::SeiNode;
use keelson_operator::node::points::Points;
use keelson_operator::rights::{NAMESPACE, OPERATOR};
use keelson_testbed::Cluster;
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use kube::{Client, Config};
use serde_json::{Value, json};

use operator::{Operator, settings};
use stage::{Scene, Stage, objects, platform};

/// Everything `deploy/operator` has but the Deployment.
async fn install(cluster: &Cluster) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/operator");
    let files = [
        "namespace.yaml",
        "accounts.yaml",
        "roles.yaml",
        "bindings.yaml",
        "policies.yaml",
    ];
    for file in files {
        let path = format!("{folder}/{file}");
        let text = std::fs::read_to_string(&path).expect("a file of the install");
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text).expect("YAML");
        for object in objects.iter().filter(|it| it.is_object()) {
            apply(&cluster.client(), object).await;
        }
    }
}

async fn apply(client: &Client, object: &Value) {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let version = text("/apiVersion").expect("an apiVersion");
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = text("/kind").expect("a kind");
    let mut resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    resource.plural = match kind.strip_suffix('y') {
        Some(start) => format!("{}ies", start.to_lowercase()),
        None => format!("{}s", kind.to_lowercase()),
    };
    let api: Api<DynamicObject> = match text("/metadata/namespace") {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let name = text("/metadata/name").expect("a name");
    let params = PatchParams::apply("install").force();
    let applied = api.patch(name, &params, &Patch::Apply(object)).await;
    applied.unwrap_or_else(|error| panic!("{kind} {name}: {error}"));
}

/// A client of the operator's own account, through the scene's fault proxy.
async fn account(scene: &Scene) -> Client {
    let accounts = Api::<ServiceAccount>::namespaced(scene.client(), NAMESPACE);
    let request = TokenRequest {
        spec: TokenRequestSpec {
            expiration_seconds: Some(3600),
            ..TokenRequestSpec::default()
        },
        ..TokenRequest::default()
    };
    let issued = accounts
        .create_token_request(OPERATOR, &PostParams::default(), &request)
        .await
        .expect("a token");
    let token = issued.status.expect("an answer").token;
    let mut config: Config = scene.faults().config();
    config.auth_info.token = Some(token.into());
    Client::try_from(config).expect("a client")
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operators_account_is_refused_nothing_that_its_work_needs() {
    let scene = Stage::shared().await.scene("account").await;
    install(scene.stage().cluster()).await;
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
