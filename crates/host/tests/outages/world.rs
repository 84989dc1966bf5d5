//! A host with a Node and a handler of its own, whose API server is behind a proxy that can be anything
//! but well, behind the host's gateway.
//!
//! Policies are for the whole cluster, so each selects the one host it is for.

use crate::common::desired;
use crate::common::homes::{Home, SOON, Start};
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use keelson_api::enactment::{NodeNetworkConfigurationEnactmentStatus as Status, enactment_name};
use keelson_api::host::{CLAIMS_CONFIG_MAP, CLAIMS_KEY};
use keelson_api::host_condition::EnactmentCondition;
use keelson_api::{
    NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy, NodeNetworkState,
};
use keelson_host::handler::points::Point;
use keelson_host::handler::socket::ask;
use keelson_testbed::faults::FaultProxy;
use keelson_testbed::{Cluster, Host, Network, Process, patience, until};
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::ops::Deref;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::OnceCell;
use tokio::task::JoinHandle;

/// How long probes have after a change, in seconds.
pub(crate) const PROBES: u64 = 3;

/// How long a change that nobody confirms lasts, in seconds.
const CHECKPOINT: u64 = 20;

/// How often a node says that it is Ready.
const BEAT: Duration = Duration::from_secs(10);

/// The label of a host's node that policies select by.
const LABEL: &str = "kubernetes.io/hostname";

/// The shared cluster, with our types.
async fn cluster() -> &'static Cluster {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let cluster = Cluster::shared().await;
    let install = async || cluster.install_crds().await.expect("types");
    INSTALLED.get_or_init(install).await;
    cluster
}

/// A host, its node, and its way to the API server.
pub(crate) struct World {
    home: Home,
    pub(crate) network: Network,
    pub(crate) faults: FaultProxy,
    pub(crate) node: String,
    client: Client,
    namespace: String,
    _heart: Heart,
}

impl Deref for World {
    type Target = Home;

    fn deref(&self) -> &Home {
        &self.home
    }
}

impl World {
    pub(crate) async fn new(test: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let cluster = cluster().await;
        let network = Network::of_cluster(cluster);
        let home = Home {
            host: Host::start(&network).await.expect("a host"),
        };
        home.keep_a_spare().await;
        let mut world = Self {
            home,
            faults: cluster.faults_at(&network).expect("a proxy"),
            network,
            node: format!("node-{}", COUNT.fetch_add(1, Ordering::Relaxed)),
            client: cluster.client(),
            namespace: cluster.namespace(test).await.name().to_owned(),
            _heart: Heart(None),
        };
        world.make_claims().await;
        world._heart = world.make_node().await;
        world
    }

    /// The object for claims, which the operator makes.
    async fn make_claims(&self) {
        let map = json!({"metadata": {"name": CLAIMS_CONFIG_MAP}, "data": {CLAIMS_KEY: ""}});
        let map = serde_json::from_value(map).expect("a ConfigMap");
        let maps = Api::<ConfigMap>::namespaced(self.client.clone(), &self.namespace);
        let made = maps.create(&PostParams::default(), &map).await;
        made.expect("a ConfigMap");
    }

    /// The host's node, which is Ready as long as its heart beats.
    async fn make_node(&self) -> Heart {
        let node = json!({"metadata": {"name": self.node, "labels": {LABEL: self.node}}});
        let node = serde_json::from_value(node).expect("a node");
        let nodes = Api::<Node>::all(self.client.clone());
        let made = nodes.create(&PostParams::default(), &node).await;
        made.expect("a node");
        beat(&nodes, &self.node).await;
        let name = self.node.clone();
        Heart(Some(tokio::spawn(async move {
            loop {
                tokio::time::sleep(BEAT).await;
                beat(&nodes, &name).await;
            }
        })))
    }

    /// Makes a policy for this host. It has the host's name, too.
    pub(crate) async fn ask_for(&self, what: &str, desired: &Value) -> String {
        let name = format!("{what}-{}", self.node);
        let policy = json!({"apiVersion": "nmstate.io/v1", "kind": "NodeNetworkConfigurationPolicy",
            "metadata": {"name": name},
            "spec": {"nodeSelector": {LABEL: self.node}, "desiredState": desired}});
        let policy = serde_json::from_value(policy).expect("a policy");
        let policies = Api::<NodeNetworkConfigurationPolicy>::all(self.client.clone());
        let made = policies.create(&PostParams::default(), &policy).await;
        made.expect("a policy");
        name
    }

    /// Edits a policy.
    #[allow(dead_code, reason = "each test binary uses its part")]
    pub(crate) async fn ask_anew(&self, name: &str, desired: &Value) {
        let edit = Patch::Merge(json!({"spec": {"desiredState": desired}}));
        let policies = Api::<NodeNetworkConfigurationPolicy>::all(self.client.clone());
        let edited = policies.patch(name, &PatchParams::default(), &edit).await;
        edited.expect("a policy");
    }

    /// The host's own cable under a bridge.
    pub(crate) fn under_a_bridge(&self) -> Value {
        desired::under_a_bridge(self.host.address(), self.network.address())
    }

    /// A handler, not started, that stops at a point if one is named.
    pub(crate) fn handler(&self, stop: Option<Point>) -> Process {
        self.home.handler(Start {
            node: self.node.clone(),
            kubeconfig: self.faults.kubeconfig(),
            stop,
            words: self.words(),
        })
    }

    /// What its handlers are told besides where things are.
    pub(crate) fn words(&self) -> Vec<String> {
        vec![
            format!("--namespace={}", self.namespace),
            format!("--checkpoint-timeout-seconds={}", patient(CHECKPOINT)),
            format!("--probe-timeout-seconds={}", patient(PROBES)),
            format!("--server-patience-seconds={}", patient(1)),
            // What failed is not tried again while it is looked at.
            "--initial-backoff-seconds=600".to_owned(),
            "--max-backoff-seconds=600".to_owned(),
        ]
    }

    /// What a handler that answers here says.
    pub(crate) async fn says(&self, question: &str) -> Result<String, String> {
        let said = ask(&self.path("health.sock"), question).await;
        said.unwrap_or_else(|error| Err(error.to_string()))
    }

    /// Starts a handler, and says how long it took until it was well in this respect.
    pub(crate) async fn started(&self, handler: &Process, question: &str) -> Duration {
        let begun = Instant::now();
        handler.start().expect("a handler");
        while self.says(question).await.is_err() {
            assert!(begun.elapsed() < patience(SOON), "{}", handler.tail(20));
            // Looked at more often than other things, because this one is timed.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        begun.elapsed()
    }

    /// What the enactment of a policy here says; none where there is none.
    pub(crate) async fn enactment(&self, policy: &str) -> Option<Status> {
        let api = Api::<NodeNetworkConfigurationEnactment>::all(self.client.clone());
        let found = api.get_opt(&enactment_name(&self.node, policy)).await;
        Some(found.expect("an answer")?.status.unwrap_or_default())
    }

    /// Waits until a condition of the enactment of a policy holds, and gives its message.
    pub(crate) async fn comes_to(&self, policy: &str, kind: EnactmentCondition) -> String {
        let what = format!("{policy} to be {kind}");
        until(&what, SOON, async || {
            let status = self.enactment(policy).await.unwrap_or_default();
            let mut conditions = status.conditions.iter();
            match conditions.find(|it| it.type_ == kind.as_str() && it.status == "True") {
                Some(condition) => Ok(condition.message.clone().unwrap_or_default()),
                None => Err(format!("{:#?}\n{}", status.conditions, self.log(25))),
            }
        })
        .await
        .expect("a condition")
    }

    /// Waits until the state reported of this host is that of now.
    pub(crate) async fn is_reported(&self) {
        let api = Api::<NodeNetworkState>::all(self.client.clone());
        let own = self.host.address().to_string();
        until("a report", SOON, async || {
            let found = api.get_opt(&self.node).await.expect("an answer");
            let state = found.and_then(|it| it.status?.current_state);
            let text = json!(state).to_string();
            match text.contains(&own) {
                true => Ok(()),
                false => Err(format!("{text}\n{}", self.log(25))),
            }
        })
        .await
        .expect("a report");
    }

    /// The last lines of what its handler logged.
    pub(crate) fn log(&self, lines: usize) -> String {
        let text = std::fs::read_to_string(self.path("logs/keelson-host.log"));
        let text = text.unwrap_or_default();
        let all: Vec<&str> = text.lines().collect();
        all[all.len().saturating_sub(lines)..].join("\n")
    }
}

/// What a kubelet says every now and then; the controller manager takes a node for lost that says nothing
/// for most of a minute.
async fn beat(nodes: &Api<Node>, name: &str) {
    let ready = json!([{"type": "Ready", "status": "True", "reason": "Test", "message": "",
        "lastHeartbeatTime": jiff::Timestamp::now()}]);
    let status = Patch::Merge(json!({"status": {"conditions": ready}}));
    let how = PatchParams::default();
    let written = nodes.patch_status(name, &how, &status).await;
    written.expect("a status");
}

/// Beats until it is dropped.
struct Heart(Option<JoinHandle<()>>);

impl Drop for Heart {
    fn drop(&mut self) {
        if let Some(beating) = &self.0 {
            beating.abort();
        }
    }
}

/// So many seconds, where we are.
fn patient(seconds: u64) -> u64 {
    patience(Duration::from_secs(seconds)).as_secs()
}

/// Waits until a handler has stopped at its point.
pub(crate) async fn stopped(handler: &Process) {
    let stopped = until("the point", SOON * 2, async || match handler.is_frozen() {
        true => Ok(()),
        false => Err(handler.tail(15)),
    });
    stopped.await.expect("a handler that stops");
}
