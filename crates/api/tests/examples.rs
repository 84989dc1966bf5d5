//! Every example applies as it is, and applying it again changes nothing.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use keelson_api::{NMState, NodeNetworkConfigurationPolicy, SeiNode, SeiNodeDeployment, crds};
use keelson_testbed::Cluster;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Every example by its path below the folder.
fn examples() -> Vec<(String, Value)> {
    let mut examples = Vec::new();
    for group in ["nmstate", "sei"] {
        for entry in fs::read_dir(folder().join(group)).unwrap() {
            let path = entry.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            let object = serde_saphyr::from_str(&text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let file = path.file_name().unwrap().to_string_lossy();
            examples.push((format!("{group}/{file}"), object));
        }
    }
    examples.sort_by(|a, b| a.0.cmp(&b.0));
    examples
}

fn resource(object: &Value) -> ApiResource {
    let (group, version) = object["apiVersion"]
        .as_str()
        .unwrap()
        .split_once('/')
        .unwrap();
    let kind = object["kind"].as_str().unwrap();
    let crd = crds::all()
        .into_iter()
        .find(|crd| crd.spec.names.kind == kind)
        .unwrap();
    let gvk = GroupVersionKind::gvk(group, version, kind);
    ApiResource::from_gvk_with_plural(&gvk, &crd.spec.names.plural)
}

async fn apply(client: Client, namespace: &str, object: &Value) -> kube::Result<DynamicObject> {
    let resource = resource(object);
    let api: Api<DynamicObject> = match resource.group.as_str() {
        "sei.io" => Api::namespaced_with(client, namespace, &resource),
        _ => Api::all_with(client, &resource),
    };
    let name = object["metadata"]["name"].as_str().unwrap();
    let params = PatchParams::apply("example-test").validation_strict();
    api.patch(name, &params, &Patch::Apply(object)).await
}

#[tokio::test]
async fn every_example_applies_and_applying_it_again_changes_nothing() {
    let cluster = Cluster::shared().await;
    cluster.install_crds().await.unwrap();
    let namespace = cluster.namespace("examples").await;
    let client = cluster.client();
    let mut wrong = Vec::new();
    for (path, object) in examples() {
        let first = apply(client.clone(), namespace.name(), &object).await;
        let again = apply(client.clone(), namespace.name(), &object).await;
        match (first, again) {
            (Ok(first), Ok(again)) if first.resource_version() == again.resource_version() => {}
            (Ok(_), Ok(_)) => wrong.push(format!("{path}: applying it again changed it")),
            (Err(error), _) | (_, Err(error)) => wrong.push(format!("{path}: {error}")),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_kind_has_an_example_and_the_readme_names_each() {
    let examples = examples();
    let shown: BTreeSet<_> = examples
        .iter()
        .map(|(_, object)| object["kind"].as_str().unwrap().to_owned())
        .collect();
    let kinds: BTreeSet<_> = crds::all()
        .into_iter()
        .map(|crd| crd.spec.names.kind)
        .collect();
    assert_eq!(shown, kinds);

    let readme = fs::read_to_string(folder().join("README.md")).unwrap();
    for (path, _) in &examples {
        assert!(
            readme.contains(&format!("`{path}`")),
            "README.md does not name {path}"
        );
    }
}

fn decode<T: DeserializeOwned>(path: &str, object: Value) -> T {
    serde_json::from_value(object).unwrap_or_else(|error| panic!("{path}: {error}"))
}

#[test]
fn every_example_decodes_into_its_type_and_loses_nothing() {
    for (path, object) in examples() {
        let spec = object.get("spec").cloned().unwrap_or_default();
        let back = match object["kind"].as_str().unwrap() {
            "SeiNode" => serde_json::to_value(decode::<SeiNode>(&path, object).spec),
            "SeiNodeDeployment" => {
                serde_json::to_value(decode::<SeiNodeDeployment>(&path, object).spec)
            }
            "NMState" => serde_json::to_value(decode::<NMState>(&path, object).spec),
            "NodeNetworkConfigurationPolicy" => {
                serde_json::to_value(decode::<NodeNetworkConfigurationPolicy>(&path, object).spec)
            }
            _ => continue,
        }
        .unwrap();
        assert_contains(&back, &spec, &path);
    }
}

/// The value has everything the other has; it may have defaults besides.
fn assert_contains(value: &Value, wanted: &Value, path: &str) {
    match wanted {
        Value::Object(fields) => fields
            .iter()
            .for_each(|(key, field)| assert_contains(&value[key], field, &format!("{path}.{key}"))),
        _ => assert_eq!(value, wanted, "{path}"),
    }
}
