//! The client of the RPC before a real node.

use crate::node::Node;
use crate::shared::{CHAIN, Chain};
use crate::stage::Sidecar;
use keelson_sidecar::rpc::{PATIENCE, Problem, Rpc};
use serde_json::json;

#[tokio::test]
async fn a_node_says_who_and_how_high_it_is_and_the_hash_of_a_block() {
    let chain = Chain::shared();
    let node = &chain.validator;
    let rpc = Rpc::new(&node.rpc(), PATIENCE);
    let status = rpc.status().await.expect("a status");
    assert_eq!(
        (status.node_id, status.network.as_str()),
        (node.id(), CHAIN)
    );
    assert!(status.height > 10 && !status.catching_up);
    let block = node.get("/block?height=5").expect("a block");
    let hash = block["block_id"]["hash"].as_str().expect("a hash");
    assert_eq!(rpc.block_hash(5).await.expect("a hash"), hash);
    let other = Rpc::new(&chain.follower.rpc(), PATIENCE);
    assert_eq!(other.block_hash(5).await.expect("a hash"), hash);
}

#[tokio::test]
async fn a_block_that_is_not_there_yet_is_refused_in_the_nodes_words() {
    let chain = Chain::shared();
    let rpc = Rpc::new(&chain.validator.rpc(), PATIENCE);
    let trouble = rpc.block_hash(1_000_000_000).await.expect_err("no block");
    assert!(!trouble.is_unreachable());
    assert!(
        trouble
            .to_string()
            .contains("must be less than or equal to"),
        "{trouble}"
    );
}

#[tokio::test]
async fn a_node_that_wraps_its_answers_is_understood_too() {
    let mut node = Node::validator("wrapping", "test-2");
    node.start(&["--rpc.envelope"]);
    node.reaches(2);
    assert_eq!(node.get("/status").expect("a status")["jsonrpc"], "2.0");
    let rpc = Rpc::new(&node.rpc(), PATIENCE);
    assert_eq!(rpc.status().await.expect("a status").network, "test-2");
    assert_eq!(rpc.block_hash(1).await.expect("a hash").len(), 64);
    let trouble = rpc.block_hash(1_000_000_000).await.expect_err("no block");
    let said = matches!(trouble.problem, Problem::Rpc(_) | Problem::Refused { .. });
    assert!(said, "{trouble}");
    assert!(node.stop().success());
    assert!(rpc.status().await.expect_err("nobody").is_unreachable());
}

#[test]
fn a_node_that_runs_is_asked_who_it_is_whatever_key_the_volume_has() {
    let (running, other) = (&Chain::shared().validator, Node::init("other-key", CHAIN));
    let mut sidecar = Sidecar::idle("asked").with("KEELSON_SEID_RPC", &running.rpc());
    std::fs::create_dir_all(sidecar.home.join("config")).expect("a folder");
    let key = "config/node_key.json";
    std::fs::copy(other.home.join(key), sidecar.home.join(key)).expect("a key");
    sidecar.run();
    let told = sidecar.get("/v0/node-id").json();
    assert_eq!(told, json!({ "nodeId": running.id() }));
}
