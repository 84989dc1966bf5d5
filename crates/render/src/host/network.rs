//! The NetworkPolicies of webhook and metrics: nothing in or out, but for what is named.
//!
//! The handler is on the host's network, where no policy reaches. The webhook calls nobody. Policies
//! are judged behind a Service's translation, so ports are those of pods and of the API server itself.

use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer,
    NetworkPolicyPort, NetworkPolicySpec,
};
use keelson_api::host::{HEALTH_PORT, METRICS, WEBHOOK, WEBHOOK_PORT};

use super::object::Object;
use super::{HostInstall, metadata};
use crate::metadata::{Labels, label_selector};
use crate::network_policy::{peer, tcp_number as tcp};
use crate::platform::Source;

/// Where names are resolved: as a rule, and at the pods of OpenShift's resolver.
const DNS: [u16; 2] = [53, 5353];

pub(super) fn objects(install: &HostInstall<'_>, metrics_port: u16) -> Vec<Object> {
    let scraper = Source {
        namespace: install.monitoring_namespace.to_owned(),
        labels: Labels::new(),
    };
    let operator = peer(install.operator);
    // The operator sees by a handshake which certificate and which profile are in force.
    let readers = vec![peer(&scraper), operator.clone()];
    let api: Vec<_> = install.api_ports.iter().map(|port| tcp(*port)).collect();
    let dns = DNS.into_iter().flat_map(|port| [tcp(port), udp(port)]);
    vec![
        deny(install),
        to(
            install,
            "allow-webhook-ingress",
            WEBHOOK,
            None,
            WEBHOOK_PORT,
        ),
        to(
            install,
            "allow-webhook-ingress-health",
            WEBHOOK,
            Some(vec![operator.clone()]),
            HEALTH_PORT,
        ),
        to(
            install,
            "allow-metrics-ingress",
            METRICS,
            Some(readers),
            metrics_port,
        ),
        to(
            install,
            "allow-metrics-ingress-health",
            METRICS,
            Some(vec![operator]),
            HEALTH_PORT,
        ),
        from(install, "allow-metrics-egress-api", METRICS, api),
        from(install, "allow-metrics-egress-dns", METRICS, dns.collect()),
    ]
}

fn deny(install: &HostInstall<'_>) -> Object {
    policy(
        install,
        "default-deny-labelled-operand",
        NetworkPolicySpec {
            pod_selector: Some(label_selector(metadata::app())),
            policy_types: Some(vec!["Ingress".to_owned(), "Egress".to_owned()]),
            ..NetworkPolicySpec::default()
        },
    )
}

/// Who may reach a port of a workload; with nobody named, everybody.
fn to(
    install: &HostInstall<'_>,
    name: &str,
    workload: &str,
    sources: Option<Vec<NetworkPolicyPeer>>,
    port: u16,
) -> Object {
    to_pods(install, name, metadata::selector(workload), sources, port)
}

/// The same for any pods.
pub(super) fn to_pods(
    install: &HostInstall<'_>,
    name: &str,
    pods: Labels,
    sources: Option<Vec<NetworkPolicyPeer>>,
    port: u16,
) -> Object {
    policy(
        install,
        name,
        NetworkPolicySpec {
            pod_selector: Some(label_selector(pods)),
            policy_types: Some(vec!["Ingress".to_owned()]),
            ingress: Some(vec![NetworkPolicyIngressRule {
                from: sources,
                ports: Some(vec![tcp(port)]),
            }]),
            egress: None,
        },
    )
}

/// Which ports a workload may reach, wherever they are.
fn from(
    install: &HostInstall<'_>,
    name: &str,
    workload: &str,
    ports: Vec<NetworkPolicyPort>,
) -> Object {
    policy(
        install,
        name,
        NetworkPolicySpec {
            pod_selector: Some(label_selector(metadata::selector(workload))),
            policy_types: Some(vec!["Egress".to_owned()]),
            egress: Some(vec![NetworkPolicyEgressRule {
                to: None,
                ports: Some(ports),
            }]),
            ingress: None,
        },
    )
}

fn policy(install: &HostInstall<'_>, name: &str, spec: NetworkPolicySpec) -> Object {
    Object::of(NetworkPolicy {
        metadata: metadata::owned(install, name),
        spec: Some(spec),
    })
}

fn udp(port: u16) -> NetworkPolicyPort {
    NetworkPolicyPort {
        protocol: Some("UDP".to_owned()),
        ..tcp(port)
    }
}
