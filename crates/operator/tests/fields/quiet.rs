//! A settled node is silent, and what others do to its objects is put right without its pod.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use keelson_api::node_condition::{NodeCondition, NodeReason};
use kube::Resource;
use kube::api::{Patch, PatchParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::mark::{Change, Mark, look_again, running, writes};
use crate::operator::Operator;
use crate::stage::{Scene, platform};

async fn patch<K>(scene: &Scene, name: &str, patch: Value)
where
    K: Resource<Scope = k8s_openapi::NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + std::fmt::Debug,
{
    let params = PatchParams::default();
    let patched = scene
        .api::<K>()
        .patch(name, &params, &Patch::Merge(patch))
        .await;
    patched.expect("a patch");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_settled_node_is_looked_at_again_and_again_and_nothing_is_written() {
    let peers = json!([{ "label": { "selector": { "chain": "pacific" } } }]);
    let more = json!({
        "peers": peers, "podLabels": { "team": "a" }, "overrides": { "network.p2p.max_connections": "200" },
        "sidecar": { "image": "registry.example/keelson-sidecar:9", "resources": { "limits": { "memory": "1Gi" } } },
    });
    let (scene, operator) = running("quiet", more).await;
    let (ready, reason) = (NodeCondition::Ready, NodeReason::NodeReady);
    scene.until_condition("node", ready, true, reason).await;
    look_again(&scene, "node").await;
    scene.faults().forget();
    let touch = || json!({ "metadata": { "annotations": { "example.com/touched": jiff::Timestamp::now().to_string() }, "labels": { "example.com/team": "b" } } });
    patch::<ConfigMap>(&scene, "node-rbac-proxy-config", touch()).await;
    patch::<Service>(&scene, "node", touch()).await;
    patch::<StatefulSet>(&scene, "node", touch()).await;
    patch::<NetworkPolicy>(&scene, "node-sidecar", touch()).await;
    for _ in 0..3 {
        look_again(&scene, "node").await;
    }
    assert_eq!(writes(&scene), Vec::<String>::new());
    drop(operator);
    let _operator = Operator::start(&scene, platform()).await;
    look_again(&scene, "node").await;
    assert_eq!(writes(&scene), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_others_do_to_a_nodes_objects_is_put_right_without_its_pod() {
    let (scene, _operator) = running("repaired", json!({})).await;
    let mark = Mark::of(&scene, "node").await;
    // Edited.
    patch::<ConfigMap>(
        &scene,
        "node-rbac-proxy-config",
        json!({ "data": { "config.yaml": "{}" } }),
    )
    .await;
    scene
        .until_object(
            "its repair",
            "node-rbac-proxy-config",
            |map: Option<&ConfigMap>| {
                map.and_then(|it| it.data.as_ref()?.get("config.yaml"))
                    .is_some_and(|it| it.contains("sei.io"))
            },
        )
        .await;
    patch::<Service>(
        &scene,
        "node",
        json!({ "spec": { "selector": { "other": "pods" } } }),
    )
    .await;
    scene
        .until_object("its repair", "node", |service: Option<&Service>| {
            let spec = service.and_then(|it| it.spec.as_ref());
            spec.and_then(|it| it.selector.as_ref())
                .is_some_and(|it| !it.contains_key("other"))
        })
        .await;
    patch::<NetworkPolicy>(&scene, "node-sidecar", json!({ "spec": { "ingress": [] } })).await;
    scene
        .until_object(
            "its repair",
            "node-sidecar",
            |policy: Option<&NetworkPolicy>| {
                let spec = policy.and_then(|it| it.spec.as_ref());
                spec.and_then(|it| it.ingress.as_ref())
                    .is_some_and(|it| !it.is_empty())
            },
        )
        .await;
    // Deleted.
    scene.delete::<ConfigMap>("node-rbac-proxy-config").await;
    scene
        .until_object(
            "its return",
            "node-rbac-proxy-config",
            |it: Option<&ConfigMap>| it.is_some(),
        )
        .await;
    scene.delete::<Service>("node").await;
    scene
        .until_object("its return", "node", |it: Option<&Service>| it.is_some())
        .await;
    scene.delete::<NetworkPolicy>("node-sidecar").await;
    scene
        .until_object(
            "its return",
            "node-sidecar",
            |it: Option<&NetworkPolicy>| it.is_some(),
        )
        .await;
    scene.settled("node").await;
    look_again(&scene, "node").await;
    assert_eq!(mark.since(&scene).await, Change::hot(&[]));
}
