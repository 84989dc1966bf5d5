//! What is known of policies, and what is to be looked at when something of it changes.
//!
//! Policies, their enactments and the claims of handlers are watched here. Nodes and the pods of
//! handlers are watched for NMStates too, and once for both: who watches them tells of a change.
//! Looking is for the controller.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use keelson_api::host::{CLAIMS_CONFIG_MAP, CLAIMS_KEY};
use keelson_api::names::HostWorkload;
use keelson_api::{NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy};
use keelson_cluster::{Key, Mirror, Needed, Queue};
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::claims::Claims;
use super::seen::{Enactment, Policy};
use crate::host::replicas::Place;
use crate::host::seen::SeenPod;

/// How long a change may wait for others that are to be looked at with it: a thousand hosts that report
/// within a second are not a thousand writes.
const TOGETHER: Duration = Duration::from_millis(100);

/// The same for claims, of which nobody but a reader of the count hears.
const CLAIMS_TOGETHER: Duration = Duration::from_secs(1);

/// How long a node still counts as one with a handler after its handler's pod is gone: one that is
/// replaced is back by then, and no policy says in between that it has one node less.
const REPLACED_WITHIN: Duration = Duration::from_secs(15);

/// What there is to look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// The policy of this name: what its status says and, where it is gone, what is left of it.
    Policy(String),
    /// The claims of handlers: whether some are of nobody.
    Claims,
}

/// The claims, and the version of their object.
#[derive(Clone, Debug, PartialEq)]
pub struct Claimed {
    /// The version that was read.
    pub version: String,
    /// What handlers wrote; none where that cannot be read.
    pub claims: Option<Claims>,
}

/// What is known.
#[derive(Clone)]
pub struct Known {
    /// The policies.
    pub policies: Mirror<Policy>,
    /// Their enactments.
    pub enactments: Mirror<Enactment>,
    /// The claims of handlers: one object, or none.
    pub claims: Mirror<Claimed>,
    /// What to look at next.
    pub queue: Queue<Subject>,
    /// When the last pod of a handler on a node went.
    left: Arc<Mutex<HashMap<String, Instant>>>,
}

impl Default for Known {
    fn default() -> Self {
        Self {
            policies: Mirror::new("NodeNetworkConfigurationPolicies"),
            enactments: Mirror::new("NodeNetworkConfigurationEnactments"),
            claims: Mirror::new("the claims of handlers"),
            queue: Queue::new(),
            left: Arc::default(),
        }
    }
}

impl Known {
    /// Begins to watch.
    pub fn watch(&self, client: &Client, namespace: &str, watches: &mut JoinSet<()>) {
        let (policies, any) = (Api::all(client.clone()), watcher::Config::default);
        let known = self.clone();
        watches.spawn(self.policies.clone().follow(
            policies,
            any(),
            |it: NodeNetworkConfigurationPolicy| Some(Policy::read(it)),
            move |_, before, after| known.policy_changed(before, after),
        ));
        let (enactments, known) = (Api::all(client.clone()), self.clone());
        watches.spawn(self.enactments.clone().follow(
            enactments,
            any(),
            |it: NodeNetworkConfigurationEnactment| Enactment::read(&it),
            move |_, before, after| known.enactment_changed(before, after),
        ));
        let maps = Api::namespaced(client.clone(), namespace);
        let only = any().fields(&format!("metadata.name={CLAIMS_CONFIG_MAP}"));
        let known = self.clone();
        watches.spawn(self.claims.clone().follow(
            maps,
            only,
            |it: ConfigMap| Some(claimed(&it)),
            move |_, before, after| known.claims_changed(before, after),
        ));
    }

    /// What no decision can do without.
    pub fn needed(&self) -> [Needed; 3] {
        [
            self.policies.listed(),
            self.enactments.listed(),
            self.claims.listed(),
        ]
    }

    /// The claims of handlers as they are now.
    pub fn claimed(&self) -> Option<(Key, Arc<Claimed>)> {
        self.claims.all().into_iter().next()
    }

    /// A node changed, came or went.
    pub fn node_changed(&self, before: Option<&Place>, after: Option<&Place>) {
        let counts = |it: &Place| (it.labels.clone(), it.ready);
        if before.map(counts) != after.map(counts) {
            self.look_at_all(TOGETHER);
        }
        if after.is_none() {
            self.queue.add(Subject::Claims);
        }
    }

    /// A pod of the host components changed, came or went.
    pub fn pod_changed(&self, before: Option<&SeenPod>, after: Option<&SeenPod>) {
        let [before, after] = [before, after].map(|it| it.and_then(handles));
        if before == after {
            return;
        }
        if let Some(node) = before {
            self.left().insert(node.to_owned(), Instant::now());
        }
        self.look_at_all(TOGETHER);
    }

    /// Everything that is known of the cluster counts anew for every policy.
    pub fn look_at_all(&self, after: Duration) {
        for (key, _) in self.policies.all() {
            self.queue.add_after(Subject::Policy(key.name), after);
        }
    }

    /// Nodes whose handler went a moment ago, and how long that counts for the first of them.
    pub fn left_lately(&self) -> (BTreeSet<String>, Option<Duration>) {
        let mut left = self.left();
        left.retain(|_, at| at.elapsed() < REPLACED_WITHIN);
        let longest = left.values().map(Instant::elapsed).max();
        let until = longest.map(|it| REPLACED_WITHIN.saturating_sub(it));
        (left.keys().cloned().collect(), until)
    }

    fn policy_changed(&self, before: Option<&Policy>, after: Option<&Policy>) {
        let uid = |it: &Policy| it.uid.clone();
        for policy in [before, after].into_iter().flatten() {
            self.look_at(&policy.name);
        }
        if before.map(uid) != after.map(uid) {
            self.queue.add_after(Subject::Claims, TOGETHER);
        }
    }

    fn enactment_changed(&self, before: Option<&Enactment>, after: Option<&Enactment>) {
        if before != after {
            for enactment in [before, after].into_iter().flatten() {
                self.look_at(&enactment.policy);
            }
        }
    }

    fn claims_changed(&self, before: Option<&Claimed>, after: Option<&Claimed>) {
        let of = |it: Option<&Claimed>| it.and_then(|it| it.claims.clone()).unwrap_or_default();
        let (before, after) = (of(before), of(after));
        for (key, policy) in self.policies.all() {
            if before.counts(&policy.uid) != after.counts(&policy.uid) {
                let subject = Subject::Policy(key.name);
                self.queue.add_after(subject, CLAIMS_TOGETHER);
            }
        }
        self.queue.add_after(Subject::Claims, CLAIMS_TOGETHER);
    }

    fn look_at(&self, policy: &str) {
        let subject = Subject::Policy(policy.to_owned());
        self.queue.add_after(subject, TOGETHER);
    }

    fn left(&self) -> MutexGuard<'_, HashMap<String, Instant>> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The node a pod handles, if it is a handler's.
pub fn handles(pod: &SeenPod) -> Option<&str> {
    let handler = pod.component == HostWorkload::Handler.as_str() && !pod.ended;
    pod.node.as_deref().filter(|_| handler)
}

fn claimed(map: &ConfigMap) -> Claimed {
    let text = map.data.as_ref().and_then(|it| it.get(CLAIMS_KEY));
    let claims = Claims::read(text.map(String::as_str)).inspect_err(|error| {
        tracing::warn!("the claims in ConfigMap {CLAIMS_CONFIG_MAP} cannot be read: {error}");
    });
    Claimed {
        version: map.metadata.resource_version.clone().unwrap_or_default(),
        claims: claims.ok(),
    }
}
