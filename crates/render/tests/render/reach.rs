//! Who reaches which port of a node's pod, by evaluating its NetworkPolicy as the API defines it.

use std::collections::BTreeMap;

use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use keelson_api::names::{Label, Port};
use keelson_render::{Node, Platform, network_policy};

use super::world::{MODES, node, platform};

type Labels = BTreeMap<String, String>;

/// Someone who connects: a pod, or an address outside of the cluster.
#[derive(Clone, Debug)]
struct Caller {
    namespace: Option<&'static str>,
    labels: Labels,
}

fn caller(namespace: &'static str, labels: &[(&str, &str)]) -> Caller {
    Caller {
        namespace: Some(namespace),
        labels: labels_of(labels),
    }
}

fn labels_of(labels: &[(&str, &str)]) -> Labels {
    let pairs = labels.iter();
    pairs
        .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
        .collect()
}

/// Whether a selector takes these labels. Expressions are not among what we write, and would make
/// every answer of this evaluator a guess.
fn selects(selector: &LabelSelector, labels: &Labels) -> bool {
    assert!(selector.match_expressions.is_none(), "an expression");
    let mut wanted = selector.match_labels.iter().flatten();
    wanted.all(|(key, value)| labels.get(key) == Some(value))
}

fn is_from(peer: &NetworkPolicyPeer, own_namespace: &str, caller: &Caller) -> bool {
    assert!(peer.ip_block.is_none(), "a block of addresses");
    let Some(namespace) = caller.namespace else {
        return false;
    };
    let of_namespace = labels_of(&[("kubernetes.io/metadata.name", namespace)]);
    let namespace_matches = match &peer.namespace_selector {
        Some(selector) => selects(selector, &of_namespace),
        None => namespace == own_namespace,
    };
    let pod = peer.pod_selector.as_ref();
    namespace_matches && pod.is_none_or(|selector| selects(selector, &caller.labels))
}

fn is_to(port: &NetworkPolicyPort, number: u16) -> bool {
    let Some(IntOrString::Int(first)) = port.port else {
        panic!("a port without a number");
    };
    let last = port.end_port.unwrap_or(first);
    port.protocol.as_deref() == Some("TCP") && (first..=last).contains(&i32::from(number))
}

fn allows(rule: &NetworkPolicyIngressRule, namespace: &str, caller: &Caller, port: u16) -> bool {
    // An absent list is no restriction, and so is an empty one.
    let from = rule.from.iter().flatten().collect::<Vec<_>>();
    let ports = rule.ports.iter().flatten().collect::<Vec<_>>();
    (from.is_empty() || from.iter().any(|peer| is_from(peer, namespace, caller)))
        && (ports.is_empty() || ports.iter().any(|it| is_to(it, port)))
}

/// Whether a caller reaches a port of a pod with these labels under this policy and no other.
fn reaches(policy: &NetworkPolicy, pod: &Labels, caller: &Caller, port: u16) -> bool {
    let spec = policy.spec.as_ref().expect("a spec");
    let namespace = policy.metadata.namespace.as_deref().expect("a namespace");
    let selected = selects(spec.pod_selector.as_ref().expect("a selector"), pod);
    let types = spec.policy_types.as_ref().expect("policy types");
    if !selected || !types.iter().any(|it| it == "Ingress") {
        return true;
    }
    let mut rules = spec.ingress.iter().flatten();
    rules.any(|rule| allows(rule, namespace, caller, port))
}

fn policy(mode: &str, platform: &Platform) -> Option<NetworkPolicy> {
    let node = node(mode);
    let node = Node::read(&node).expect("a node");
    network_policy::network_policy(&node, platform)
}

const OPERATOR: (&str, &str) = ("app.kubernetes.io/name", "keelson-operator");

/// Every kind of caller, and whether it may reach the proxy.
fn callers() -> Vec<(Caller, bool)> {
    let outside = Caller {
        namespace: None,
        labels: Labels::new(),
    };
    vec![
        (caller("keelson-system", &[OPERATOR]), true),
        (caller("keelson-system", &[OPERATOR, ("x", "y")]), true),
        (caller("keelson-system", &[]), false),
        (caller("chain", &[OPERATOR]), false),
        (caller("chain", &[(Label::Node.as_str(), "node-0")]), false),
        (caller("chain", &[]), false),
        (caller("monitoring", &[]), true),
        (caller("monitoring", &[("app", "prometheus")]), true),
        (caller("default", &[("app", "prometheus")]), false),
        (outside, false),
    ]
}

#[test]
fn only_the_operator_and_scrapers_reach_the_proxy_and_everyone_reaches_the_node() {
    let pod = labels_of(&[(Label::Node.as_str(), "node-0")]);
    let bootstrap = labels_of(&[
        (Label::Node.as_str(), "node-0"),
        (Label::Component.as_str(), "bootstrap"),
    ]);
    for mode in MODES {
        let policy = policy(mode, &platform()).expect("a policy");
        for (caller, trusted) in callers() {
            for port in Port::ALL {
                let expected = match port {
                    Port::Api | Port::ProxyHealth => trusted,
                    Port::Sidecar => false,
                    _ => true,
                };
                for pod in [&pod, &bootstrap] {
                    let found = reaches(&policy, pod, &caller, port.number());
                    assert_eq!(found, expected, "{mode}: {caller:?} to {port}");
                }
            }
        }
    }
}

#[test]
fn ports_nobody_names_are_closed() {
    let policy = policy("fullNode", &platform()).expect("a policy");
    let pod = labels_of(&[(Label::Node.as_str(), "node-0")]);
    let named: Vec<_> = Port::ALL.iter().map(|port| port.number()).collect();
    for port in (1..=u16::MAX).filter(|port| !named.contains(port)) {
        for (caller, _) in callers() {
            assert!(
                !reaches(&policy, &pod, &caller, port),
                "{caller:?} to {port}"
            );
        }
    }
}

#[test]
fn pods_of_other_nodes_are_none_of_the_policys_business() {
    let policy = policy("fullNode", &platform()).expect("a policy");
    let other = labels_of(&[(Label::Node.as_str(), "node-1")]);
    for (caller, _) in callers() {
        assert!(reaches(&policy, &other, &caller, Port::Api.number()));
    }
}

#[test]
fn a_platform_without_access_rules_has_no_policy() {
    let mut platform = platform();
    platform.access = None;
    assert_eq!(policy("fullNode", &platform), None);
}
