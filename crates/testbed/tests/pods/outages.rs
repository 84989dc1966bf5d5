//! What a node does when the API server, the operator, the proxy or the sidecar is away.

use crate::mark::Mark;
use crate::world::{Chain, PATIENCE, world};
use keelson_api::names::Port;
use keelson_testbed::{Container, until};
use nix::sys::signal::Signal;

const NODE: &str = "validator";

/// The containers of the node's pod.
fn containers(chain: &Chain) -> Vec<Container> {
    let all = chain
        .world
        .cluster
        .containers(&chain.name, &format!("{NODE}-0"));
    all.expect("containers")
}

#[tokio::test]
async fn a_node_whose_containers_are_killed_starts_by_itself_with_no_api_server_and_no_operator() {
    let world = world().await;
    let chain = world.chain_alone("outage").await;
    chain.apply(&chain.validator());
    chain.running(NODE).await;
    let before = chain.makes_blocks(NODE, 2).await;
    let address = chain.address(NODE, Port::Rpc).await.expect("an address");
    let old = containers(&chain);

    let server = world.cluster.component("kube-apiserver");
    server.stop().await;
    for container in old.iter().filter(|it| it.name.is_some()) {
        world
            .cluster
            .signal(container, Signal::SIGKILL)
            .expect("a signal");
    }
    let blocks = until("blocks with no API server", PATIENCE, async || {
        let again = chain
            .world
            .cluster
            .container(&chain.name, &format!("{NODE}-0"), "seid");
        let again = again.map_err(|error| error.to_string())?;
        if old.iter().any(|it| it.id == again.id) {
            return Err("the old container".to_owned());
        }
        let height = chain.height_at(address)?;
        match height > before + 2 {
            true => Ok(height),
            false => Err(format!("height {height}")),
        }
    });
    let blocks = blocks.await;
    server.start().expect("the API server");
    let blocks = blocks.expect("blocks");
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
