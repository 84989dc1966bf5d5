//! What the API server makes of an object besides judging it: versions, warnings, defaults, nulls.

use keelson_api::{NMState, SeiNode};
use keelson_testbed::Cluster;
use kube::api::{Api, DynamicObject, ListParams, PostParams};
use kube::{Client, CustomResourceExt, ResourceExt};
use serde_json::{Value, json};

async fn client() -> Client {
    let cluster = Cluster::shared().await;
    cluster.install_crds().await.unwrap();
    cluster.client()
}

/// Posts an object and returns the answer's object and its warnings.
async fn post(client: &Client, path: &str, object: &Value) -> (Value, Vec<String>) {
    let request = http::Request::post(path)
        .header("content-type", "application/json")
        .body(serde_json::to_vec(object).unwrap())
        .unwrap();
    let response = client.send(request.map(Into::into)).await.unwrap();
    let warnings = response.headers().get_all("warning").iter();
    let warnings = warnings
        .map(|value| value.to_str().unwrap().to_owned())
        .collect();
    let body = response.into_body().collect_bytes().await.unwrap();
    (serde_json::from_slice(&body).unwrap(), warnings)
}

#[tokio::test]
async fn an_nmstate_written_as_v1beta1_is_read_as_v1_and_the_writer_is_warned() {
    let client = client().await;
    let old = json!({
        "apiVersion": "nmstate.io/v1beta1",
        "kind": "NMState",
        "metadata": { "name": "written-as-beta" },
        "spec": { "logLevel": "debug" },
    });
    let (stored, warnings) = post(&client, "/apis/nmstate.io/v1beta1/nmstates", &old).await;
    assert_eq!(stored["apiVersion"], "nmstate.io/v1beta1", "{stored}");
    let text = "nmstate/v1beta1 deprecated, use nmstate/v1 instead";
    assert!(
        warnings.iter().any(|warning| warning.contains(text)),
        "{warnings:?}"
    );

    let read = Api::<NMState>::all(client)
        .get("written-as-beta")
        .await
        .unwrap();
    assert_eq!(
        read.spec.log_level,
        Some(keelson_api::nmstate::LogLevel::Debug)
    );
    assert_eq!(
        read.spec.metrics_configuration.unwrap().bind_address,
        ":8089"
    );
}

#[tokio::test]
async fn a_policy_written_as_v1beta1_warns_its_writer() {
    let client = client().await;
    let path = "/apis/nmstate.io/v1beta1/nodenetworkconfigurationpolicies";
    let kind = "NodeNetworkConfigurationPolicy";
    let old =
        json!({ "apiVersion": "nmstate.io/v1beta1", "kind": kind, "metadata": { "name": "beta" } });
    let (stored, warnings) = post(&client, path, &old).await;
    assert_eq!(stored["spec"]["maxUnavailable"], "50%", "{stored}");
    assert!(
        warnings
            .iter()
            .any(|warning| warning.contains("use nmstate.io/v1")),
        "{warnings:?}"
    );
}

#[tokio::test]
async fn an_nmstate_without_a_spec_gets_the_defaults_inside_it() {
    let client = client().await;
    let bare =
        json!({ "apiVersion": "nmstate.io/v1", "kind": "NMState", "metadata": { "name": "bare" } });
    let (stored, warnings) = post(&client, "/apis/nmstate.io/v1/nmstates", &bare).await;
    assert_eq!(
        stored["spec"],
        json!({
            "logLevel": "info",
            "metricsConfiguration": { "bindAddress": ":8089" },
            "probeConfiguration": {
                "timeoutSeconds": 120,
                "checkpointSeconds": 240,
                "dns": { "host": "root-servers.net" },
            },
        })
    );
    assert!(warnings.is_empty(), "{warnings:?}");
}

#[tokio::test]
async fn a_null_is_dropped_and_counts_as_absent() {
    let cluster = Cluster::shared().await;
    let client = client().await;
    let namespace = cluster.namespace("nulls").await;
    let path = format!(
        "/apis/sei.io/v1alpha1/namespaces/{}/seinodes",
        namespace.name()
    );
    let node = json!({
        "apiVersion": "sei.io/v1alpha1",
        "kind": "SeiNode",
        "metadata": { "name": "nulls" },
        "spec": {
            "chainId": "c", "image": "i", "fullNode": { "snapshot": null }, "archive": null,
            "sidecar": { "tls": { "secretName": "s", "issuerName": null, "issuerKind": null } },
        },
    });
    let (stored, _) = post(&client, &path, &node).await;
    let expected = json!({
        "chainId": "c", "image": "i", "fullNode": {},
        "sidecar": { "port": 7777, "tls": { "secretName": "s" } },
    });
    assert_eq!(stored["spec"], expected, "{stored}");
}

#[tokio::test]
async fn nodes_are_selected_by_their_chain() {
    let cluster = Cluster::shared().await;
    let client = client().await;
    let namespace = cluster.namespace("chains").await;
    let api: Api<SeiNode> = Api::namespaced(client, namespace.name());
    for (name, chain) in [("a", "pacific-1"), ("b", "atlantic-2"), ("c", "pacific-1")] {
        let spec = json!({ "chainId": chain, "image": "i", "fullNode": {} });
        let node = SeiNode::new(name, serde_json::from_value(spec).unwrap());
        api.create(&PostParams::default(), &node).await.unwrap();
    }
    let selected = api
        .list(&ListParams::default().fields("spec.chainId=pacific-1"))
        .await
        .unwrap();
    let names: Vec<_> = selected.iter().map(|node| node.name_any()).collect();
    assert_eq!(names, ["a", "c"]);
}

#[tokio::test]
async fn kinds_without_a_spec_take_a_status() {
    let client = client().await;
    for resource in [
        keelson_api::NodeNetworkState::api_resource(),
        keelson_api::NodeNetworkConfigurationEnactment::api_resource(),
    ] {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
        let object = DynamicObject::new("host-1.policy", &resource);
        api.create(&PostParams::default(), &object).await.unwrap();
        let status = json!({ "status": {
            "conditions": [{ "type": "Available", "status": "True", "lastHeartbeatTime": "2026-01-02T03:04:05Z" }],
        } });
        let patch = kube::api::Patch::Merge(&status);
        let params = kube::api::PatchParams {
            field_validation: Some(kube::api::ValidationDirective::Strict),
            ..Default::default()
        };
        let stored = api
            .patch_status("host-1.policy", &params, &patch)
            .await
            .unwrap();
        assert_eq!(stored.data["status"], status["status"], "{}", resource.kind);
    }
}
