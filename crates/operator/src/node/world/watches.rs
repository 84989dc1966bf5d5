//! The watches: one for each kind, which keeps what matters of it and wakes whom a change concerns.

use std::sync::PoisonError;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use keelson_api::SeiNode;
use keelson_api::names::Label;
use keelson_cluster::{Key, Lean, Mirror, Queue};
use kube::api::{ApiResource, DynamicObject};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;
use kube::{Api, Client, Resource, ResourceExt};
use tokio::task::JoinSet;

use super::{Scope, World, certificate_resource};
use crate::node::seen::{Claim, Ordered, Plain, SeenJob, SeenPod, Set};
use crate::node::sight::at;

/// Objects in a page of a list. A page is held whole, and that of all kinds at once.
const PAGE: u32 = 250;

/// Every object of a kind.
fn every() -> watcher::Config {
    watcher::Config::default().page_size(PAGE)
}

/// Those that belong to a node.
fn labelled() -> watcher::Config {
    every().labels(Label::Node.as_str())
}

/// A client for watches, and how far they reach.
struct Watched {
    client: Client,
    scope: Scope,
}

impl Watched {
    fn api<K>(&self) -> Api<K>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        match &self.scope {
            Scope::Cluster => Api::all(self.client.clone()),
            Scope::Namespace(namespace) => Api::namespaced(self.client.clone(), namespace),
        }
    }

    fn api_as(&self, resource: &ApiResource) -> Api<DynamicObject> {
        match &self.scope {
            Scope::Cluster => Api::all_with(self.client.clone(), resource),
            Scope::Namespace(namespace) => {
                Api::namespaced_with(self.client.clone(), namespace, resource)
            }
        }
    }
}

impl World {
    /// Begins to watch. What is watched ends with what is returned.
    pub fn watch(&self, client: &Client, scope: &Scope, policies: bool) -> JoinSet<()> {
        let mut watches = JoinSet::new();
        let client = &Watched {
            client: client.clone(),
            scope: scope.clone(),
        };
        self.watch_nodes(client, &mut watches);
        macro_rules! owned {
            ($mirror:ident, $kind:ty, $read:expr, $node:expr) => {{
                let queue = self.queue.clone();
                let wake = move |key: &Key, before: Option<&_>, after: Option<&_>| {
                    if let Some(seen) = after.or(before) {
                        wake(&queue, &key.namespace, &$node(seen));
                    }
                };
                let api: Api<Lean<$kind>> = client.api();
                let mirror = self.$mirror.clone();
                watches.spawn(mirror.follow(api, labelled(), |it| Some($read(&it.0)), wake));
            }};
        }
        owned!(sets, StatefulSet, Set::read, |it: &Set| it
            .identity
            .node
            .clone());
        owned!(jobs, Job, SeenJob::read, |it: &SeenJob| it
            .identity
            .node
            .clone());
        self.watch_pods(client, &mut watches);
        self.watch_plain::<Service>(client, &self.services, &mut watches);
        self.watch_plain::<ConfigMap>(client, &self.configs, &mut watches);
        if policies {
            self.watch_plain::<NetworkPolicy>(client, &self.policies, &mut watches);
        }
        self.watch_certificates(client, &mut watches);
        self.watch_used(client, &mut watches);
        watches
    }

    fn watch_plain<K>(&self, client: &Watched, mirror: &Mirror<Plain>, watches: &mut JoinSet<()>)
    where
        K: Resource<DynamicType = ()>,
    {
        let api = client.api_as(&ApiResource::erase::<K>(&()));
        let config = labelled();
        let queue = self.queue.clone();
        let mirror = mirror.clone();
        watches.spawn(mirror.follow(
            api,
            config,
            |object: DynamicObject| Some(Plain::read(&object)),
            move |key, before, after| {
                if let Some(seen) = after.or(before) {
                    wake(&queue, &key.namespace, &seen.identity.node);
                }
            },
        ));
    }

    fn watch_pods(&self, client: &Watched, watches: &mut JoinSet<()>) {
        let config = labelled();
        let (uses, queue) = (self.uses.clone(), self.queue.clone());
        watches.spawn(self.pods.clone().follow(
            client.api::<Lean<Pod>>(),
            config,
            |pod| Some(SeenPod::read(&pod.0)),
            move |key, before: Option<&SeenPod>, after: Option<&SeenPod>| {
                if let Some(seen) = after.or(before) {
                    wake(&queue, &key.namespace, &seen.identity.node);
                }
                let mut uses = uses.lock().unwrap_or_else(PoisonError::into_inner);
                uses.note_pod(key, before, after);
                // Another node may have waited for the key.
                let held = before.filter(|_| after.is_none());
                if let Some(secret) = held.and_then(|pod| pod.made.signing_key.clone()) {
                    uses.wake_users(&at(key, secret), &queue);
                }
            },
        ));
    }

    fn watch_certificates(&self, client: &Watched, watches: &mut JoinSet<()>) {
        let api = client.api_as(&certificate_resource());
        let config = labelled();
        let queue = self.queue.clone();
        watches.spawn(self.certificates.clone().follow(
            api,
            config,
            |object: DynamicObject| Some(Ordered::read(&object)),
            move |key, before: Option<&Ordered>, after: Option<&Ordered>| {
                if let Some(seen) = after.or(before) {
                    wake(&queue, &key.namespace, &seen.plain.identity.node);
                }
            },
        ));
    }

    fn watch_nodes(&self, client: &Watched, watches: &mut JoinSet<()>) {
        let world = self.clone();
        watches.spawn(self.nodes.clone().follow(
            client.api::<Lean<SeiNode>>(),
            every(),
            |node| Some(node.0),
            move |key, before, after| world.node_changed(key, before, after),
        ));
    }

    /// Secrets and claims, of which a node may use any.
    fn watch_used(&self, client: &Watched, watches: &mut JoinSet<()>) {
        let (uses, queue) = (self.uses.clone(), self.queue.clone());
        watches.spawn(self.secrets.clone().follow(
            client.api::<PartialObjectMeta<Secret>>(),
            every(),
            |secret| Some(secret.resource_version().unwrap_or_default()),
            move |key, _, _| {
                let uses = uses.lock().unwrap_or_else(PoisonError::into_inner);
                uses.wake_users(key, &queue);
            },
        ));
        let (uses, queue) = (self.uses.clone(), self.queue.clone());
        watches.spawn(self.claims.clone().follow(
            client.api::<Lean<PersistentVolumeClaim>>(),
            every(),
            |claim| Some(Claim::read(&claim.0)),
            move |key, before: Option<&Claim>, after: Option<&Claim>| {
                let uses = uses.lock().unwrap_or_else(PoisonError::into_inner);
                for node in uses.claims.get(key).into_iter().flatten() {
                    queue.add(node.clone());
                }
                if let Some(claim) = after.or(before) {
                    wake(&queue, &key.namespace, &claim.identity.node);
                }
            },
        ));
    }
}

fn wake(queue: &Queue<Key>, namespace: &str, node: &str) {
    if !node.is_empty() {
        queue.add(Key {
            namespace: namespace.to_owned(),
            name: node.to_owned(),
        });
    }
}
