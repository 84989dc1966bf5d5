//! Everything the controllers of NMStates and of policies watch. A change that says something wakes the
//! one look there is at NMStates; which policies it wakes is said by [`policies`](super::policies).
//!
//! What is not served where this runs (NMStates themselves, the cluster's TLS profile, monitoring
//! kinds) is asked for again and again, and is no reason to wait or to be unready.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::{Node, Pod, Secret};
use keelson_api::NMState;
use keelson_cluster::{Key, Mirror, Needed, Queue};
use keelson_render::host::{Identity, KINDS, Kind};
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::watcher;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Debug;
use std::time::Duration;
use tokio::task::JoinSet;

use super::certificates::store::Data;
use super::policies::known::Known;
use super::replicas::Place;
use super::seen::{Seen, SeenPod};

/// What every object of the installation is labelled with.
const OURS: &str = "app=kubernetes-nmstate";

/// What the Deployment of the original's operator is labelled with.
const ORIGINAL: &str = "app=kubernetes-nmstate-operator";

/// What is known.
#[derive(Clone)]
pub struct World {
    /// The NMStates.
    pub nmstates: Mirror<NMState>,
    /// The objects of the installation, by kind.
    pub objects: BTreeMap<Kind, Mirror<Seen>>,
    /// Their Secrets.
    pub secrets: Mirror<Data>,
    /// Their pods.
    pub pods: Mirror<SeenPod>,
    /// The cluster's nodes.
    pub nodes: Mirror<Place>,
    /// The cluster's own settings; `cluster` is the one that counts.
    pub api_servers: Mirror<Value>,
    /// Deployments of the original's operator that run.
    pub originals: Mirror<()>,
    /// What is known of policies.
    pub policies: Known,
    /// Wakes the look.
    pub queue: Queue<Key>,
}

/// The one thing there is to look at.
pub fn everything() -> Key {
    Key {
        namespace: String::new(),
        name: "NMState".to_owned(),
    }
}

/// How the API server knows a kind.
pub fn resource(kind: &Kind) -> ApiResource {
    let gvk = GroupVersionKind::gvk(kind.group, kind.version, kind.kind);
    ApiResource::from_gvk_with_plural(&gvk, kind.plural)
}

fn api_servers() -> ApiResource {
    let gvk = GroupVersionKind::gvk("config.openshift.io", "v1", "APIServer");
    ApiResource::from_gvk_with_plural(&gvk, "apiservers")
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    /// A world nothing is known of yet.
    pub fn new() -> Self {
        Self {
            nmstates: Mirror::new("NMStates"),
            objects: KINDS
                .iter()
                .map(|kind| (*kind, Mirror::new(kind.plural)))
                .collect(),
            secrets: Mirror::new("Secrets of the host components"),
            pods: Mirror::new("Pods of the host components"),
            nodes: Mirror::new("Nodes"),
            api_servers: Mirror::new("APIServers"),
            originals: Mirror::new("Deployments of the original operator"),
            policies: Known::default(),
            queue: Queue::new(),
        }
    }

    /// Begins to watch. What is watched ends with what is returned.
    pub fn watch(&self, client: &Client, namespace: &str) -> JoinSet<()> {
        let mut watches = JoinSet::new();
        let ours = || watcher::Config::default().labels(OURS);
        let any = watcher::Config::default;
        let all = |resource: &ApiResource| Api::all_with(client.clone(), resource);
        let mut follow = Follow {
            watches: &mut watches,
            queue: &self.queue,
        };
        let known = self.policies.clone();
        follow.telling(
            &self.nmstates,
            Api::all(client.clone()),
            any(),
            |it: NMState| Some(it),
            move |before, after| {
                if before.is_none() || after.is_none() {
                    known.look_at_all(Duration::ZERO);
                }
                true
            },
        );
        for (kind, mirror) in &self.objects {
            let api: Api<DynamicObject> = all(&resource(kind));
            let kind = *kind;
            let keep = move |it: DynamicObject| Some(Seen::read(&kind, &it));
            follow.telling(mirror, api, ours(), keep, |before, after| before != after);
        }
        let secrets: Api<Secret> = Api::namespaced(client.clone(), namespace);
        follow.add(&self.secrets, secrets, ours(), |it: Secret| Some(data(it)));
        let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
        let known = self.policies.clone();
        let tell = move |before: Option<&SeenPod>, after: Option<&SeenPod>| {
            known.pod_changed(before, after);
            true
        };
        let keep = |it: Pod| Some(SeenPod::read(&it));
        follow.telling(&self.pods, pods, ours(), keep, tell);
        let nodes: Api<Node> = Api::all(client.clone());
        let known = self.policies.clone();
        let tell = move |before: Option<&Place>, after: Option<&Place>| {
            known.node_changed(before, after);
            before != after
        };
        let keep = |it: Node| Some(Place::read(&it));
        follow.telling(&self.nodes, nodes, any(), keep, tell);
        let settings: Api<DynamicObject> = all(&api_servers());
        follow.add(&self.api_servers, settings, any(), |it: DynamicObject| {
            Some(it.data)
        });
        let originals: Api<Deployment> = Api::all(client.clone());
        let config = any().labels(ORIGINAL);
        let known = self.policies.clone();
        let tell = move |before: Option<&()>, after: Option<&()>| {
            if before.is_none() || after.is_none() {
                known.look_at_all(Duration::ZERO);
            }
            true
        };
        let keep = |it: Deployment| runs(&it).then_some(());
        follow.telling(&self.originals, originals, config, keep, tell);
        self.policies.watch(client, namespace, &mut watches);
        watches
    }

    /// What no decision can do without. What is not served everywhere is not waited for.
    pub fn needed(&self) -> Vec<Needed> {
        let everywhere = |kind: &Kind| {
            !kind.group.contains("monitoring.coreos") && !kind.group.contains("openshift")
        };
        let objects = self.objects.iter().filter(|(kind, _)| everywhere(kind));
        let others = [
            self.nmstates.listed(),
            self.nodes.listed(),
            self.pods.listed(),
            self.secrets.listed(),
            self.originals.listed(),
        ];
        let objects = objects.map(|(_, mirror)| mirror.listed());
        others.into_iter().chain(objects).collect()
    }

    /// An object of the installation.
    pub fn object(&self, identity: &Identity) -> Option<std::sync::Arc<Seen>> {
        self.objects.get(&identity.kind)?.get(&key(identity))
    }
}

/// The key of an object.
pub fn key(identity: &Identity) -> Key {
    Key {
        namespace: identity.namespace.clone().unwrap_or_default(),
        name: identity.name.clone(),
    }
}

/// What a Secret holds.
pub fn data(secret: Secret) -> Data {
    let data = secret.data.unwrap_or_default().into_iter();
    data.map(|(key, bytes)| (key, bytes.0)).collect()
}

/// Whether a Deployment has or shall have pods.
fn runs(deployment: &Deployment) -> bool {
    let wanted = deployment.spec.as_ref().and_then(|it| it.replicas);
    let there = deployment.status.as_ref().and_then(|it| it.replicas);
    wanted != Some(0) || there.unwrap_or_default() > 0
}

/// Watches that are being set up.
struct Follow<'a> {
    watches: &'a mut JoinSet<()>,
    queue: &'a Queue<Key>,
}

impl Follow<'_> {
    /// Watches; every change wakes the look.
    fn add<K, V>(
        &mut self,
        mirror: &Mirror<V>,
        api: Api<K>,
        config: watcher::Config,
        keep: impl Fn(K) -> Option<V> + Send + 'static,
    ) where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
        V: Send + Sync + 'static,
    {
        self.telling(mirror, api, config, keep, |_, _| true);
    }

    /// The same, telling somebody of every change, who says whether it wakes the look.
    fn telling<K, V>(
        &mut self,
        mirror: &Mirror<V>,
        api: Api<K>,
        config: watcher::Config,
        keep: impl Fn(K) -> Option<V> + Send + 'static,
        tell: impl Fn(Option<&V>, Option<&V>) -> bool + Send + 'static,
    ) where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
        V: Send + Sync + 'static,
    {
        let queue = self.queue.clone();
        let changed = move |_: &Key, before: Option<&V>, after: Option<&V>| {
            if tell(before, after) {
                queue.add(everything());
            }
        };
        self.watches
            .spawn(mirror.clone().follow(api, config, keep, changed));
    }
}
