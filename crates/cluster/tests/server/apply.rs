//! What of an object is ours, on the objects that are rendered for nodes: equal after an apply,
//! different after any edit, and equal again after the next.

use crate::stage::{Stage, soon};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use keelson_api::names::FieldManager;
use keelson_cluster::{comparable, digest, owned};
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams};
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::path::Path;

const MANAGER: &str = FieldManager::Node.as_str();

/// The objects of one golden file, moved to the test's namespace and owned by an object that exists:
/// the garbage collector takes those of an owner it does not find.
async fn golden(stage: &Stage, file: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../render/tests/golden");
    let text = std::fs::read_to_string(folder.join(file)).expect("a golden file");
    let mut objects: Vec<Value> = serde_saphyr::from_multiple(&text).expect("YAML");
    let owner = stage.put("owner", "1").await;
    for object in &mut objects {
        object["metadata"]["namespace"] = stage.name().into();
        let references = object.pointer_mut("/metadata/ownerReferences");
        for reference in references
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            reference["apiVersion"] = "v1".into();
            reference["kind"] = "ConfigMap".into();
            reference["name"] = "owner".into();
            reference["uid"] = json!(owner.metadata.uid);
        }
    }
    objects
}

fn resource(object: &Value) -> ApiResource {
    let text = |field: &str| object[field].as_str().expect("a type").to_owned();
    let (version, kind) = (text("apiVersion"), text("kind"));
    let (group, version) = version.split_once('/').unwrap_or(("", &version));
    let plural = match kind.as_str() {
        "NetworkPolicy" => "networkpolicies".to_owned(),
        kind => format!("{}s", kind.to_lowercase()),
    };
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, &kind), &plural)
}

fn is_so(live: &impl Serialize, wanted: &Value) -> bool {
    let live = serde_json::to_value(live).expect("JSON");
    digest(&owned(&live, MANAGER)) == digest(&comparable(wanted))
}

fn assert_so(live: &impl Serialize, wanted: &Value, when: &str) {
    let live = serde_json::to_value(live).expect("JSON");
    let (have, want) = (owned(&live, MANAGER), comparable(wanted));
    assert!(
        digest(&have) == digest(&want),
        "{} {when}: have {have:#}\nwant {want:#}",
        wanted["kind"]
    );
}

/// Certificates of cert-manager, with the shape of its schema as far as it matters for ownership.
async fn install_certificates(stage: &Stage) {
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "certificates.cert-manager.io" },
        "spec": {
            "group": "cert-manager.io",
            "scope": "Namespaced",
            "names": { "kind": "Certificate", "plural": "certificates", "singular": "certificate" },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": { "status": {} },
                "schema": { "openAPIV3Schema": {
                    "type": "object",
                    "properties": { "spec": { "type": "object", "properties": {
                        "secretName": { "type": "string" },
                        "duration": { "type": "string" },
                        "renewBefore": { "type": "string" },
                        "revisionHistoryLimit": { "type": "integer", "default": 1 },
                        "dnsNames": { "type": "array", "items": { "type": "string" } },
                        "usages": { "type": "array", "items": { "type": "string" } },
                        "privateKey": { "type": "object", "properties": {
                            "algorithm": { "type": "string" },
                            "size": { "type": "integer" },
                            "rotationPolicy": { "type": "string" },
                            "encoding": { "type": "string", "default": "PKCS1" },
                        } },
                        "issuerRef": { "type": "object", "properties": {
                            "group": { "type": "string" },
                            "kind": { "type": "string" },
                            "name": { "type": "string" },
                        } },
                    } } },
                } },
            }],
        },
    });
    let api: Api<CustomResourceDefinition> = Api::all(stage.cluster.client());
    let name = "certificates.cert-manager.io";
    let how = PatchParams::apply("test").force();
    api.patch(name, &how, &Patch::Apply(&crd))
        .await
        .expect("a type");
    let served = await_condition(api, name, conditions::is_crd_established());
    soon("the type Certificate", served)
        .await
        .expect("an established type");
}

/// What somebody else may do to a kind, and what we may stop wanting of it.
fn edits(kind: &str) -> (Value, &'static str) {
    match kind {
        "ConfigMap" => (json!({ "data": { "config.yaml": "other" } }), "/data"),
        "Service" => (
            json!({ "spec": { "publishNotReadyAddresses": false } }),
            "/spec/publishNotReadyAddresses",
        ),
        "NetworkPolicy" => (json!({ "spec": { "ingress": [] } }), "/spec/ingress"),
        "StatefulSet" => (
            json!({ "spec": { "replicas": 0 } }),
            "/spec/template/metadata/annotations",
        ),
        "Certificate" => (
            json!({ "spec": { "dnsNames": ["elsewhere"] } }),
            "/spec/renewBefore",
        ),
        // Of a claim little can be edited.
        "PersistentVolumeClaim" => (
            json!({ "metadata": { "labels": { "team": "other" } } }),
            "/metadata/labels/team",
        ),
        other => panic!("no edits for {other}"),
    }
}

fn without(wanted: &Value, pointer: &str) -> Value {
    let mut less = wanted.clone();
    let (parent, field) = pointer.rsplit_once('/').expect("a path");
    let parent = less.pointer_mut(parent).and_then(Value::as_object_mut);
    let removed = parent.expect("the parent").remove(field);
    assert!(removed.is_some(), "{pointer} was wanted before");
    less
}

#[tokio::test]
async fn every_rendered_object_is_so_after_an_apply_and_not_after_an_edit() {
    let stage = Stage::new("owned-golden").await;
    install_certificates(&stage).await;
    let calls = stage.calls();
    let mut kinds = Vec::new();
    for wanted in golden(&stage, "tls/issuer.yaml").await {
        let resource = resource(&wanted);
        let apply =
            async |wanted: &Value| calls.apply_as(&resource, wanted).await.expect("applied");
        let live = apply(&wanted).await;
        assert_so(&live, &wanted, "after an apply");
        let (foreign, less) = edits(&resource.kind);
        let api: Api<DynamicObject> =
            Api::namespaced_with(stage.cluster.client(), stage.name(), &resource);
        let name = live.metadata.name.clone().expect("a name");
        let how = PatchParams {
            field_manager: Some("somebody".to_owned()),
            ..PatchParams::default()
        };
        let edited = api.patch(&name, &how, &Patch::Merge(&foreign)).await;
        let edited = edited.expect("an edit");
        assert!(!is_so(&edited, &wanted), "{} after an edit", resource.kind);
        assert_so(&apply(&wanted).await, &wanted, "after the edit was undone");
        let wanted_less = without(&wanted, less);
        let live = apply(&wanted).await;
        assert!(
            !is_so(&live, &wanted_less),
            "{} with a leftover",
            resource.kind
        );
        assert_so(&apply(&wanted_less).await, &wanted_less, "without it");
        kinds.push(resource.kind);
    }
    kinds.sort();
    assert_eq!(
        kinds,
        [
            "Certificate",
            "ConfigMap",
            "NetworkPolicy",
            "PersistentVolumeClaim",
            "Service",
            "StatefulSet"
        ]
    );
}

#[tokio::test]
async fn what_is_so_stays_so_for_every_mode_and_through_the_types_of_a_mirror() {
    for (number, file) in [
        "mode/archive.yaml",
        "mode/replayer.yaml",
        "mode/validator.yaml",
        "tls/secret.yaml",
        "kube-rbac-proxy/secret.yaml",
    ]
    .iter()
    .enumerate()
    {
        let stage = Stage::new(&format!("owned-mode-{number}")).await;
        for wanted in golden(&stage, file).await {
            match wanted["kind"].as_str().expect("a kind") {
                "ConfigMap" => typed::<ConfigMap>(&stage, &wanted).await,
                "Service" => typed::<Service>(&stage, &wanted).await,
                "NetworkPolicy" => typed::<NetworkPolicy>(&stage, &wanted).await,
                "StatefulSet" => typed::<StatefulSet>(&stage, &wanted).await,
                "PersistentVolumeClaim" => typed::<PersistentVolumeClaim>(&stage, &wanted).await,
                other => panic!("{file} has a {other}"),
            }
        }
    }
}

async fn typed<K>(stage: &Stage, wanted: &Value)
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::NamespaceResourceScope>
        + Serialize
        + DeserializeOwned
        + Clone
        + std::fmt::Debug,
{
    let calls = stage.calls();
    let object: K = serde_json::from_value(wanted.clone()).expect("its type");
    let live = calls.apply(&object).await.expect("applied");
    assert_so(&live, wanted, "as typed");
    let name = live.meta().name.clone().expect("a name");
    let again = calls.apply(&object).await.expect("applied");
    assert_so(&again, wanted, "after a second apply");
    let read: Option<K> = calls.get(stage.name(), &name).await.expect("an answer");
    assert_so(&read.expect("the object"), wanted, "as read");
}

#[tokio::test]
async fn a_quantity_written_in_another_way_is_the_same_quantity() {
    let stage = Stage::new("owned-quantities").await;
    let labels = json!({ "app": "a" });
    let wanted = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": { "name": "a", "namespace": stage.name() },
        "spec": {
            "replicas": 0,
            "serviceName": "a",
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "containers": [{
                        "name": "a",
                        "image": "a",
                        "resources": {
                            "requests": { "cpu": "0.5", "memory": "2048Mi", "ephemeral-storage": "1000" },
                            "limits": { "cpu": "1000m", "memory": "2.5Gi", "ephemeral-storage": "1000000" },
                        },
                    }],
                    "volumes": [{ "name": "tmp", "emptyDir": { "sizeLimit": "1024Ki" } }],
                },
            },
        },
    });
    let live = stage
        .calls()
        .apply_as(&resource(&wanted), &wanted)
        .await
        .expect("applied");
    let stored = &live.data["spec"]["template"]["spec"]["containers"][0]["resources"];
    assert_eq!(
        stored["requests"]["memory"], "2Gi",
        "the server writes it in its way"
    );
    assert_so(&live, &wanted, "after an apply");
}

#[tokio::test]
async fn a_zero_the_server_does_not_keep_is_still_ours_until_somebody_sets_it() {
    let stage = Stage::new("owned-zero").await;
    let labels = json!({ "app": "a" });
    let wanted = json!({
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": { "name": "a", "namespace": stage.name(), "annotations": {}, "labels": null },
        "spec": {
            "replicas": 0,
            "minReadySeconds": 0,
            "serviceName": "a",
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": {
                    "hostNetwork": false,
                    "nodeName": "",
                    "tolerations": [],
                    "securityContext": {},
                    "containers": [{ "name": "a", "image": "a", "args": ["", "0"] }],
                    "volumes": [{ "name": "tmp", "emptyDir": {} }],
                },
            },
        },
    });
    let (calls, resource) = (stage.calls(), resource(&wanted));
    let live = calls.apply_as(&resource, &wanted).await.expect("applied");
    assert!(
        live.data["spec"].get("minReadySeconds").is_none(),
        "the server drops it"
    );
    assert_so(&live, &wanted, "after an apply");
    for foreign in [
        json!({ "spec": { "minReadySeconds": 5 } }),
        json!({ "spec": { "replicas": 1 } }),
    ] {
        let api: Api<StatefulSet> = Api::namespaced(stage.cluster.client(), stage.name());
        let how = PatchParams::default();
        let edited = api.patch("a", &how, &Patch::Merge(&foreign)).await;
        assert!(!is_so(&edited.expect("an edit"), &wanted), "{foreign}");
        let live = calls.apply_as(&resource, &wanted).await.expect("applied");
        assert_so(&live, &wanted, "after the next apply");
    }
}

#[tokio::test]
async fn what_is_owned_as_a_whole_is_so_only_with_its_defaults_spelled_out() {
    let stage = Stage::new("owned-atomic").await;
    let policy = |port: Value| {
        json!({
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": { "name": "a", "namespace": stage.name() },
            "spec": {
                "podSelector": {},
                "policyTypes": ["Ingress"],
                "ingress": [{ "ports": [port] }],
            },
        })
    };
    let (short, whole) = (
        policy(json!({ "port": 80 })),
        policy(json!({ "port": 80, "protocol": "TCP" })),
    );
    let calls = stage.calls();
    let live = calls.apply_as(&resource(&short), &short).await;
    assert!(
        !is_so(&live.expect("applied"), &short),
        "the default is in the rule"
    );
    let live = calls.apply_as(&resource(&whole), &whole).await;
    assert_so(&live.expect("applied"), &whole, "with the default");
}

#[tokio::test]
async fn what_another_applied_or_a_status_is_not_ours() {
    let stage = Stage::new("owned-others").await;
    let live = stage.put("a", "theirs").await;
    let live = serde_json::to_value(&live).expect("JSON");
    assert_eq!(owned(&live, MANAGER), json!({}));
    // Neither is what we wrote in another way than by applying it.
    let patch = json!({ "data": { "more": "ours" } });
    let merged = stage
        .calls()
        .merge::<ConfigMap>(stage.name(), "a", &patch)
        .await;
    let live = serde_json::to_value(merged.expect("an answer")).expect("JSON");
    assert_eq!(owned(&live, MANAGER), json!({}));
    assert_eq!(
        owned(&live, "somebody"),
        json!({ "data": { "value": "theirs" } })
    );
}
