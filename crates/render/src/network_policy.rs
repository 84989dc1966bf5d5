//! The NetworkPolicy of a node's pods: who may reach the proxy.
//!
//! Once a policy selects a pod, what it does not name is closed. So the other ports of the node are
//! named and open to all, peers above all; the sidecar's own port is not, though it is on loopback.

use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort,
    NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use keelson_api::names::Port;

use crate::container::seid;
use crate::metadata::{self, Labels};
use crate::names;
use crate::node::Node;
use crate::platform::{Access, Platform, Source};

/// Label every namespace has, with its name.
const NAMESPACE: &str = "kubernetes.io/metadata.name";

/// The policy, or nothing where the platform wants none.
pub fn network_policy(node: &Node<'_>, platform: &Platform) -> Option<NetworkPolicy> {
    let access = platform.access.as_ref()?;
    let name = names::network_policy(node.name);
    Some(NetworkPolicy {
        metadata: metadata::owned(node, name, metadata::labels(node)),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(metadata::label_selector(metadata::selector(node))),
            policy_types: Some(vec!["Ingress".to_owned()]),
            ingress: Some(vec![to_proxy(access), to_node()]),
            egress: None,
        }),
    })
}

fn to_proxy(access: &Access) -> NetworkPolicyIngressRule {
    let sources = [&access.operator].into_iter().chain(&access.scrapers);
    NetworkPolicyIngressRule {
        from: Some(sources.map(peer).collect()),
        ports: Some(vec![tcp(Port::Api), tcp(Port::ProxyHealth)]),
    }
}

fn to_node() -> NetworkPolicyIngressRule {
    let ports = seid::PORTS.into_iter().chain([Port::CosmosMetrics]);
    NetworkPolicyIngressRule {
        from: None,
        ports: Some(ports.map(tcp).collect()),
    }
}

/// Pods of a namespace: those with these labels, or all.
pub(crate) fn peer(source: &Source) -> NetworkPolicyPeer {
    let namespace = Labels::from([(NAMESPACE.to_owned(), source.namespace.clone())]);
    let labels = &source.labels;
    NetworkPolicyPeer {
        namespace_selector: Some(metadata::label_selector(namespace)),
        pod_selector: (!labels.is_empty()).then(|| metadata::label_selector(labels.clone())),
        ip_block: None,
    }
}

fn tcp(port: Port) -> NetworkPolicyPort {
    tcp_number(port.number())
}

/// A TCP port by its number.
pub(crate) fn tcp_number(number: u16) -> NetworkPolicyPort {
    NetworkPolicyPort {
        port: Some(IntOrString::Int(number.into())),
        protocol: Some("TCP".to_owned()),
        end_port: None,
    }
}
