//! The install of `deploy/operator`: its objects, how they are applied, and how its accounts are acted
//! for.
#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{
    Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
};
use serde_json::Value;

/// Its files, in the order they are applied in.
pub(crate) const FILES: [&str; 7] = [
    "namespace.yaml",
    "accounts.yaml",
    "roles.yaml",
    "bindings.yaml",
    "policies.yaml",
    "platform.yaml",
    "deployment.yaml",
];

/// Every object of the install, in the order of its files.
pub(crate) static OBJECTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let objects = |file: &&str| {
        let text = std::fs::read_to_string(folder().join(file)).expect("a file of the install");
        serde_saphyr::from_multiple::<Value>(&text).expect("objects in YAML")
    };
    FILES.iter().flat_map(objects).collect()
});

/// The folder of the install.
pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/operator")
}

/// Applies any object.
pub(crate) async fn apply(client: &Client, object: &Value) {
    let text = |pointer| object.pointer(pointer).and_then(Value::as_str);
    let version = text("/apiVersion").expect("an apiVersion");
    let (group, version) = version.split_once('/').unwrap_or(("", version));
    let kind = text("/kind").expect("a kind");
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
    let resource = ApiResource {
        plural: plural(kind),
        ..resource
    };
    let api: Api<DynamicObject> = match text("/metadata/namespace") {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let name = text("/metadata/name").expect("a name");
    let params = PatchParams::apply("platform-test").force();
    let applied = api.patch(name, &params, &Patch::Apply(object)).await;
    applied.unwrap_or_else(|error| panic!("{kind} {name}: {error}"));
}

fn plural(kind: &str) -> String {
    match kind.strip_suffix('y') {
        Some(start) => format!("{}ies", start.to_lowercase()),
        None => format!("{}s", kind.to_lowercase()),
    }
}

/// A token of an account.
pub(crate) async fn token(client: &Client, namespace: &str, name: &str) -> String {
    let accounts = Api::<ServiceAccount>::namespaced(client.clone(), namespace);
    let request = TokenRequest {
        spec: TokenRequestSpec::default(),
        ..TokenRequest::default()
    };
    let issued = accounts
        .create_token_request(name, &PostParams::default(), &request)
        .await
        .expect("a token");
    issued.status.expect("an answer").token
}
