//! Everything the controller watches, and whom a change of it concerns.
//!
//! A change wakes the node it belongs to: by the label every object of a node has, or, for what a node
//! only uses (Secrets, imported claims, nodes found by a label), by an index of who uses it.

mod uses;
mod watches;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use keelson_api::SeiNode;
use keelson_cluster::{Key, Mirror, Needed, Queue};
use kube::api::ApiResource;
use kube::core::GroupVersionKind;

use super::peers;
use super::seen::{Claim, Ordered, Plain, SeenJob, SeenPod, Set};
use uses::{Uses, secrets_of};

/// What is known of all nodes.
#[derive(Clone)]
pub struct World {
    /// The nodes.
    pub nodes: Mirror<SeiNode>,
    /// Their StatefulSets.
    pub sets: Mirror<Set>,
    /// Their Services.
    pub services: Mirror<Plain>,
    /// Their proxies' configurations.
    pub configs: Mirror<Plain>,
    /// Their NetworkPolicies.
    pub policies: Mirror<Plain>,
    /// All claims.
    pub claims: Mirror<Claim>,
    /// Their bootstrap Jobs.
    pub jobs: Mirror<SeenJob>,
    /// Their pods.
    pub pods: Mirror<SeenPod>,
    /// Their Certificates.
    pub certificates: Mirror<Ordered>,
    /// The version of every Secret.
    pub secrets: Mirror<String>,
    uses: Arc<Mutex<Uses>>,
    /// How often nodes came, went or were labelled anew.
    pub(super) labelled: Arc<AtomicU64>,
    /// What to look at next.
    pub queue: Queue<Key>,
}

/// Which namespaces are looked after.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    /// All.
    #[default]
    Cluster,
    /// This one and no other.
    Namespace(String),
}

/// cert-manager's Certificate.
pub fn certificate_resource() -> ApiResource {
    ApiResource::from_gvk(&GroupVersionKind::gvk(
        "cert-manager.io",
        "v1",
        "Certificate",
    ))
}

impl World {
    /// A world nothing is known of yet.
    pub fn new() -> Self {
        Self {
            nodes: Mirror::new("SeiNodes"),
            sets: Mirror::new("StatefulSets"),
            services: Mirror::new("Services"),
            configs: Mirror::new("ConfigMaps"),
            policies: Mirror::new("NetworkPolicies"),
            claims: Mirror::new("PersistentVolumeClaims"),
            jobs: Mirror::new("Jobs"),
            pods: Mirror::new("Pods"),
            certificates: Mirror::new("Certificates"),
            secrets: Mirror::new("Secrets"),
            uses: Arc::default(),
            labelled: Arc::default(),
            queue: Queue::new(),
        }
    }

    fn node_changed(&self, key: &Key, before: Option<&SeiNode>, after: Option<&SeiNode>) {
        let mut uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        uses.forget(key, before);
        uses.note(key, after);
        // Only a node that comes, goes or is labelled anew changes who is found.
        let found = |node: Option<&SeiNode>| {
            node.map(|node| {
                let leaving = node.metadata.deletion_timestamp.is_some();
                (node.metadata.labels.clone(), leaving)
            })
        };
        if found(before) != found(after) {
            self.labelled.fetch_add(1, Ordering::Relaxed);
            for seeker in uses.seekers.iter().filter(|seeker| *seeker != key) {
                let finds = self.nodes.get(seeker).is_some_and(|seeker| {
                    let nodes = [before, after].into_iter().flatten();
                    nodes.into_iter().any(|node| {
                        peers::labels(&seeker).any(|it| peers::matches(it, &seeker, node))
                    })
                });
                // One that leaves matches nobody any more, so all that might have found it look.
                if finds || after.is_none() {
                    self.queue.add(seeker.clone());
                }
            }
        }
        // Another node may have waited for its signing key.
        if let Some(gone) = before.filter(|_| after.is_none()) {
            for secret in secrets_of(key, gone) {
                uses.wake_users(&secret, &self.queue);
            }
        }
        // A status of our own making is no news.
        let asked = |node: Option<&SeiNode>| {
            node.map(|node| {
                let meta = &node.metadata;
                (
                    meta.generation,
                    meta.annotations.clone(),
                    meta.labels.clone(),
                    meta.deletion_timestamp.clone(),
                    meta.uid.clone(),
                )
            })
        };
        if asked(before) != asked(after) {
            match after.is_some_and(is_awaited) {
                true => self.queue.add_first(key.clone()),
                false => self.queue.add(key.clone()),
            }
        }
    }

    /// How often nodes came, went or were labelled anew.
    pub fn labelled(&self) -> u64 {
        self.labelled.load(Ordering::Relaxed)
    }

    /// The pods beside a node's own: of its bootstrap Job, or of a StatefulSet somebody scaled.
    pub fn pods_beside(&self, key: &Key) -> Vec<Arc<SeenPod>> {
        let pods: Vec<Key> = {
            let uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
            let pods = uses.beside.get(key).into_iter().flatten();
            pods.cloned().collect()
        };
        pods.iter().filter_map(|pod| self.pods.get(pod)).collect()
    }

    /// The versions of the Secrets a node uses, always in the same order.
    pub fn secrets_of(&self, key: &Key, node: &SeiNode) -> Vec<Option<Arc<String>>> {
        let secrets = secrets_of(key, node).into_iter();
        secrets.map(|secret| self.secrets.get(&secret)).collect()
    }

    /// Other nodes of the namespace that ask for this Secret.
    pub fn users_of_secret(&self, secret: &Key) -> Vec<Key> {
        let uses = self.uses.lock().unwrap_or_else(PoisonError::into_inner);
        uses.secrets
            .get(secret)
            .into_iter()
            .flatten()
            .cloned()
            .collect()
    }

    /// What has to be known before anything is decided. A cluster may have no cert-manager, and so no
    /// Certificates; but where they are only not known yet, a node would be taken to lack its own.
    pub fn needed(&self, policies: bool) -> Vec<Needed> {
        let mut needed = vec![
            self.nodes.listed(),
            self.sets.listed(),
            self.services.listed(),
            self.configs.listed(),
            self.claims.listed(),
            self.jobs.listed(),
            self.pods.listed(),
            self.secrets.listed(),
            self.certificates.answered(),
        ];
        if policies {
            needed.push(self.policies.listed());
        }
        needed
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether somebody waits for this node: it was looked after before, and was edited or deleted since.
/// After a restart thousands are looked at that were not.
pub(super) fn is_awaited(node: &SeiNode) -> bool {
    let status = node.status.as_ref();
    let observed = status.and_then(|it| it.observed_generation);
    let edited = observed.is_some() && observed != node.metadata.generation;
    edited || node.metadata.deletion_timestamp.is_some()
}
