//! Two whole clusters at once on one machine: same addresses, same ports, and neither notices.

use k8s_openapi::api::core::v1::{Node, Pod};
use keelson_testbed::{Cluster, Pods, Size, until};
use kube::Api;
use kube::api::PostParams;
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;

async fn start(zone: &str) -> Cluster {
    let node_labels = BTreeMap::from([("keelson.test/zone".to_owned(), zone.to_owned())]);
    let storage_classes = vec!["fast".to_owned(), "large".to_owned()];
    let pods = Pods {
        node_labels,
        storage_classes,
        ..Pods::default()
    };
    Cluster::start(Size::Pods(pods))
        .await
        .expect("a cluster with pods")
}

/// A pod that ends well only inside the cluster it belongs to: the name is looked up in its DNS,
/// and the port reached through its Service rules.
fn probe() -> Pod {
    let script =
        "nslookup kubernetes.default.svc.cluster.local && nc -w 5 10.96.0.1 443 < /dev/null";
    serde_json::from_value(json!({
        "metadata": { "name": "probe" },
        "spec": {
            "restartPolicy": "Never",
            "nodeSelector": { "keelson.test/zone": "here" },
            "containers": [{
                "name": "probe", "image": "localhost/busybox:1", "command": ["sh", "-c", script],
            }],
        },
    }))
    .expect("a pod")
}

async fn phase(pods: &Api<Pod>) -> String {
    let pod = pods.get("probe").await.expect("the pod");
    pod.status
        .and_then(|status| status.phase)
        .unwrap_or_default()
}

#[tokio::test]
async fn two_clusters_run_side_by_side_and_share_nothing() {
    let (here, there) = tokio::join!(start("here"), start("there"));
    let mut pods = Vec::new();
    for cluster in [&here, &there] {
        let api = Api::<Pod>::namespaced(cluster.client(), "default");
        api.create(&PostParams::default(), &probe())
            .await
            .expect("a pod");
        pods.push(api);
    }
    until(
        "the pod of the matching node",
        Duration::from_secs(60),
        async || match phase(&pods[0]).await.as_str() {
            "Succeeded" => Ok(()),
            other => Err(format!("its phase is {other:?}")),
        },
    )
    .await
    .expect("DNS and Service addresses work in the one cluster");
    // Same name, same node name, other label: the pod of the other cluster has nowhere to go.
    assert_eq!(phase(&pods[1]).await, "Pending");

    let label = async |cluster: &Cluster| {
        let node = Api::<Node>::all(cluster.client())
            .get(cluster.node())
            .await
            .expect("the node");
        node.metadata.labels.unwrap_or_default()["keelson.test/zone"].clone()
    };
    assert_eq!(
        (label(&here).await, label(&there).await),
        ("here".into(), "there".into())
    );

    // One goes, the other stays.
    let folder = here.folder().to_owned();
    drop(here);
    assert!(!folder.exists(), "a dropped cluster leaves no files");
    there
        .client()
        .apiserver_version()
        .await
        .expect("the other one still answers");
}
