//! The headless Services: of the node, and of its bootstrap pod under the same name.
//!
//! Both publish pods that are not ready: the operator talks to the sidecar before the node starts,
//! and peers find a node that catches up.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use keelson_api::names::Port;

use crate::container::seid;
use crate::metadata::{self, Labels};
use crate::names;
use crate::node::Node;

/// The Service of a node: the ports of its process, and the sidecar's behind the proxy.
pub fn service(node: &Node<'_>) -> Service {
    let ports: Vec<_> = seid::PORTS.into_iter().chain([Port::Api]).collect();
    headless(node, metadata::labels(node), &ports)
}

/// The Service of the bootstrap pod: the sidecar alone.
pub fn bootstrap(node: &Node<'_>) -> Service {
    headless(node, metadata::bootstrap_labels(node), &[Port::Api])
}

fn headless(node: &Node<'_>, labels: Labels, ports: &[Port]) -> Service {
    Service {
        metadata: metadata::owned(node, names::service(node.name), labels),
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            publish_not_ready_addresses: Some(true),
            selector: Some(metadata::selector(node)),
            ports: Some(ports.iter().map(|port| service_port(*port)).collect()),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

fn service_port(port: Port) -> ServicePort {
    let number = i32::from(port.number());
    ServicePort {
        name: Some(port.to_string()),
        port: number,
        target_port: Some(IntOrString::Int(number)),
        protocol: Some("TCP".to_owned()),
        app_protocol: (port == Port::Grpc).then(|| "kubernetes.io/h2c".to_owned()),
        ..ServicePort::default()
    }
}
