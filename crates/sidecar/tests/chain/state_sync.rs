//! configure-state-sync: what it writes, when it has nothing to do, and that a real node syncs by it.

use crate::node::Node;
use crate::peers::{config, nobody};
use crate::shared::{CHAIN, Chain};
use crate::stage::Sidecar;
use keelson_sidecar::tasks::state_sync::below;
use serde_json::{Value, json};

pub(crate) const TASK: &str = "configure-state-sync";
const MARKER: &str = ".sei-sidecar-statesync-done";

/// A sidecar of the chain's, with a configuration.
pub(crate) fn sidecar(test: &str) -> Sidecar {
    let mut sidecar = Sidecar::idle(test).with("SEI_CHAIN_ID", CHAIN);
    sidecar.run();
    sidecar.completes("config-apply", json!({"mode": "full"}));
    sidecar
}

/// What stands in the section of state sync.
pub(crate) fn section(sidecar: &Sidecar, key: &str) -> String {
    let text = config(sidecar);
    let (_, section) = text.split_once("[statesync]").expect("a section");
    let section = section.split("\n[").next().expect("a section");
    let begin = format!("{key} = ");
    let line = section.lines().find_map(|line| line.strip_prefix(&begin));
    line.expect("a key").trim_matches('"').to_owned()
}

pub(crate) fn fails(sidecar: &Sidecar, params: Value, retryable: bool) -> String {
    let before = config(sidecar);
    let task = sidecar.perform(TASK, params);
    assert_eq!(task["status"], "failed", "{task}");
    assert_eq!(task["result"]["retryable"], retryable, "{task}");
    assert_eq!(config(sidecar), before);
    assert!(!sidecar.home.join(MARKER).exists());
    task["error"].as_str().expect("an error").to_owned()
}

pub(crate) fn both() -> Value {
    let chain = Chain::shared();
    json!([chain.validator.witness(), chain.follower.witness()])
}

fn hash(height: u64) -> String {
    let block = Chain::shared()
        .validator
        .get(&format!("/block?height={height}"));
    let block = block.expect("a block");
    block["block_id"]["hash"]
        .as_str()
        .expect("a hash")
        .to_owned()
}

#[test]
fn the_trusted_block_is_two_thousand_below_the_highest_and_never_below_the_first() {
    for (highest, wanted) in [
        (0, 1),
        (1, 1),
        (2000, 1),
        (2001, 1),
        (2002, 2),
        (9999, 7999),
    ] {
        assert_eq!(below(highest), wanted);
    }
}

#[test]
fn two_witnesses_and_a_block_they_agree_about_are_written() {
    let (chain, sidecar) = (Chain::shared(), sidecar("sync-written"));
    sidecar.completes(TASK, json!({"rpcServers": both()}));
    assert_eq!(section(&sidecar, "enable"), "true");
    assert_eq!(section(&sidecar, "use-local-snapshot"), "false");
    assert_eq!(section(&sidecar, "trust-height"), "1");
    assert_eq!(section(&sidecar, "trust-hash"), hash(1));
    let servers = [chain.validator.witness(), chain.follower.witness()].join(",");
    assert_eq!(section(&sidecar, "rpc-servers"), servers);
    let period = section(&sidecar, "trust-period");
    sidecar.completes("config-validate", json!({}));

    let more = json!({"rpcServers": both(), "trustPeriod": "9h0m0s", "backfillBlocks": 7});
    assert_ne!(period, "9h0m0s");
    sidecar.completes(TASK, more);
    assert_eq!(section(&sidecar, "trust-period"), "9h0m0s");
    assert_eq!(section(&sidecar, "backfill-blocks"), "7");
}

#[test]
fn a_snapshot_on_the_volume_is_trusted_at_its_own_height() {
    let sidecar = sidecar("sync-local");
    let params = json!({"rpcServers": both(), "useLocalSnapshot": true});
    let error = fails(&sidecar, params.clone(), false);
    assert!(error.contains("there is no snapshot in "), "{error}");
    let snapshots = sidecar.home.join("data/snapshots");
    std::fs::create_dir_all(snapshots.join("metadata.db")).expect("a folder");
    std::fs::write(snapshots.join("12"), "").expect("a file");
    fails(&sidecar, params.clone(), false);
    for height in ["9", "10", "0"] {
        std::fs::create_dir_all(snapshots.join(height)).expect("a folder");
    }
    sidecar.completes(TASK, params);
    assert_eq!(section(&sidecar, "use-local-snapshot"), "true");
    assert_eq!(section(&sidecar, "trust-height"), "10");
    assert_eq!(section(&sidecar, "trust-hash"), hash(10));
}

#[test]
fn a_marker_is_good_for_its_parameters_and_what_was_written_only() {
    let sidecar = sidecar("sync-marker");
    let params = json!({"rpcServers": both()});
    let already = || {
        sidecar
            .log()
            .matches("state sync is configured already")
            .count()
    };
    sidecar.completes(TASK, params.clone());
    sidecar.completes(TASK, params.clone());
    assert_eq!(already(), 1);
    // Other parameters.
    sidecar.completes(TASK, json!({"rpcServers": both(), "backfillBlocks": 3}));
    assert_eq!(section(&sidecar, "backfill-blocks"), "3");
    // A configuration that was written anew.
    sidecar.completes(TASK, params.clone());
    sidecar.completes("config-apply", json!({"mode": "full"}));
    assert_eq!(section(&sidecar, "enable"), "false");
    sidecar.completes(TASK, params.clone());
    assert_eq!(section(&sidecar, "enable"), "true");
    // A marker of the original, which says nothing.
    sidecar.completes("config-apply", json!({"mode": "full"}));
    std::fs::write(sidecar.home.join(MARKER), "").expect("a marker");
    sidecar.completes(TASK, params);
    assert_eq!(section(&sidecar, "enable"), "true");
    assert_eq!(already(), 1, "{}", sidecar.log());
}

#[test]
fn the_gate_closes_when_something_is_written_and_stays_open_otherwise() {
    let sidecar = sidecar("sync-gate");
    let params = json!({"rpcServers": both()});
    sidecar.completes("mark-ready", json!({}));
    assert!(sidecar.is_open());
    sidecar.completes(TASK, params.clone());
    assert!(!sidecar.is_open());
    sidecar.completes("mark-ready", json!({}));
    sidecar.completes(TASK, params);
    assert!(sidecar.is_open());
}

#[test]
fn a_real_node_syncs_from_a_snapshot_by_what_was_written() {
    let chain = Chain::shared();
    let mut sidecar = Sidecar::idle("sync-real").with("SEI_CHAIN_ID", CHAIN);
    let mut node = Node::init_at(sidecar.home.clone(), CHAIN);
    node.adopt(&chain.validator);
    sidecar.run();
    sidecar.completes("config-apply", json!({"mode": "full"}));
    let hosts = [chain.validator.address, chain.follower.address, nobody(210)];
    let hosts = hosts.map(|it| it.to_string());
    let sources = json!([{"type": "dnsEndpoints", "endpoints": hosts}]);
    sidecar.completes("discover-peers", json!({"sources": sources}));
    sidecar.completes(TASK, json!({}));
    // Nodes of one machine, and no longer a search for snapshots than the chain allows.
    let patch = json!({"config.toml": {
        "p2p": {"addr-book-strict": false, "allow-duplicate-ip": true},
        "statesync": {"discovery-time": "5s"},
    }});
    sidecar.completes("config-patch", json!({"files": patch}));
    sidecar.completes("config-validate", json!({}));
    sidecar.completes("mark-ready", json!({}));
    let goal = chain.validator.height().expect("a height");
    node.start(&[]);
    node.reaches(goal + 1);
    let status = node.get("/status").expect("a status");
    let first = status["sync_info"]["earliest_block_height"]
        .as_str()
        .expect("a height");
    let first: u64 = first.parse().expect("a height");
    assert!(first > 1, "it took every block from the first: {status}");
    assert!(node.log().contains("Snapshot restored"), "{}", node.log());
}
