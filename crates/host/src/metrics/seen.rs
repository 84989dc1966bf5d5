//! What is kept of an object: the few words that are counted.

use super::lenient::{Fields, List, Text};
use super::slim::Slim;
use keelson_api::host_condition::{EnactmentCondition, PolicyCondition};
use keelson_api::names::Label;
use keelson_api::{
    NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy, NodeNetworkState,
};
use kube::ResourceExt;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::str::FromStr;

/// A policy as it passes.
pub type PassingPolicy = Slim<NodeNetworkConfigurationPolicy, Fields<PolicyStatus>>;
/// An enactment as it passes.
pub type PassingEnactment = Slim<NodeNetworkConfigurationEnactment, Fields<EnactmentStatus>>;
/// A host's state as it passes.
pub type PassingState = Slim<NodeNetworkState, Fields<StateStatus>>;

/// Of a policy's status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PolicyStatus {
    conditions: List<Fields<Condition>>,
}

/// Of an enactment's status.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct EnactmentStatus {
    conditions: List<Fields<Condition>>,
    features: List<Text>,
}

/// Of the status of a host's state.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct StateStatus {
    current_state: Fields<CurrentState>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Condition {
    r#type: Text,
    status: Text,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct CurrentState {
    interfaces: List<Fields<Interface>>,
    routes: Fields<AllRoutes>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Interface {
    r#type: Text,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct AllRoutes {
    running: List<Fields<Route>>,
    config: List<Fields<Route>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Route {
    destination: Text,
}

/// A policy: what it is in, if that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy(pub Option<PolicyCondition>);

/// An enactment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Enactment {
    /// The host.
    pub node: Box<str>,
    /// What it is in, if that is known.
    pub status: Option<EnactmentCondition>,
    /// The features of nmstate it uses.
    pub features: Box<[Box<str>]>,
}

/// How many routes a host has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Routes {
    /// Of these, by somebody's wish.
    pub fixed: i64,
    /// Of these, by a protocol's.
    pub dynamic: i64,
}

/// A host: how many interfaces of each type, and how many routes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct State {
    /// By type.
    pub interfaces: Box<[(Box<str>, i64)]>,
    /// Of IPv4.
    pub ipv4: Routes,
    /// Of IPv6.
    pub ipv6: Routes,
}

/// What is kept of a policy.
pub fn policy(passing: &PassingPolicy) -> Policy {
    Policy(first_true(&passing.status.0.conditions))
}

/// What is kept of an enactment.
pub fn enactment(passing: PassingEnactment) -> Enactment {
    let node = node(&passing);
    let status = passing.status.0;
    let features = status.features.0.into_iter().map(|it| it.0);
    Enactment {
        node,
        status: first_true(&status.conditions),
        features: features.filter(|it| !it.is_empty()).collect(),
    }
}

/// What is kept of a host's state.
pub fn state(passing: PassingState) -> State {
    let CurrentState { interfaces, routes } = passing.status.0.current_state.0;
    let mut types = BTreeMap::<Box<str>, i64>::new();
    for Fields(Interface { r#type: Text(kind) }) in interfaces.0 {
        if !kind.is_empty() {
            *types.entry(kind).or_default() += 1;
        }
    }
    let AllRoutes { running, config } = routes.0;
    let wished: BTreeSet<&str> = destinations(&config).collect();
    let mut state = State {
        interfaces: types.into_iter().collect(),
        ..State::default()
    };
    for destination in destinations(&running) {
        let stack = match destination.contains(':') {
            true => &mut state.ipv6,
            false => &mut state.ipv4,
        };
        match wished.contains(destination) {
            true => stack.fixed += 1,
            false => stack.dynamic += 1,
        }
    }
    state
}

fn destinations(routes: &List<Fields<Route>>) -> impl Iterator<Item = &str> {
    let routes = routes.0.iter().map(|Fields(route)| &*route.destination.0);
    routes.filter(|destination| !destination.is_empty())
}

/// The first condition that is true, of those that are counted.
fn first_true<T: FromStr>(conditions: &List<Fields<Condition>>) -> Option<T> {
    let is_true = |it: &&Fields<Condition>| &*it.0.status.0 == "True";
    let mut held = conditions.0.iter().filter(is_true);
    held.find_map(|Fields(condition)| condition.r#type.0.parse().ok())
}

/// The host of an enactment: by its label, or else by its name, `<node>.<policy>`.
fn node(enactment: &PassingEnactment) -> Box<str> {
    let label = |label: Label| enactment.labels().get(label.as_str());
    if let Some(node) = label(Label::PolicyNode) {
        return node.as_str().into();
    }
    let name = enactment.name_any();
    let policy = label(Label::Policy).map(|policy| format!(".{policy}"));
    match policy.and_then(|policy| name.strip_suffix(&policy)) {
        Some(node) => node.into(),
        None => name.split('.').next().unwrap_or_default().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    fn read<T: DeserializeOwned>(object: Value) -> T {
        // As it passes: from text.
        serde_json::from_str(&object.to_string()).expect("anything is readable")
    }

    fn conditions(held: &[(&str, &str)]) -> Value {
        held.iter()
            .map(|(kind, status)| json!({"type": kind, "status": status}))
            .collect()
    }

    #[test]
    fn a_policy_is_in_the_first_condition_that_is_true() {
        let of = |held: &[(&str, &str)]| {
            policy(&read(json!({"status": {"conditions": conditions(held)}}))).0
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[("Available", "Unknown"), ("Degraded", "False")]), None);
        let two = [
            ("Available", "False"),
            ("Ignored", "True"),
            ("Degraded", "True"),
        ];
        assert_eq!(of(&two), Some(PolicyCondition::Ignored));
        let foreign = [("Other", "True"), ("Progressing", "True")];
        assert_eq!(of(&foreign), Some(PolicyCondition::Progressing));
    }

    #[test]
    fn an_enactment_is_of_the_node_its_label_names() {
        let of = |metadata: Value| enactment(read(json!({"metadata": metadata}))).node;
        let name = "a.example.eth.one";
        assert_eq!(
            &*of(json!({"name": name, "labels": {"nmstate.io/node": "a.example"}})),
            "a.example"
        );
        assert_eq!(
            &*of(json!({"name": name, "labels": {"nmstate.io/policy": "eth.one"}})),
            "a.example"
        );
        assert_eq!(&*of(json!({"name": "node1.eth0"})), "node1");
    }

    #[test]
    fn features_of_an_enactment_are_kept() {
        let it = enactment(read(
            json!({"status": {"features": ["lldp", 7, "static-route"],
            "conditions": conditions(&[("Failing", "True"), ("Progressing", "True")])}}),
        ));
        assert_eq!(*it.features, ["lldp".into(), "static-route".into()]);
        assert_eq!(it.status, Some(EnactmentCondition::Failing));
    }

    #[test]
    fn interfaces_and_routes_of_a_host_are_counted() {
        let to = |destination: &str| json!({"destination": destination, "metric": 1});
        let it = state(read(json!({"status": {"currentState": {
            "interfaces": [{"type": "ethernet"}, {"type": "vlan"}, {"type": "ethernet"}, {}],
            "routes": {
                "running": [to("0.0.0.0/0"), to("0.0.0.0/0"), to("10.0.0.0/8"), to("::/0"), to("fe80::/64")],
                "config": [to("0.0.0.0/0"), to("fe80::/64"), to("1.0.0.0/8")],
            },
        }}})));
        assert_eq!(*it.interfaces, [("ethernet".into(), 2), ("vlan".into(), 1)]);
        assert_eq!(
            it.ipv4,
            Routes {
                fixed: 2,
                dynamic: 1
            }
        );
        assert_eq!(
            it.ipv6,
            Routes {
                fixed: 1,
                dynamic: 1
            }
        );
    }

    #[test]
    fn a_status_of_any_shape_is_read_and_what_is_not_understood_counts_as_nothing() {
        for odd in [
            json!(null),
            json!(7),
            json!([1, 2]),
            json!("text"),
            json!({"conditions": {"a": 1}, "features": 3, "currentState": [true]}),
            json!({"conditions": [null, 1.5, "x", {"type": 1, "status": []}],
                "currentState": {"interfaces": {"x": []}, "routes": {"running": false, "config": [[]]}}}),
        ] {
            let object = json!({"metadata": {"name": "a.b"}, "status": odd});
            assert_eq!(policy(&read(object.clone())), Policy(None), "{object}");
            assert_eq!(enactment(read(object.clone())).status, None, "{object}");
            assert_eq!(state(read(object.clone())), State::default(), "{object}");
        }
    }
}
