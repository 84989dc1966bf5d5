//! Nodes from nothing.

use crate::world::world;
use serde_json::json;

#[tokio::test]
async fn a_validator_and_a_full_node_from_nothing_run_and_make_blocks() {
    let chain = world().await.chain("boot");
    chain.apply(&chain.validator());
    chain.apply(&chain.node("full", json!({ "fullNode": {} })));
    chain.running("validator").await;
    chain.makes_blocks("validator", 3).await;
    chain.running("full").await;
    chain.makes_blocks("full", 3).await;
    for node in ["validator", "full"] {
        let restarts = chain.restarts(node).await;
        assert!(restarts.values().all(|it| *it == 0), "{node}: {restarts:?}");
        let seid = chain.container(node, "seid");
        println!("{node}: {seid:?}");
    }
}
