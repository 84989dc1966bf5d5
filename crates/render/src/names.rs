//! Names derived from a node's name, one function each.
//!
//! They are the original's, so that its objects are adopted and not doubled. Names that are the same
//! for every node are in [`keelson_api::names`].

use crate::node::Node;

/// The StatefulSet of a node.
pub fn stateful_set(node: &str) -> String {
    node.to_owned()
}

/// The headless Service of a node; while a bootstrap Job runs, the same name leads to its pod.
pub fn service(node: &str) -> String {
    node.to_owned()
}

/// The node's only pod. The bootstrap pod has it as its host name, so that one address leads to both.
pub fn pod(node: &str) -> String {
    format!("{}-0", stateful_set(node))
}

/// The claim the node's data is on: the imported one, or the node's own.
pub fn claim(node: &Node<'_>) -> String {
    imported_claim(node).map_or_else(|| own_claim(node.name), str::to_owned)
}

/// The claim a node imports. An empty name, which older objects may have, names none.
pub(crate) fn imported_claim<'a>(node: &Node<'a>) -> Option<&'a str> {
    node.spec.imported_claim().filter(|name| !name.is_empty())
}

/// The claim that is made for a node that imports none.
pub fn own_claim(node: &str) -> String {
    format!("data-{node}")
}

/// The ConfigMap with the proxy's policy and mode.
pub fn proxy_config(node: &str) -> String {
    format!("{node}-rbac-proxy-config")
}

/// The Certificate that is ordered for a node, and the Secret cert-manager writes for it.
pub fn certificate(node: &str) -> String {
    format!("{node}-sidecar-tls")
}

/// The NetworkPolicy of a node.
pub fn network_policy(node: &str) -> String {
    format!("{node}-sidecar")
}

/// The Job that replays a snapshot before the node's own pod exists.
pub fn bootstrap_job(node: &str) -> String {
    format!("{node}-bootstrap")
}

/// The names the sidecar is called by, which its certificate must cover: the Service's and the
/// pod's.
pub fn dns(node: &str, namespace: &str) -> [String; 2] {
    let service = format!("{}.{namespace}.svc.cluster.local", service(node));
    let pod = format!("{}.{service}", pod(node));
    [service, pod]
}

/// The audience of tokens meant for this node's sidecar and no other.
pub fn audience(node: &str, namespace: &str) -> String {
    format!("keelson-sidecar/{namespace}/{node}")
}
