//! Hosts without a network of their own: the part of a handler that talks to the API server, and the
//! objects it talks about.

use crate::common::program::{Folder, SOON};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use keelson_api::enactment::{NodeNetworkConfigurationEnactmentStatus as Status, enactment_name};
use keelson_api::host::{CLAIMS_CONFIG_MAP, CLAIMS_KEY};
use keelson_api::{NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy};
use keelson_host::handler::enactment::{Standing, begin};
use keelson_host::handler::journal::Policy;
use keelson_host::handler::server::{EnactmentReport, Outbox, Server, Settings};
use keelson_testbed::faults::{Call, FaultProxy};
use keelson_testbed::{Cluster, until};
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

/// The shared cluster, with our types.
pub(crate) async fn cluster() -> &'static Cluster {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let cluster = Cluster::shared().await;
    let install = async || cluster.install_crds().await.expect("types");
    INSTALLED.get_or_init(install).await;
    cluster
}

/// A name nobody else has, in the whole cluster.
pub(crate) fn unique(what: &str) -> String {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    format!("{what}-{}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// One test: a client that always works, and a proxy that need not.
pub(crate) struct World {
    pub(crate) client: Client,
    pub(crate) faults: FaultProxy,
    pub(crate) namespace: String,
}

impl World {
    pub(crate) async fn new(test: &str) -> Self {
        let cluster = cluster().await;
        Self {
            client: cluster.client(),
            faults: cluster.faults().expect("a proxy"),
            namespace: cluster.namespace(test).await.name().to_owned(),
        }
    }

    /// A host behind the proxy, whose node exists and is Ready.
    pub(crate) async fn host(&self) -> Host {
        let name = unique("node");
        self.node(&name, json!({}), true).await;
        self.host_named(&name)
    }

    /// A host behind the proxy, whether or not there is a node.
    pub(crate) fn host_named(&self, node: &str) -> Host {
        self.host_in(node, Folder::new())
    }

    /// The same, that finds what another one left on disk.
    pub(crate) fn host_in(&self, node: &str, folder: Folder) -> Host {
        folder.write("kubeconfig", &self.faults.kubeconfig());
        let outbox = Outbox::open(&folder.path("outbox")).expect("an outbox");
        let settings = Settings {
            node: node.to_owned(),
            namespace: self.namespace.clone(),
            kubeconfig: Some(folder.path("kubeconfig")),
            labels: [("app.kubernetes.io/part-of".to_owned(), "a-test".to_owned())].into(),
        };
        let server = Server::new(settings, outbox);
        let running = server.clone();
        Host {
            node: node.to_owned(),
            task: tokio::spawn(async move { Box::pin(running.run()).await }),
            server,
            folder: Some(folder),
        }
    }

    /// Writes a node and its readiness.
    pub(crate) async fn node(&self, name: &str, labels: Value, ready: bool) {
        let nodes = Api::<Node>::all(self.client.clone());
        let how = PatchParams::apply("a-test").force();
        let node = json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}});
        let node = Patch::Apply(node);
        nodes.patch(name, &how, &node).await.expect("a node");
        let ready = if ready { "True" } else { "False" };
        let conditions =
            json!([{"type": "Ready", "status": ready, "reason": "Test", "message": ""}]);
        let status = Patch::Merge(json!({"status": {"conditions": conditions}}));
        let how = PatchParams::default();
        let written = nodes.patch_status(name, &how, &status).await;
        written.expect("a status");
    }

    pub(crate) async fn delete_node(&self, name: &str) {
        let nodes = Api::<Node>::all(self.client.clone());
        let how = DeleteParams::default();
        nodes.delete(name, &how).await.expect("a node to delete");
    }

    pub(crate) fn policies(&self) -> Api<NodeNetworkConfigurationPolicy> {
        Api::all(self.client.clone())
    }

    pub(crate) fn enactments(&self) -> Api<NodeNetworkConfigurationEnactment> {
        Api::all(self.client.clone())
    }

    /// Makes a policy.
    pub(crate) async fn policy(&self, name: &str) -> Policy {
        let made = json!({"apiVersion": "nmstate.io/v1", "kind": "NodeNetworkConfigurationPolicy",
            "metadata": {"name": name}, "spec": {"desiredState": {"interfaces": []}}});
        let made = serde_json::from_value(made).expect("a policy");
        let how = PostParams::default();
        let made = self.policies().create(&how, &made).await.expect("a policy");
        known(&made)
    }

    /// Edits a policy.
    pub(crate) async fn edit(&self, name: &str, patch: Value) -> Policy {
        let how = PatchParams::default();
        let patch = Patch::Merge(&patch);
        let edited = self.policies().patch(name, &how, &patch).await;
        known(&edited.expect("a policy"))
    }

    pub(crate) async fn delete_policy(&self, name: &str) {
        let how = DeleteParams::default();
        let deleted = self.policies().delete(name, &how).await;
        deleted.expect("a policy to delete");
    }

    pub(crate) async fn delete_enactment(&self, name: &str) {
        let how = DeleteParams::default();
        let deleted = self.enactments().delete(name, &how).await;
        deleted.expect("an enactment to delete");
    }

    /// Makes the object for claims, with this in it.
    pub(crate) async fn claims_are(&self, text: &str) {
        let maps = Api::<ConfigMap>::namespaced(self.client.clone(), &self.namespace);
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": CLAIMS_CONFIG_MAP}, "data": {CLAIMS_KEY: text}});
        let how = PatchParams::apply("a-test").force();
        let made = maps
            .patch(CLAIMS_CONFIG_MAP, &how, &Patch::Apply(&map))
            .await;
        made.expect("a ConfigMap");
    }

    /// What is in the object for claims.
    pub(crate) async fn claims(&self) -> String {
        let maps = Api::<ConfigMap>::namespaced(self.client.clone(), &self.namespace);
        let map = maps.get(CLAIMS_CONFIG_MAP).await.expect("a ConfigMap");
        map.data.unwrap_or_default()[CLAIMS_KEY].clone()
    }

    /// The writes so far of these resources. Who writes right after another may have to look again: what
    /// is refused for that is none.
    pub(crate) fn writes(&self, resource: &str) -> Vec<Call> {
        let mut writes = self.faults.writes();
        writes.retain(|call| call.resource == resource && call.code != Some(409));
        writes
    }
}

fn known(policy: &NodeNetworkConfigurationPolicy) -> Policy {
    Policy {
        uid: policy.metadata.uid.clone().expect("a uid"),
        name: policy.metadata.name.clone().expect("a name"),
        generation: policy.metadata.generation.expect("a generation"),
    }
}

/// The part of a handler that is tested here, running.
pub(crate) struct Host {
    pub(crate) node: String,
    pub(crate) server: Server,
    task: JoinHandle<()>,
    folder: Option<Folder>,
}

impl Drop for Host {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Host {
    /// Ends it as a kill does; what is on disk stays.
    pub(crate) async fn kill(mut self) -> Folder {
        self.task.abort();
        let _ = (&mut self.task).await;
        self.folder.take().expect("a folder")
    }

    pub(crate) async fn connected(&self) {
        self.comes_to("a connection", |it| it.is_connected()).await;
    }

    /// Waits until this holds of what is known.
    pub(crate) async fn comes_to(&self, what: &str, so: impl Fn(&Server) -> bool) {
        let look = async || match so(&self.server) {
            true => Ok(()),
            false => Err(format!("{:?}", self.server.trouble())),
        };
        until(what, SOON, look).await.expect(what);
    }

    /// Waits until everything is told.
    pub(crate) async fn all_told(&self) {
        self.comes_to("all told", |it| it.outbox().due() == 0).await;
    }

    /// Reports how a policy stands.
    pub(crate) fn put(&self, policy: &Policy, standing: &Standing) {
        let report = report(policy, standing);
        self.server.outbox().put(report).expect("a disk");
    }

    /// The name of the enactment of a policy on it.
    pub(crate) fn enactment(&self, policy: &Policy) -> String {
        enactment_name(&self.node, &policy.name)
    }

    /// What the enactment of a policy says; none where there is none.
    pub(crate) async fn says(&self, world: &World, policy: &Policy) -> Option<Status> {
        let name = self.enactment(policy);
        let found = world.enactments().get_opt(&name).await;
        Some(found.expect("an answer")?.status.unwrap_or_default())
    }
}

/// A report of how a policy stands.
pub(crate) fn report(policy: &Policy, standing: &Standing) -> EnactmentReport {
    let now = Timestamp::now();
    let mut status = Status::default();
    begin(&mut status, policy.generation, now);
    standing.set(&mut status.conditions, now);
    EnactmentReport {
        policy: policy.clone(),
        status,
    }
}
