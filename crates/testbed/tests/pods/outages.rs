//! What a node does when the API server, the operator, the proxy or the sidecar is away.

use crate::mark::Mark;
use crate::world::{Chain, PATIENCE, World, world};
use keelson_api::names::Port;
use keelson_testbed::{Cluster, Container, Process, until};
use nix::sys::signal::Signal;
use std::net::SocketAddr;
use std::time::Duration;

const NODE: &str = "validator";
/// What the operator's pods are known by.
const OPERATOR: &str = "app.kubernetes.io/name=keelson-operator";

/// The containers of the node's pod.
fn containers(chain: &Chain) -> Vec<Container> {
    let all = chain
        .world
        .cluster
        .containers(&chain.name, &format!("{NODE}-0"));
    all.expect("containers")
}

/// A component that is stopped, and is started again however the test ends.
pub(crate) struct Away<'a>(&'a Process);

impl<'a> Away<'a> {
    pub(crate) async fn stop(cluster: &'a Cluster, name: &str) -> Self {
        let component = cluster.component(name);
        component.stop().await;
        Self(component)
    }

    /// The same without a word to anybody: an API server that is told to end takes itself out of its
    /// Service first, and pods find it again only when kube-proxy has.
    pub(crate) async fn kill(cluster: &'a Cluster, name: &str) -> Self {
        let component = cluster.component(name);
        component.kill().await;
        Self(component)
    }
}

impl Drop for Away<'_> {
    fn drop(&mut self) {
        self.0.start().expect("a component that starts again");
    }
}

/// The operator, which is away, and is called back however the test ends.
pub(crate) struct NoOperator<'a>(&'a World);

impl<'a> NoOperator<'a> {
    pub(crate) fn begin(world: &'a World) -> Self {
        let away = Self(world);
        away.scale("--replicas=0").expect("no operator");
        let place = ["--namespace", "keelson-system", "wait", "pod"];
        let gone = ["--for=delete", "--selector", OPERATOR, "--timeout=120s"];
        let gone = world.kubectl.run(&[&place[..], &gone].concat());
        gone.expect("an operator that is gone");
        away
    }

    fn scale(&self, replicas: &str) -> Result<String, keelson_testbed::Error> {
        let place = ["--namespace", "keelson-system", "scale", replicas];
        let words = [&place[..], &["deployment/keelson-operator"]].concat();
        self.0.kubectl.run(&words)
    }
}

impl Drop for NoOperator<'_> {
    fn drop(&mut self) {
        // The API server may have been started just now.
        let pause = || std::thread::sleep(Duration::from_secs(1));
        let tried = (0..60).any(|_| self.scale("--replicas=1").map_err(|_| pause()).is_ok());
        assert!(tried, "the operator was not called back");
    }
}

/// Kills the sandbox of the node's pod through the container runtime, and all containers with it.
/// Waits until others make blocks, and asks nobody but the runtime and the node; says how many.
async fn comes_back_by_itself(chain: &Chain, before: u64) -> u64 {
    let cluster = &chain.world.cluster;
    let old = containers(chain);
    // All processes of the pod share the namespace of the sandbox's, and end with it.
    let sandbox = old.iter().find(|it| it.name.is_none());
    let killed = sandbox.map(|it| cluster.signal(it, Signal::SIGKILL));
    killed.expect("a sandbox").expect("a signal");
    let mut first = None;
    let blocks = until("blocks of other containers", PATIENCE, async || {
        let again = cluster.container(&chain.name, &format!("{NODE}-0"), "seid");
        let again = again.map_err(|error| error.to_string())?;
        if old.iter().any(|it| it.id == again.id) {
            return Err("the old container".to_owned());
        }
        let address = cluster.address_of(&again);
        let address = address.map_err(|error| error.to_string())?;
        let height = chain.height_at(SocketAddr::new(address, Port::Rpc.number()))?;
        let first = *first.get_or_insert(height);
        match first >= before && height > first + 2 {
            true => Ok(height),
            false => Err(format!("height {height}, first seen at {first}")),
        }
    });
    blocks.await.expect("blocks")
}

/// Kills the proxy alone, and waits until another one leads to the sidecar. Asks nobody but the runtime
/// and the node, which goes on as the process it is.
async fn proxy_comes_back_by_itself(chain: &Chain) -> u64 {
    let cluster = &chain.world.cluster;
    let (node, old) = (
        chain.container(NODE, "seid"),
        chain.container(NODE, "kube-rbac-proxy"),
    );
    let address = cluster.address_of(&node).expect("an address");
    let killed = cluster.signal(&old, Signal::SIGKILL);
    killed.expect("a signal");
    let again = until("another proxy", PATIENCE, async || {
        let again = cluster.container(&chain.name, &format!("{NODE}-0"), "kube-rbac-proxy");
        let again = again.map_err(|error| error.to_string())?;
        let port = SocketAddr::new(address, Port::Api.number());
        match cluster.get(port, "/v0/healthz") {
            Ok((200, _)) if again.id != old.id => Ok(()),
            answer => Err(format!("{answer:?}")),
        }
    });
    again.await.expect("a proxy that serves");
    assert_eq!(chain.container(NODE, "seid").process, node.process);
    let rpc = SocketAddr::new(address, Port::Rpc.number());
    let before = chain.height_at(rpc).expect("a height");
    let blocks = until("two blocks", PATIENCE, async || {
        let height = chain.height_at(rpc)?;
        let made = height >= before + 2;
        made.then_some(height).ok_or(format!("height {height}"))
    });
    blocks.await.expect("blocks")
}

#[tokio::test]
async fn a_node_whose_sandbox_or_proxy_is_killed_starts_by_itself_with_no_operator_and_no_api_server()
 {
    let world = world().await;
    let chain = world.chain_alone("outage").await;
    chain.apply(&chain.validator());
    chain.running(NODE).await;
    let before = chain.makes_blocks(NODE, 2).await;
    let uid = chain.pod(NODE).await.expect("a pod").metadata.uid;

    let no_operator = NoOperator::begin(world);
    let without_operator = comes_back_by_itself(&chain, before).await;
    let away = Away::stop(&world.cluster, "kube-apiserver").await;
    let without_both = comes_back_by_itself(&chain, without_operator).await;
    let with_new_proxy = proxy_comes_back_by_itself(&chain).await;
    drop(away);
    println!(
        "from {before} to {without_operator} with no operator, to {without_both} with no API server either, and to {with_new_proxy} with another proxy"
    );
    let back = until("the API server", PATIENCE, async || chain.seen(NODE).await);
    back.await.expect("a server that is back");
    drop(no_operator);
    world.installer.ready().expect("an operator that is back");
    chain.running(NODE).await;
    let pod = chain.pod(NODE).await.expect("a pod");
    assert_eq!(pod.metadata.uid, uid, "it is the same pod");
}

#[tokio::test]
async fn a_frozen_sidecar_is_started_again_and_the_proxy_is_not() {
    let chain = world().await.chain("frozen").await;
    chain.apply(&chain.validator());
    chain.running(NODE).await;
    let node = chain.container(NODE, "seid");
    let sidecar = chain.container(NODE, "sei-sidecar");
    let stopped = chain.world.cluster.signal(&sidecar, Signal::SIGSTOP);
    stopped.expect("a signal");
    let again = until("another sidecar", PATIENCE, async || {
        let restarts = chain.restarts(NODE).await;
        match restarts.get("sei-sidecar") {
            Some(1) => Ok(restarts),
            _ => Err(format!("{restarts:?}")),
        }
    });
    let restarts = again.await.expect("a sidecar that is started again");
    assert!(
        restarts
            .iter()
            .all(|(name, count)| name == "sei-sidecar" || *count == 0),
        "{restarts:?}"
    );
    assert_eq!(chain.container(NODE, "seid").process, node.process);
    chain.makes_blocks(NODE, 2).await;
}

#[tokio::test]
async fn a_proxy_that_is_killed_comes_back_alone() {
    let chain = world().await.chain("proxy").await;
    chain.apply(&chain.validator());
    chain.running(NODE).await;
    let before = Mark::of(&chain, NODE).await;
    let proxy = chain.container(NODE, "kube-rbac-proxy");
    let killed = chain.world.cluster.signal(&proxy, Signal::SIGKILL);
    killed.expect("a signal");
    let mut expected = before;
    expected.restarts.insert("kube-rbac-proxy".to_owned(), 1);
    let again = until("another proxy", PATIENCE, async || {
        let (mark, answer) = (
            Mark::of(&chain, NODE).await,
            chain.get(NODE, Port::Api, "/v0/healthz").await,
        );
        match (mark == expected, answer) {
            (true, Ok((200, _))) => Ok(()),
            (_, answer) => Err(format!("{mark:?}, {answer:?}")),
        }
    });
    again
        .await
        .expect("a proxy that is started again, and nothing else");
    chain.makes_blocks(NODE, 2).await;
}
