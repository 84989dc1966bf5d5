//! What the handler follows: every policy, its own node, its own enactments, and its own reported state.
//!
//! Four watches, kept up for ever. The server ends each after a while, so that a connection that died in
//! silence is noticed within half a minute; a server that comes back is found within a few seconds. Of
//! each object only what is decided by is kept. What a change means is for the main loop, which is told
//! of those that matter to it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use keelson_api::enactment::NodeNetworkConfigurationEnactmentStatus;
use keelson_api::names::Label;
use keelson_api::policy::NodeNetworkConfigurationPolicySpec;
use keelson_api::{
    NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy, NodeNetworkState,
};
use keelson_cluster::{DEADLINE, Key, Lean, Mirror, Patience};
use kube::api::{ApiResource, DynamicObject};
use kube::runtime::watcher;
use kube::{Api, Client};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::line::{CONNECTING, lock};
use super::states::StateSeen;

/// Objects in a page of a list, which is held whole.
const PAGE: u32 = 50;

/// After how many seconds the server ends a watch. With the grace after it, that is how long a dead
/// connection goes unnoticed.
const TURN: u32 = 22;

const PATIENCE: Patience = Patience {
    opening: CONNECTING,
    // On a connection that has just come about, to a server that many hosts ask at once.
    page: DEADLINE,
    grace: Duration::from_secs(5),
    longest_wait: Duration::from_secs(2),
    absent_wait: Duration::from_secs(4),
};

/// After how long without a word the files that say where the server is and who we are are read anew.
pub(super) const SILENCE: Duration = Duration::from_secs(30);

/// What kubectl notes on objects: the object once more.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// A policy as it is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The policy, without its status and without what says how it came about.
    pub object: NodeNetworkConfigurationPolicy,
    /// Why its spec cannot be read, if it cannot. Then only the selector of it is there.
    pub unreadable: Option<String>,
}

/// The node of this host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeSeen {
    /// Its uid.
    pub uid: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Whether it is Ready.
    pub ready: bool,
}

/// An enactment of this host.
#[derive(Clone, Debug, PartialEq)]
pub struct Enactment {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// The policy it is about, as its label says.
    pub policy: Option<String>,
    /// What it says.
    pub status: NodeNetworkConfigurationEnactmentStatus,
}

/// What is known of everything that is followed.
pub(super) struct Watched {
    pub(super) policies: Mirror<Policy>,
    /// Policies that are gone, by uid, as they were last.
    pub(super) gone: Arc<Mutex<BTreeMap<String, Policy>>>,
    pub(super) nodes: Mirror<NodeSeen>,
    pub(super) enactments: Mirror<Enactment>,
    pub(super) states: Mirror<StateSeen>,
    /// Something changed that the main loop decides by.
    pub(super) relevant: Arc<Notify>,
    /// Something changed that the reported state depends on.
    pub(super) state_moved: Arc<Notify>,
}

impl Watched {
    pub(super) fn new() -> Self {
        Self {
            policies: Mirror::patient("NodeNetworkConfigurationPolicies", PATIENCE),
            gone: Arc::default(),
            nodes: Mirror::patient("the own Node", PATIENCE),
            enactments: Mirror::patient("the own NodeNetworkConfigurationEnactments", PATIENCE),
            states: Mirror::patient("the own NodeNetworkState", PATIENCE),
            relevant: Arc::default(),
            state_moved: Arc::default(),
        }
    }

    /// Follows everything through this client, for ever.
    pub(super) async fn follow(&self, client: Client, node: &str) {
        tokio::join!(
            self.follow_policies(client.clone()),
            self.follow_node(client.clone(), node),
            self.follow_enactments(client.clone(), node),
            self.follow_state(client, node),
            self.tell_when_listed(),
        );
    }

    async fn follow_policies(&self, client: Client) {
        // Read by hand: one policy that cannot be read must not take the others with it.
        let kind = ApiResource::erase::<NodeNetworkConfigurationPolicy>(&());
        let api = Api::<Lean<DynamicObject>>::all_with(client, &kind);
        let relevant = Arc::clone(&self.relevant);
        let (policies, gone) = (self.policies.clone(), Arc::clone(&self.gone));
        let changed = move |_: &Key, before: Option<&Policy>, after: Option<&Policy>| {
            let uid = |it: &Policy| it.object.metadata.uid.clone().unwrap_or_default();
            if let Some(last) = before.filter(|it| after.map(uid) != Some(uid(it))) {
                lock(&gone).insert(uid(last), last.clone());
            }
            if before != after {
                relevant.notify_one();
            }
        };
        policies
            .follow(api, how(), |Lean(it)| Some(policy(it)), changed)
            .await;
    }

    async fn follow_node(&self, client: Client, node: &str) {
        let api = Api::<Lean<Node>>::all(client);
        let (relevant, moved) = (Arc::clone(&self.relevant), Arc::clone(&self.state_moved));
        let changed = move |_: &Key, before: Option<&NodeSeen>, after: Option<&NodeSeen>| {
            if before != after {
                relevant.notify_one();
                moved.notify_one();
            }
        };
        let nodes = self.nodes.clone();
        nodes
            .follow(api, named(node), |Lean(it)| Some(seen(it)), changed)
            .await;
    }

    async fn follow_enactments(&self, client: Client, node: &str) {
        let api = Api::<Lean<NodeNetworkConfigurationEnactment>>::all(client);
        let relevant = Arc::clone(&self.relevant);
        // What it says is our own word. That one is there, or is not any more, is not.
        let changed = move |_: &Key, before: Option<&Enactment>, after: Option<&Enactment>| {
            if before.map(|it| &it.uid) != after.map(|it| &it.uid) {
                relevant.notify_one();
            }
        };
        let how = how().labels(&format!("{}={node}", Label::PolicyNode));
        let enactments = self.enactments.clone();
        enactments
            .follow(api, how, |Lean(it)| Some(enactment(it)), changed)
            .await;
    }

    async fn follow_state(&self, client: Client, node: &str) {
        let api = Api::<Lean<NodeNetworkState>>::all(client);
        let (relevant, moved) = (Arc::clone(&self.relevant), Arc::clone(&self.state_moved));
        let changed = move |_: &Key, before: Option<&StateSeen>, after: Option<&StateSeen>| {
            if before.and_then(|it| it.refresh.as_ref()) != after.and_then(|it| it.refresh.as_ref())
            {
                relevant.notify_one();
            }
            moved.notify_one();
        };
        let states = self.states.clone();
        states
            .follow(api, named(node), |Lean(it)| Some(it.into()), changed)
            .await;
    }

    /// That there is no policy, or no node, is worth telling too.
    async fn tell_when_listed(&self) {
        tokio::join!(self.policies.synced(), self.nodes.synced());
        self.relevant.notify_one();
        self.enactments.synced().await;
        self.relevant.notify_one();
        self.states.synced().await;
        self.state_moved.notify_one();
    }

    /// How long ago anything was heard of the server.
    pub(super) fn last_heard(&self) -> Duration {
        let ages = [
            self.policies.last_event(),
            self.nodes.last_event(),
            self.enactments.last_event(),
            self.states.last_event(),
        ];
        ages.into_iter().min().unwrap_or_default()
    }

    /// What the first watch that is in trouble ran into.
    pub(super) fn trouble(&self) -> Option<String> {
        let troubles = [
            self.policies.trouble(),
            self.nodes.trouble(),
            self.enactments.trouble(),
            self.states.trouble(),
        ];
        troubles.into_iter().flatten().next()
    }

    /// Ends when nothing was heard for a while. The cluster may have a new authority meanwhile, and a
    /// client knows the one it was made with.
    pub(super) async fn silence(&self) {
        loop {
            sleep(SILENCE).await;
            if self.last_heard() > SILENCE {
                return;
            }
        }
    }
}

fn how() -> watcher::Config {
    watcher::Config::default().timeout(TURN).page_size(PAGE)
}

fn named(name: &str) -> watcher::Config {
    how().fields(&format!("metadata.name={name}"))
}

/// The key of an object that is in no namespace.
pub(super) fn key(name: &str) -> Key {
    Key {
        namespace: String::new(),
        name: name.to_owned(),
    }
}

fn policy(mut object: DynamicObject) -> Policy {
    let spec = match object.data.get_mut("spec") {
        None => Value::Object(serde_json::Map::new()),
        Some(spec) => spec.take(),
    };
    let selector = spec.get("nodeSelector").cloned();
    let read = serde_json::from_value::<NodeNetworkConfigurationPolicySpec>(spec);
    let (spec, unreadable) = match read {
        Ok(spec) => (spec, None),
        Err(error) => {
            let selector = selector.and_then(|it| serde_json::from_value(it).ok());
            let spec = NodeNetworkConfigurationPolicySpec {
                node_selector: selector.unwrap_or_default(),
                ..NodeNetworkConfigurationPolicySpec::default()
            };
            (spec, Some(format!("the spec cannot be read: {error}")))
        }
    };
    let mut annotations = object.metadata.annotations.unwrap_or_default();
    annotations.remove(LAST_APPLIED);
    let metadata = ObjectMeta {
        name: object.metadata.name,
        uid: object.metadata.uid,
        generation: object.metadata.generation,
        creation_timestamp: object.metadata.creation_timestamp,
        deletion_timestamp: object.metadata.deletion_timestamp,
        annotations: Some(annotations),
        ..ObjectMeta::default()
    };
    Policy {
        object: NodeNetworkConfigurationPolicy {
            metadata,
            spec,
            status: None,
        },
        unreadable,
    }
}

fn seen(node: Node) -> NodeSeen {
    NodeSeen {
        ready: is_ready(&node),
        uid: node.metadata.uid.unwrap_or_default(),
        labels: node.metadata.labels.unwrap_or_default(),
    }
}

/// Whether a node is Ready.
pub(super) fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|it| it.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it.type_ == "Ready" && it.status == "True")
}

fn enactment(object: NodeNetworkConfigurationEnactment) -> Enactment {
    let labels = object.metadata.labels.unwrap_or_default();
    Enactment {
        name: object.metadata.name.unwrap_or_default(),
        uid: object.metadata.uid.unwrap_or_default(),
        policy: labels.get(Label::Policy.as_str()).cloned(),
        status: object.status.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(spec: Value) -> Policy {
        let object = json!({
            "apiVersion": "nmstate.io/v1",
            "kind": "NodeNetworkConfigurationPolicy",
            "metadata": {
                "name": "bridge",
                "uid": "u",
                "annotations": { LAST_APPLIED: "{}", "nmstate.io/revert-on-delete": "true" },
            },
            "spec": spec,
            "status": { "conditions": "of another shape" },
        });
        policy(serde_json::from_value(object).expect("an object"))
    }

    #[test]
    fn a_policy_is_kept_without_its_status_and_without_what_kubectl_notes() {
        let read = read(json!({ "desiredState": { "interfaces": [] }, "maxUnavailable": 2 }));
        assert_eq!(read.unreadable, None);
        assert!(read.object.spec.desired_state.is_some() && read.object.status.is_none());
        let annotations = read.object.metadata.annotations.expect("annotations");
        let names: Vec<_> = annotations.keys().collect();
        assert_eq!(names, ["nmstate.io/revert-on-delete"]);
    }

    #[test]
    fn a_policy_nobody_can_read_is_there_for_the_nodes_it_selects_and_says_why() {
        let selector = json!({ "rack": "1" });
        let read = read(json!({ "nodeSelector": selector, "desiredState": "a text" }));
        let why = read.unreadable.expect("a reason");
        assert!(
            why.contains("the spec cannot be read: invalid type"),
            "{why}"
        );
        assert_eq!(json!(read.object.spec.node_selector), selector);
        assert_eq!(read.object.metadata.uid.as_deref(), Some("u"));
    }
}
