//! The clusters tests of this program share, with Keelson in them, and what tests ask of nodes: their
//! state, their heights, their processes.

use k8s_openapi::api::core::v1::Pod;
use keelson_api::SeiNode;
use keelson_api::names::Port;
use keelson_api::node_status::NodePhase;
use keelson_testbed::image::Image;
use keelson_testbed::{
    Cluster, Container, Founding, Installer, Kubectl, Product, Profile, Size, found, images, pods,
    until,
};
use kube::Api;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{OnceCell, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The release nodes are started with.
pub(crate) const SEID: &str = "localhost/seid:v6.0.0";
/// The next one.
pub(crate) const NEW: &str = "localhost/seid:v6.1.0";
/// Long enough for a pod to come and a node to start on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// The cluster, and Keelson in it.
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) kubectl: Kubectl,
    pub(crate) installer: Installer,
    /// Held for writing by who breaks what all share.
    calm: RwLock<()>,
}

/// The world of nodes, made by the first test that asks.
pub(crate) async fn world() -> &'static World {
    static WORLD: OnceCell<World> = OnceCell::const_new();
    WORLD.get_or_init(World::make).await
}

/// The world of host components: who breaks the one holds up nobody in the other.
pub(crate) async fn world_of_hosts() -> &'static World {
    static WORLD: OnceCell<World> = OnceCell::const_new();
    WORLD.get_or_init(World::make).await
}

impl World {
    async fn make() -> Self {
        let pods = pods(Profile::Dev, 48).expect("images");
        let cluster = Cluster::start(Size::Pods(pods)).await.expect("a cluster");
        let kubectl = cluster.kubectl();
        let installer = Installer::new(kubectl.clone()).hosts();
        installer.operator(&BTreeMap::new()).expect("an operator");
        installer.surroundings().expect("an S3 server");
        if let Err(error) = installer.ready() {
            panic!("{error}\n{}", installer.look("storage"));
        }
        Self {
            cluster,
            kubectl,
            installer,
            calm: RwLock::default(),
        }
    }

    /// Brings the image of a program into the cluster as another release of it.
    pub(crate) fn bring(&self, product: Product, release: &str) {
        let folder = self.cluster.folder().join("images");
        let images = images::products(Profile::Dev, &folder).expect("images");
        let named = |it: &Image| it.name == images::name(product);
        let mut image = images.into_iter().find(named).expect("an image");
        image.name = release.to_owned();
        let written = image.write(&folder).expect("an image");
        self.cluster.import(&written.file).expect("its import");
    }

    /// A namespace of its own for a test, with a chain of its own whose genesis is in the bucket.
    pub(crate) async fn chain(&'static self, test: &str) -> Chain {
        let chain = self.unpublished(test).await;
        chain.publish();
        chain
    }

    /// The same, with the genesis still to come.
    pub(crate) async fn unpublished(&'static self, test: &str) -> Chain {
        let calm = Turn::Shared(self.calm.read().await);
        self.make_chain(test, calm)
    }

    /// The same for a test that has the cluster to itself, to break it.
    pub(crate) async fn chain_alone(&'static self, test: &str) -> Chain {
        let chain = self.make_chain(test, Turn::Alone(self.calm.write().await));
        chain.publish();
        chain
    }

    /// A second chain of a test: its turn is that of the first.
    pub(crate) fn beside(&'static self, _first: &Chain, test: &str) -> Chain {
        let chain = self.make_chain(test, Turn::OfAnother);
        chain.publish();
        chain
    }

    /// A turn with the others, for a test without a chain.
    pub(crate) async fn shared(&'static self) -> Turn {
        Turn::Shared(self.calm.read().await)
    }

    /// The cluster to itself, for a test without a chain.
    pub(crate) async fn alone(&'static self) -> Turn {
        Turn::Alone(self.calm.write().await)
    }

    fn make_chain(&'static self, test: &str, turn: Turn) -> Chain {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let name = format!("{test}-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        self.installer.namespace(&name).expect("a namespace");
        let founding = found(&name).expect("a chain");
        let keys = self.installer.keys(&name, "validator", &founding);
        keys.expect("keys");
        Chain {
            world: self,
            name,
            founding,
            turn,
        }
    }
}

/// A chain and the namespace of the same name its nodes live in.
pub(crate) struct Chain {
    pub(crate) world: &'static World,
    pub(crate) name: String,
    pub(crate) founding: Founding,
    turn: Turn,
}

/// Whether a test has the cluster to itself.
pub(crate) enum Turn {
    Shared(#[allow(dead_code, reason = "held")] RwLockReadGuard<'static, ()>),
    Alone(#[allow(dead_code, reason = "held")] RwLockWriteGuard<'static, ()>),
    /// As long as the chain beside it.
    OfAnother,
}

impl Drop for Chain {
    /// The nodes of a test that is over leave the machine to those that are not.
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}", self.world.installer.look(&self.name));
        }
        let words = ["delete", "namespace", "--wait=false", &self.name];
        let _ = self.world.kubectl.run(&words);
    }
}

impl Chain {
    /// What had to be done alone is done: the others go on.
    pub(crate) fn share(&mut self) {
        self.turn = match std::mem::replace(&mut self.turn, Turn::OfAnother) {
            Turn::Alone(turn) => Turn::Shared(turn.downgrade()),
            turn => turn,
        };
    }

    /// Puts the genesis into the bucket.
    pub(crate) fn publish(&self) {
        let put = self.world.installer.genesis(&self.founding);
        put.expect("a genesis");
    }

    /// A node with this mode, as a person writes it.
    pub(crate) fn node(&self, name: &str, mode: Value) -> Value {
        let labels = json!({ "sei.io/chain": self.name });
        let mut node = json!({
            "apiVersion": "sei.io/v1alpha1",
            "kind": "SeiNode",
            "metadata": { "name": name, "namespace": self.name, "labels": labels },
            "spec": {
                "chainId": self.name,
                "image": SEID,
                "peers": [{ "label": { "selector": labels } }],
            },
        });
        for (key, value) in mode.as_object().expect("a mode") {
            node["spec"][key] = value.clone();
        }
        node
    }

    /// The chain's validator.
    pub(crate) fn validator(&self) -> Value {
        let key = |name: &str| json!({ "secret": { "secretName": format!("validator-{name}") } });
        self.node(
            "validator",
            json!({ "validator": { "signingKey": key("signing-key"), "nodeKey": key("node-key") } }),
        )
    }

    /// Applies an object with kubectl, as a person does who has it in a file.
    pub(crate) fn apply(&self, object: &Value) {
        let text = object.to_string();
        let applied = self
            .world
            .kubectl
            .feed(&["apply", "-f", "-"], text.as_bytes());
        applied.expect("an object that is applied");
    }

    /// The node as it is.
    pub(crate) async fn seen(&self, node: &str) -> Result<SeiNode, String> {
        let nodes = Api::<SeiNode>::namespaced(self.world.cluster.client(), &self.name);
        nodes.get(node).await.map_err(|error| error.to_string())
    }

    /// Waits until a node is as it should be.
    pub(crate) async fn until(
        &self,
        node: &str,
        what: &str,
        is: impl Fn(&SeiNode) -> bool,
    ) -> SeiNode {
        let what = format!("{node}: {what}");
        let waited = until(&what, PATIENCE, async || {
            let seen = self.seen(node).await?;
            match is(&seen) {
                true => Ok(seen),
                false => Err(told(&seen)),
            }
        });
        waited.await.expect("a node as it should be")
    }

    /// Waits until a node is Running.
    pub(crate) async fn running(&self, node: &str) -> SeiNode {
        let running = |seen: &SeiNode| {
            let status = seen.status.as_ref();
            status.is_some_and(|it| it.phase == Some(NodePhase::Running) && it.plan.is_none())
        };
        self.until(node, "Running, with nothing left to do", running)
            .await
    }

    /// The pod of a node.
    pub(crate) async fn pod(&self, node: &str) -> Result<Pod, String> {
        let pods = Api::<Pod>::namespaced(self.world.cluster.client(), &self.name);
        let pod = pods.get(&format!("{node}-0")).await;
        pod.map_err(|error| error.to_string())
    }

    /// Where a port of a node's pod is.
    pub(crate) async fn address(&self, node: &str, port: Port) -> Result<SocketAddr, String> {
        let pod = self.pod(node).await?;
        let address = pod.status.and_then(|it| it.pod_ip).ok_or("no address")?;
        let address = address.parse().map_err(|_| "an odd address")?;
        Ok(SocketAddr::new(address, port.number()))
    }

    /// What a port of a node's pod answers to a GET in plain text.
    pub(crate) async fn get(
        &self,
        node: &str,
        port: Port,
        path: &str,
    ) -> Result<(u16, String), String> {
        let answer = self
            .world
            .cluster
            .get(self.address(node, port).await?, path);
        answer.map_err(|error| error.to_string())
    }

    /// The height a node itself tells.
    pub(crate) async fn height(&self, node: &str) -> Result<u64, String> {
        self.height_at(self.address(node, Port::Rpc).await?)
    }

    /// The same with the API server away, where the address is known.
    pub(crate) fn height_at(&self, address: SocketAddr) -> Result<u64, String> {
        let answer = self.world.cluster.get(address, "/status");
        let (_, said) = answer.map_err(|error| error.to_string())?;
        let said: Value = serde_json::from_str(&said).map_err(|error| error.to_string())?;
        let height = said["sync_info"]["latest_block_height"].as_str();
        height
            .and_then(|it| it.parse().ok())
            .ok_or(said.to_string())
    }

    /// Waits until a node has this many blocks more than it has now.
    pub(crate) async fn makes_blocks(&self, node: &str, more: u64) -> u64 {
        let mut first = None;
        let what = format!("{node}: {more} blocks");
        let waited = until(&what, PATIENCE, async || {
            let height = self.height(node).await?;
            let first = *first.get_or_insert(height);
            match height >= first + more {
                true => Ok(height),
                false => Err(format!("height {height}, first seen at {first}")),
            }
        });
        waited.await.expect("a chain that goes on")
    }

    /// A container of a node's pod, as the container runtime knows it.
    pub(crate) fn container(&self, node: &str, name: &str) -> Container {
        let cluster = &self.world.cluster;
        let container = cluster.container(&self.name, &format!("{node}-0"), name);
        container.expect("a container that runs")
    }

    /// What a container of a node's pod has said.
    pub(crate) fn log(&self, node: &str, container: &str) -> String {
        let pod = format!("{node}-0");
        let words = [
            "--namespace",
            &self.name,
            "logs",
            &pod,
            "--container",
            container,
        ];
        self.world.kubectl.run(&words).expect("a log")
    }

    /// How often each container of a node's pod was started again.
    pub(crate) async fn restarts(&self, node: &str) -> BTreeMap<String, i32> {
        let status = self
            .pod(node)
            .await
            .expect("a pod")
            .status
            .unwrap_or_default();
        let init = status.init_container_statuses.unwrap_or_default();
        let all = init
            .into_iter()
            .chain(status.container_statuses.unwrap_or_default());
        all.map(|it| (it.name, it.restart_count)).collect()
    }
}

/// What a node says of itself, in a line.
fn told(node: &SeiNode) -> String {
    let Some(status) = &node.status else {
        return "it says nothing yet".to_owned();
    };
    let plan = serde_json::to_value(&status.plan).unwrap_or_default();
    let conditions: Vec<String> = status
        .conditions
        .iter()
        .filter(|it| it.status != "False")
        .map(|it| format!("{}: {}", it.type_, it.message))
        .collect();
    format!(
        "phase {:?}, {}, plan {plan}",
        status.phase,
        conditions.join("; ")
    )
}
