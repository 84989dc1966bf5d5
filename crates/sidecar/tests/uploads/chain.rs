//! A snapshot of a real chain: uploaded while the node runs, and restored by another node.

use super::gateway::{Kind, Store};
use super::node::Node;
use super::play::{CHAIN, archive, beside, sha256, unpack};
use super::stage::Sidecar;
use serde_json::json;

/// Snapshots come every so many blocks.
const EVERY: u64 = 5;

/// A sidecar in the home of a node.
fn beside_node(test: &str, store: &Store, node: &Node) -> Sidecar {
    let mut sidecar = beside(test, store);
    std::fs::remove_dir(&sidecar.home).expect("a home");
    sidecar.home = node.home.clone();
    sidecar.run();
    sidecar
}

#[test]
fn a_snapshot_of_a_running_node_is_uploaded_and_another_node_restores_it() {
    let store = Store::new(Kind::PathStyle);
    let mut node = Node::validator("uploads-one", CHAIN);
    let sidecar = beside_node("chain-one", &store, &node);
    let every = format!("--state-sync.snapshot-interval={EVERY}");
    node.start(&[&every, "--state-sync.snapshot-keep-recent=0"]);
    node.reaches(2 * EVERY + 3);
    let task = sidecar.perform("snapshot-upload-once", json!({}));
    assert_eq!(task["result"]["outcome"], "uploaded", "{task}");
    let height = task["result"]["height"].as_u64().expect("a height");
    assert!(height >= EVERY && height.is_multiple_of(EVERY), "{height}");
    assert!(store.folder.join(archive(height)).exists());

    // The genesis goes the way it goes to validators.
    let genesis = std::fs::read(node.home.join("config/genesis.json")).expect("a genesis");
    super::play::put(&store, &format!("{CHAIN}/genesis.json"), &genesis);
    let other = Node::init("uploads-two", CHAIN);
    let beside = beside_node("chain-two", &store, &other);
    let hash = json!({"expectedGenesisHash": sha256(&genesis)});
    beside.completes("configure-genesis", hash);
    unpack(&store, height, &other.home.join("data/snapshots"));
    let listed = other.run(&["snapshots", "list"]);
    let line = listed
        .lines()
        .find(|line| line.contains(&format!("height: {height} ")))
        .unwrap_or_else(|| panic!("{listed}"));
    let format = line.split("format: ").nth(1).expect("a format");
    let format = format.split_whitespace().next().expect("a format");
    let height = height.to_string();
    // It refuses chunks that are not those its database speaks of.
    other.run(&["snapshots", "restore", &height, format]);
}
