//! How fast a cluster is there, from a warm cache: the promise a person notices first.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use keelson_testbed::{Cluster, Pods, Size};
use kube::Api;
use kube::api::PostParams;
use kube::runtime::wait::await_condition;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// One after the other: two clusters that start at once share two cores.
#[tokio::test]
async fn a_control_plane_is_ready_within_8_s_and_a_pod_within_20_s_of_asking() {
    let asked = Instant::now();
    let control_plane = Cluster::start(Size::ControlPlane)
        .await
        .expect("a control plane");
    let took = asked.elapsed();
    println!("control plane ready after {took:.1?}");
    assert!(
        took <= Duration::from_secs(8),
        "the control plane took {took:.1?}"
    );
    drop(control_plane);

    let asked = Instant::now();
    let cluster = Cluster::start(Size::Pods(Pods::default()))
        .await
        .expect("a cluster with pods");
    println!("node ready after {:.1?}", asked.elapsed());
    let sets = Api::<StatefulSet>::namespaced(cluster.client(), "default");
    sets.create(&PostParams::default(), &web())
        .await
        .expect("a StatefulSet");
    let pods = Api::<Pod>::namespaced(cluster.client(), "default");
    let ready = await_condition(pods, "web-0", is_ready);
    timeout(Duration::from_secs(40), ready)
        .await
        .expect("a pod within 40 s")
        .expect("a watch");
    let took = asked.elapsed();
    println!("pod with a native sidecar, a token and a volume ready after {took:.1?}");
    assert!(took <= Duration::from_secs(20), "the pod took {took:.1?}");
}

fn is_ready(pod: Option<&Pod>) -> bool {
    let conditions = pod.and_then(|pod| pod.status.as_ref()?.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// An init container, a native sidecar that serves only once it has its token, and a volume the
/// non-root user can write.
fn web() -> StatefulSet {
    let text = include_str!("web.yaml");
    serde_saphyr::from_str(text).expect("a StatefulSet")
}
