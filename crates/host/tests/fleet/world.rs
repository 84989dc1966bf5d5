//! Hosts of one cluster: each with a NetworkManager, a Node and a handler of its own, plugged into the
//! network the API server is in.
//!
//! Policies are for the whole cluster, so the hosts of each test have a label of their own, and its
//! policies select by it.

use crate::common::homes::{Home, SOON};
use crate::member::Member;
use futures::future::join_all;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use k8s_openapi::api::events::v1::Event;
use keelson_api::NodeNetworkConfigurationPolicy;
use keelson_api::host::{CLAIMS_CONFIG_MAP, CLAIMS_KEY};
use keelson_api::host_condition::EnactmentCondition;
use keelson_host::handler::claims::{Claim, Claims};
use keelson_testbed::{Cluster, Host, Network, Resolver, until};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

/// The label the hosts of a test have, each test with a value of its own.
const LABEL: &str = "fleet";

/// The label each host has for itself.
pub(crate) const HOST: &str = "host";

/// How often nodes are said to be Ready, which nobody else says here: more often than Kubernetes
/// takes to call one lost.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// The shared cluster, with our types, and a name server where the API server is.
async fn cluster() -> &'static Cluster {
    static INSTALLED: OnceCell<Resolver> = OnceCell::const_new();
    let cluster = Cluster::shared().await;
    let install = async || {
        cluster.install_crds().await.expect("types");
        let resolver = Resolver::start(&Network::of_cluster(cluster)).await;
        resolver.expect("a name server")
    };
    INSTALLED.get_or_init(install).await;
    cluster
}

/// A name nobody else has, in the whole cluster.
pub(crate) fn unique(what: &str) -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("{what}-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// One test.
pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) network: Network,
    namespace: String,
    kubeconfig: String,
    /// The value of the label of its hosts.
    name: String,
    nodes: Arc<Mutex<Vec<String>>>,
    heart: JoinHandle<()>,
}

impl Drop for World {
    fn drop(&mut self) {
        self.heart.abort();
    }
}

impl World {
    pub(crate) async fn new(test: &str) -> Self {
        let cluster = cluster().await;
        let (client, name) = (cluster.client(), unique(test));
        let namespace = cluster.namespace(test).await.name().to_owned();
        let nodes = Arc::default();
        let world = Self {
            heart: tokio::spawn(beat(client.clone(), Arc::clone(&nodes))),
            kubeconfig: from_a_host(cluster),
            network: Network::of_cluster(cluster),
            client,
            namespace,
            name,
            nodes,
        };
        world.make_claims().await;
        world
    }

    /// The object for claims, which the operator makes.
    async fn make_claims(&self) {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": CLAIMS_CONFIG_MAP}, "data": {CLAIMS_KEY: ""}});
        let how = PostParams::default();
        let map = serde_json::from_value(map).expect("a ConfigMap");
        self.maps().create(&how, &map).await.expect("a ConfigMap");
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// The claims that hosts of this test hold.
    pub(crate) async fn claims(&self) -> Vec<Claim> {
        let map = self.maps().get(CLAIMS_CONFIG_MAP).await.expect("a map");
        let text = map.data.unwrap_or_default().remove(CLAIMS_KEY);
        match text.unwrap_or_default().as_str() {
            "" => Vec::new(),
            text => serde_json::from_str::<Claims>(text).expect("claims").claims,
        }
    }

    /// Hosts that policies of this test select.
    pub(crate) async fn hosts(&self, count: usize) -> Vec<Member> {
        let started = (0..count).map(|_| self.host());
        join_all(started).await
    }

    /// A host that policies of this test select.
    pub(crate) async fn host(&self) -> Member {
        self.host_with(json!({LABEL: self.name})).await
    }

    /// A host whose node has these labels, and one of its own.
    pub(crate) async fn host_with(&self, labels: Value) -> Member {
        let node = unique("node");
        let mut labels = labels;
        labels[HOST] = json!(node);
        self.node(&node, labels).await;
        let host = Host::start(&self.network).await.expect("a host");
        let home = Home { host };
        home.keep_a_spare().await;
        Member {
            home,
            node,
            namespace: self.namespace.clone(),
            kubeconfig: self.kubeconfig.clone(),
            network: self.network.clone(),
            client: self.client.clone(),
        }
    }

    /// Writes a node, which is Ready from now on.
    pub(crate) async fn node(&self, name: &str, labels: Value) {
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
        let how = PatchParams::apply("a-test").force();
        let nodes = Api::<Node>::all(self.client.clone());
        let made = nodes.patch(name, &how, &Patch::Apply(node)).await;
        made.expect("a node");
        is_ready(&nodes, name).await;
        self.nodes.lock().expect("a list").push(name.to_owned());
    }

    /// Changes the labels of a node; null takes one away.
    pub(crate) async fn label(&self, node: &str, labels: Value) {
        let nodes = Api::<Node>::all(self.client.clone());
        let patch = Patch::Merge(json!({"metadata": {"labels": labels}}));
        let changed = nodes.patch(node, &PatchParams::default(), &patch).await;
        changed.expect("a node");
    }

    /// Deletes a node, as who takes a host out of the cluster does.
    pub(crate) async fn delete_node(&self, name: &str) {
        self.nodes.lock().expect("a list").retain(|it| it != name);
        let nodes = Api::<Node>::all(self.client.clone());
        let deleted = nodes.delete(name, &DeleteParams::default()).await;
        deleted.expect("a node to delete");
    }

    /// The selector of this test's hosts.
    pub(crate) fn selector(&self) -> Value {
        json!({LABEL: self.name})
    }

    /// Makes a policy for the hosts of this test, of a name nobody else has.
    pub(crate) async fn policy(&self, what: &str, desired: &Value) -> String {
        self.policy_of(what, json!({"desiredState": desired})).await
    }

    /// The same, with whatever else is to be in its spec.
    pub(crate) async fn policy_of(&self, what: &str, spec: Value) -> String {
        self.annotated(what, spec, json!({})).await
    }

    /// The same, with annotations.
    pub(crate) async fn annotated(&self, what: &str, spec: Value, annotations: Value) -> String {
        let name = unique(what);
        self.named(&name, spec, annotations).await;
        name
    }

    /// Makes a policy of this name.
    pub(crate) async fn named(&self, name: &str, spec: Value, annotations: Value) {
        let mut spec = spec;
        if spec.get("nodeSelector").is_none() {
            spec["nodeSelector"] = self.selector();
        }
        let made = json!({"apiVersion": "nmstate.io/v1", "kind": "NodeNetworkConfigurationPolicy",
            "metadata": {"name": name, "annotations": annotations}, "spec": spec});
        let made = serde_json::from_value(made).expect("a policy");
        let made = self.policies().create(&PostParams::default(), &made).await;
        made.expect("a policy");
    }

    pub(crate) fn policies(&self) -> Api<NodeNetworkConfigurationPolicy> {
        Api::all(self.client.clone())
    }

    /// Has a policy ask for another state.
    pub(crate) async fn edit(&self, policy: &str, desired: &Value) {
        // What is not said again goes.
        let patch = json!([{"op": "replace", "path": "/spec/desiredState", "value": desired}]);
        let patch = Patch::<()>::Json(serde_json::from_value(patch).expect("a patch"));
        let how = PatchParams::default();
        let edited = self.policies().patch(policy, &how, &patch).await;
        edited.expect("a policy");
    }

    /// What the event about a policy says that comes first.
    pub(crate) async fn event(&self, policy: &str) -> String {
        let events = Api::<Event>::namespaced(self.client.clone(), "default");
        let how = ListParams::default().fields(&format!("regarding.name={policy}"));
        let found = until("an event", SOON, async || {
            let found = events.list(&how).await.map_err(|it| it.to_string())?;
            found.items.into_iter().next().ok_or("none".to_owned())
        });
        let event = found.await.expect("an event");
        let said = (event.type_.as_deref(), event.reason.as_deref());
        assert_eq!(said, (Some("Warning"), Some("ReconcileFailed")));
        event.note.unwrap_or_default()
    }

    /// Waits until the handler of a host has looked at every policy there is: it looks at them in the
    /// order of their names, and at one that asks for nothing here last.
    pub(crate) async fn all_looked_at(&self, host: &Member) {
        let spec = json!({"nodeSelector": {HOST: host.node}, "desiredState": {"interfaces": []}});
        let last = self.policy_of("zzz", spec).await;
        host.comes_to(&last, EnactmentCondition::Available).await;
        self.delete(&last).await;
        host.is_rid_of(&last).await;
    }

    /// Waits until what is made now is younger than what was made before, as the API server counts.
    pub(crate) async fn another_second(&self) {
        let now = jiff::Timestamp::now();
        let left = 1_000_000_000 - now.subsec_nanosecond();
        tokio::time::sleep(Duration::from_nanos(u64::try_from(left).unwrap_or(0))).await;
    }

    pub(crate) async fn delete(&self, policy: &str) {
        let how = DeleteParams::default();
        let deleted = self.policies().delete(policy, &how).await;
        deleted.expect("a policy to delete");
    }
}

/// The way to the API server as hosts go it: not by the cluster's door, but to where it is.
fn from_a_host(cluster: &Cluster) -> String {
    let address = Network::of_cluster(cluster).address();
    let mut kubeconfig: Value = serde_json::from_str(&cluster.kubeconfig()).expect("JSON");
    kubeconfig["clusters"][0]["cluster"]["server"] = json!(format!("https://{address}:6443"));
    kubeconfig.to_string()
}

/// Says again and again that nodes are Ready.
async fn beat(client: Client, nodes: Arc<Mutex<Vec<String>>>) {
    let api = Api::<Node>::all(client);
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        let known = nodes.lock().expect("a list").clone();
        join_all(known.iter().map(|node| is_ready(&api, node))).await;
    }
}

async fn is_ready(nodes: &Api<Node>, name: &str) {
    let now = jiff::Timestamp::now().to_string();
    let conditions = json!([{"type": "Ready", "status": "True", "reason": "Test", "message": "",
        "lastHeartbeatTime": now}]);
    let status = Patch::Merge(json!({"status": {"conditions": conditions}}));
    // It may have been deleted meanwhile.
    let _ = nodes
        .patch_status(name, &PatchParams::default(), &status)
        .await;
}
