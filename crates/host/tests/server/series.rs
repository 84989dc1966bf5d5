//! Every series follows the objects it counts, and goes with them.

use crate::common::client::Tls;
use crate::common::program::Folder;
use crate::world::{cluster, delete, enact, has, holds, page_is, put};
use keelson_api::{
    NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy, NodeNetworkState,
};
use serde_json::json;

#[tokio::test]
async fn every_series_follows_the_objects_it_counts() {
    let cluster = cluster().await;
    let client = cluster.client();
    let folder = Folder::certified(cluster.authority());
    let metrics = folder.start_at(&cluster.kubeconfig(), &["metrics", "--metrics-auth=None"]);
    metrics.healthy().await;
    let tls = Tls::of(cluster.authority());
    let page = page_is(&metrics, &tls, "a first list", |page| {
        ["policies", "enactments", "states"].iter().all(|source| {
            let series = format!("keelson_host_source_synced{{source=\"{source}\"}}");
            has(page, &series, Some(1))
        })
    })
    .await;
    let degraded = "kubernetes_nmstate_policies_status{status=\"Degraded\"}";
    assert!(has(&page, degraded, Some(0)), "noughts: {page}");

    put::<NodeNetworkConfigurationPolicy>(
        &client,
        "series",
        json!({}),
        json!({"conditions": holds("Degraded")}),
    )
    .await;
    let features = json!(["series-feature", "series-other"]);
    let status = json!({"conditions": holds("Failing"), "features": features});
    enact(&client, "series-node", "one", status).await;
    let to = |destination: &str| json!({"destination": destination});
    let state = json!({
        "interfaces": [{"type": "bond", "name": "b"}, {"type": "bond"}, {"type": "veth"}],
        "routes": {"running": [to("0.0.0.0/0"), to("::/0")], "config": [to("0.0.0.0/0")]},
    });
    let state = json!({"currentState": state});
    put::<NodeNetworkState>(&client, "series-node", json!({}), state).await;

    let feature = "kubernetes_nmstate_features_applied{name=\"series-feature\"}";
    let other = "kubernetes_nmstate_features_applied{name=\"series-other\"}";
    let failing = "kubernetes_nmstate_enactments_status{node=\"series-node\",status=\"Failing\"}";
    let pending = "kubernetes_nmstate_enactments_status{node=\"series-node\",status=\"Pending\"}";
    let bonds = "kubernetes_nmstate_network_interfaces{type=\"bond\",node=\"series-node\"}";
    let fixed = "kubernetes_nmstate_routes{node=\"series-node\",ip_stack=\"ipv4\",type=\"static\"}";
    let dynamic =
        "kubernetes_nmstate_routes{node=\"series-node\",ip_stack=\"ipv6\",type=\"dynamic\"}";
    page_is(&metrics, &tls, "everything counted", |page| {
        has(page, degraded, Some(1))
            && has(page, feature, Some(1))
            && has(page, failing, Some(1))
            && has(page, pending, Some(0))
            && has(page, bonds, Some(2))
            && has(page, fixed, Some(1))
            && has(page, dynamic, Some(1))
    })
    .await;

    let status = json!({"conditions": holds("Pending"), "features": ["series-other"]});
    enact(&client, "series-node", "one", status).await;
    page_is(&metrics, &tls, "a change", |page| {
        has(page, failing, Some(0))
            && has(page, pending, Some(1))
            && has(page, feature, None)
            && has(page, other, Some(1))
    })
    .await;

    delete::<NodeNetworkConfigurationPolicy>(&client, "series").await;
    delete::<NodeNetworkConfigurationEnactment>(&client, "series-node.one").await;
    delete::<NodeNetworkState>(&client, "series-node").await;
    page_is(&metrics, &tls, "everything gone", |page| {
        has(page, degraded, Some(0)) && !page.contains("series-")
    })
    .await;
}
