//! What a node does when the API server, the operator, the proxy or the sidecar is away.

use crate::mark::Mark;
use crate::world::{Chain, PATIENCE, world};
use keelson_api::names::Port;
use keelson_testbed::{Cluster, Container, Process, until};
use nix::sys::signal::Signal;
use std::net::SocketAddr;

const NODE: &str = "validator";

/// The containers of the node's pod.
fn containers(chain: &Chain) -> Vec<Container> {
    let all = chain
        .world
        .cluster
        .containers(&chain.name, &format!("{NODE}-0"));
    all.expect("containers")
}

/// A component that is stopped, and is started again however the test ends.
struct Away<'a>(&'a Process);

impl<'a> Away<'a> {
    async fn stop(cluster: &'a Cluster, name: &str) -> Self {
        let component = cluster.component(name);
        component.stop().await;
        Self(component)
    }
}

impl Drop for Away<'_> {
    fn drop(&mut self) {
        self.0.start().expect("a component that starts again");
    }
}

#[tokio::test]
async fn a_node_whose_sandbox_is_killed_starts_by_itself_with_no_api_server_and_no_operator() {
    let world = world().await;
    let chain = world.chain_alone("outage").await;
    chain.apply(&chain.validator());
    chain.running(NODE).await;
    let before = chain.makes_blocks(NODE, 2).await;
    let old = containers(&chain);

    let away = Away::stop(&world.cluster, "kube-apiserver").await;
    // All processes of the pod share the namespace of the sandbox's, and end with it.
    let sandbox = old.iter().find(|it| it.name.is_none());
    let killed = sandbox.map(|it| world.cluster.signal(it, Signal::SIGKILL));
    killed.expect("a sandbox").expect("a signal");
    let mut first = None;
    let blocks = until("blocks with no API server", PATIENCE, async || {
        let again = chain
            .world
            .cluster
            .container(&chain.name, &format!("{NODE}-0"), "seid");
        let again = again.map_err(|error| error.to_string())?;
        if old.iter().any(|it| it.id == again.id) {
            return Err("the old container".to_owned());
        }
        let address = world.cluster.address_of(&again);
        let address = address.map_err(|error| error.to_string())?;
        let height = chain.height_at(SocketAddr::new(address, Port::Rpc.number()))?;
        let first = *first.get_or_insert(height);
        match first >= before && height > first + 2 {
            true => Ok(height),
            false => Err(format!("height {height}, first seen at {first}")),
        }
    });
    let blocks = blocks.await.expect("blocks");
    drop(away);
    println!("from {before} to {blocks} with no API server");
    let back = until("the API server", PATIENCE, async || chain.seen(NODE).await);
    back.await.expect("a server that is back");
    chain.running(NODE).await;
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
