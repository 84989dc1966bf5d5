//! Objects the original operator wrote apply unchanged, status and all, and nothing of them is lost.
//!
//! The objects are not part of this workspace. Where they are not beside it, the tests say so and
//! pass.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

use keelson_api::{SeiNode, SeiNodeDeployment};
use keelson_testbed::Cluster;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams, ValidationDirective};
use kube::{CustomResourceExt, ResourceExt};
use serde_json::{Value, json};

/// The folder of the objects, where it is at hand.
fn folder() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/original");
    if folder.is_dir() {
        return Some(folder);
    }
    println!("skipped: the original's objects are not beside this workspace");
    None
}

fn items(path: &Path) -> Vec<Value> {
    let list: Value = serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    list["items"]
        .as_array()
        .cloned()
        .unwrap_or_else(|| vec![list])
}

/// The object as its author wrote it: without what the API server adds, and without its owner, who
/// has another uid here.
fn as_written(object: &Value) -> Value {
    let metadata = &object["metadata"];
    let mut written = json!({
        "apiVersion": object["apiVersion"],
        "kind": object["kind"],
        "metadata": { "name": metadata["name"] },
        "spec": object["spec"],
    });
    for field in ["labels", "annotations", "finalizers"] {
        if let Some(value) = metadata.get(field) {
            written["metadata"][field] = value.clone();
        }
    }
    written
}

/// Applies the object, writes its status, and compares both with the original's.
async fn adopt(api: &Api<DynamicObject>, object: &Value) -> Result<DynamicObject, String> {
    let name = object["metadata"]["name"].as_str().unwrap();
    let params = PatchParams::apply("adoption-test").validation_strict();
    let written = as_written(object);
    let applied = api.patch(name, &params, &Patch::Apply(&written)).await;
    let applied = applied.map_err(|error| format!("{name}: {error}"))?;
    if applied.data["spec"] != object["spec"] {
        return Err(format!("{name}: the spec became {}", applied.data["spec"]));
    }
    let strict = PatchParams {
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::default()
    };
    let status = json!({ "status": object["status"] });
    let stored = api
        .patch_status(name, &strict, &Patch::Merge(&status))
        .await;
    let stored = stored.map_err(|error| format!("{name}: status: {error}"))?;
    if stored.data["status"] != object["status"] {
        return Err(format!(
            "{name}: the status became {}",
            stored.data["status"]
        ));
    }
    Ok(stored)
}

async fn adopt_all(label: &str, resource: ApiResource, objects: Vec<Value>) -> Vec<DynamicObject> {
    let cluster = Cluster::shared().await;
    cluster.install_crds().await.unwrap();
    let namespace = cluster.namespace(label).await;
    let api: Api<DynamicObject> =
        Api::namespaced_with(cluster.client(), namespace.name(), &resource);
    let (mut adopted, mut wrong) = (Vec::new(), Vec::new());
    for object in objects {
        match adopt(&api, &object).await {
            Ok(object) => adopted.push(object),
            Err(error) => wrong.push(error),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    adopted
}

#[tokio::test]
async fn nodes_of_the_original_apply_unchanged_and_decode() {
    let Some(folder) = folder() else { return };
    let objects = items(&folder.join("seinodes.yaml"));
    let adopted = adopt_all("nodes", SeiNode::api_resource(), objects).await;
    assert_eq!(adopted.len(), 7);
    for object in adopted {
        let name = object.name_any();
        let node: SeiNode = object.try_parse().unwrap();
        let status = node.status.unwrap();
        assert!(node.spec.mode().is_some(), "{name}");
        assert!(status.phase.is_some(), "{name}");
        let with_plan = ["bootstrapping", "full-s3", "full-statesync"].contains(&name.as_str());
        assert_eq!(status.plan.is_some(), with_plan, "{name}");
    }
}

#[tokio::test]
async fn a_node_adopted_in_the_middle_of_an_edit_keeps_its_plan() {
    let Some(folder) = folder() else { return };
    let objects = items(&folder.join("seinode-after-image-edit.yaml"));
    let adopted = adopt_all("edit", SeiNode::api_resource(), objects).await;
    let node: SeiNode = adopted[0].clone().try_parse().unwrap();
    assert_eq!(node.status.unwrap().plan.unwrap().tasks.len(), 5);
}

#[tokio::test]
async fn fleets_of_the_original_apply_unchanged_and_decode() {
    let Some(folder) = folder() else { return };
    let objects = items(&folder.join("seinodedeployments.yaml"));
    let adopted = adopt_all("fleets", SeiNodeDeployment::api_resource(), objects).await;
    let fleet: SeiNodeDeployment = adopted[0].clone().try_parse().unwrap();
    let status = fleet.status.unwrap();
    assert_eq!(status.nodes.len(), 2);
    assert_eq!(status.endpoints.unwrap().nodes[1].name, "rpc-1");
}
