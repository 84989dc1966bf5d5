//! The objects of a node, rendered and applied as the operator would, and what its pod says.

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Pod;
use keelson_api::SeiNode;
use keelson_render::{Node, Platform, bootstrap, claim, proxy_config, service, stateful_set};
use kube::api::{Patch, PatchParams};
use kube::{Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

use crate::stage::Scene;

/// Applies one object.
pub(crate) async fn apply<K>(scene: &Scene, object: &K)
where
    K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
        + Clone
        + DeserializeOwned
        + Serialize
        + Debug,
{
    let params = PatchParams::apply("test").force();
    let name = object.name_any();
    let applied = scene
        .api::<K>()
        .patch(&name, &params, &Patch::Apply(object))
        .await;
    applied.expect("an object that is applied");
}

/// Applies the claim of a node.
pub(crate) async fn apply_claim(scene: &Scene, node: &SeiNode, platform: &Platform) {
    let node = Node::read(node).expect("a node");
    let claim = claim::claim(&node, platform).expect("a claim");
    apply(scene, &claim).await;
}

/// Applies the configuration of a node's proxy.
pub(crate) async fn apply_proxy_config(scene: &Scene, node: &SeiNode, platform: &Platform) {
    let node = Node::read(node).expect("a node");
    apply(scene, &proxy_config::config_map(&node, platform)).await;
}

/// Applies the StatefulSet of a node, and its Service.
pub(crate) async fn apply_set(scene: &Scene, node: &SeiNode, platform: &Platform) {
    let node = Node::read(node).expect("a node");
    apply(scene, &service::service(&node)).await;
    let set = stateful_set::stateful_set(&node, platform).expect("a StatefulSet");
    apply(scene, &set).await;
}

/// Applies the Job that replays a snapshot.
pub(crate) async fn apply_job(scene: &Scene, node: &SeiNode, platform: &Platform) {
    let node = Node::read(node).expect("a node");
    let job = bootstrap::job(&node, platform).expect("a Job");
    apply(scene, &job).await;
}

/// Applies all that a node's own pod needs.
pub(crate) async fn apply_all(scene: &Scene, node: &SeiNode, platform: &Platform) {
    apply_claim(scene, node, platform).await;
    apply_proxy_config(scene, node, platform).await;
    apply_set(scene, node, platform).await;
}

/// Waits until a pod runs.
pub(crate) async fn running(scene: &Scene, pod: &str) -> Pod {
    let runs = |pod: &Pod| phase(pod) == "Running";
    scene.until_pod("running", pod, runs).await
}

/// Its phase.
pub(crate) fn phase(pod: &Pod) -> &str {
    let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref());
    phase.unwrap_or_default()
}

/// Whether all of it is ready.
pub(crate) fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .iter()
        .flat_map(|it| it.conditions.iter().flatten());
    let mut ready = conditions.filter(|it| it.type_ == "Ready");
    ready.any(|it| it.status == "True")
}

/// Its uid.
pub(crate) fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
}
