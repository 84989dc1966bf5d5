//! Who may vouch for a block: real nodes, and scripted ones that say what an honest node does not.

use crate::cloud::Cloud;
use crate::front::front;
use crate::node::Node;
use crate::peers::nobody;
use crate::shared::{CHAIN, Chain};
use crate::stage::Sidecar;
use crate::state_sync::{TASK, both, fails, section, sidecar};
use serde_json::{Value, json};

/// A node of the chain that says of every block that it has this hash.
fn saying(id: &str, network: &str, hash: &str) -> Cloud {
    let status = json!({"node_info": {"id": id, "network": network},
        "sync_info": {"latest_block_height": "12", "catching_up": false}});
    let (status, block) = (
        status.to_string(),
        json!({"block_id": {"hash": hash}}).to_string(),
    );
    Cloud::answering(move |asked| match asked.line.contains("/status") {
        true => (200, status.clone()),
        false => (200, block.clone()),
    })
}

fn at(cloud: &Cloud) -> String {
    cloud.url.trim_start_matches("http://").to_owned()
}

fn servers(servers: &[String]) -> Value {
    json!({"rpcServers": servers})
}

#[test]
fn witnesses_that_do_not_answer_are_left_out_whatever_their_place() {
    let (chain, sidecar) = (Chain::shared(), sidecar("witness-silent"));
    let silent = format!("{}:26657", nobody(220));
    let (one, two) = (chain.validator.witness(), chain.follower.witness());
    sidecar.completes(TASK, servers(&[silent.clone(), one.clone(), two.clone()]));
    assert_eq!(section(&sidecar, "rpc-servers"), format!("{one},{two}"));
    assert!(
        sidecar
            .log()
            .contains(&format!("http://{silent}/status cannot be connected to"))
    );
}

#[test]
fn where_no_witness_answers_all_are_named() {
    let sidecar = sidecar("witness-none");
    let silent = [221, 222].map(|it| format!("{}:26657", nobody(it)));
    let error = fails(&sidecar, servers(&silent), true);
    let wanted = format!(
        "no reachable RPC witness among [{} {}]",
        silent[0], silent[1]
    );
    assert!(error.contains(&wanted), "{error}");
}

#[test]
fn the_first_peers_that_answer_vouch_where_no_witness_is_named() {
    let (chain, sidecar) = (Chain::shared(), sidecar("witness-peers"));
    let error = fails(&sidecar, json!({}), false);
    assert!(error.contains("there is nobody to ask"), "{error}");
    let (one, two) = (&chain.validator, &chain.follower);
    let peers = format!(
        "a@{}:1,not-a-peer,{},{}",
        nobody(223),
        two.peer(),
        one.peer()
    );
    let patch = json!({"config.toml": {"p2p": {"persistent-peers": peers}}});
    sidecar.completes("config-patch", json!({"files": patch}));
    sidecar.completes(TASK, json!({}));
    let wanted = format!("{},{}", two.witness(), one.witness());
    assert_eq!(section(&sidecar, "rpc-servers"), wanted);
}

#[test]
fn one_node_is_not_enough_under_however_many_names() {
    let (chain, sidecar) = (Chain::shared(), sidecar("witness-one"));
    let one = chain.validator.witness();
    let wanted = format!("2 different nodes must vouch for block 1, and only [{one}] can");
    for list in [vec![one.clone()], vec![one.clone(), one.clone()]] {
        let error = fails(&sidecar, servers(&list), true);
        assert!(error.contains(&wanted), "{error}");
    }
    // The same node behind another name.
    let status = chain
        .validator
        .get("/status")
        .expect("a status")
        .to_string();
    let block = chain
        .validator
        .get("/block?height=1")
        .expect("a block")
        .to_string();
    let mirror = Cloud::answering(move |asked| match asked.line.contains("/status") {
        true => (200, status.clone()),
        false => (200, block.clone()),
    });
    let error = fails(&sidecar, servers(&[one, at(&mirror)]), true);
    assert!(error.contains(&wanted), "{error}");
}

#[test]
fn witnesses_that_contradict_each_other_are_not_believed() {
    let (chain, sidecar) = (Chain::shared(), sidecar("witness-liar"));
    let liar = saying("liar", CHAIN, &"AB".repeat(32));
    let error = fails(
        &sidecar,
        servers(&[chain.validator.witness(), at(&liar)]),
        false,
    );
    assert!(
        error.contains("witnesses contradict each other about block 1: "),
        "{error}"
    );
    assert!(error.contains(&"AB".repeat(32)), "{error}");
}

#[test]
fn what_is_no_hash_and_what_is_of_another_chain_does_not_count() {
    let (chain, sidecar) = (Chain::shared(), sidecar("witness-odd"));
    let short = saying("short", CHAIN, "ABCD");
    let other = saying("other", "another-1", &"AB".repeat(32));
    let list = [at(&short), at(&other), chain.validator.witness()];
    let error = fails(&sidecar, servers(&list), true);
    assert!(
        error.contains(&format!("only [{}] can", list[2])),
        "{error}"
    );
    let log = sidecar.log();
    assert!(
        log.contains("is of the chain \\\"another-1\\\" and not of"),
        "{log}"
    );
    assert!(log.contains("not 64 hexadecimal digits"), "{log}");
}

#[test]
fn a_node_without_the_block_does_not_vouch_for_it() {
    let (chain, sidecar) = (Chain::shared(), sidecar("witness-young"));
    let far = sidecar.home.join("data/snapshots/1000000000");
    std::fs::create_dir_all(far).expect("a folder");
    let params = json!({"rpcServers": both(), "useLocalSnapshot": true});
    let error = fails(&sidecar, params, true);
    assert!(
        error.contains("must vouch for block 1000000000, and only [] can"),
        "{error}"
    );
    assert!(sidecar.log().contains(&format!(
        "{}/block?height=1000000000",
        chain.validator.rpc()
    )));
}

#[test]
fn parameters_that_make_no_sense_are_refused() {
    let sidecar = sidecar("witness-params");
    for (params, wanted) in [
        (
            json!({"rpcServers": ["http://a:1"]}),
            "is not a witness; write host:port",
        ),
        (
            json!({"rpcServers": ["a:1,b:1"]}),
            "is not a witness; write host:port",
        ),
        (
            json!({"rpcServers": both(), "trustPeriod": "a week"}),
            "trustPeriod: \"a week\" is not a duration",
        ),
        (
            json!({"rpcServers": both(), "trustPeriod": "0s"}),
            "trusts nothing",
        ),
    ] {
        let error = fails(&sidecar, params, false);
        assert!(error.contains(wanted), "{error}");
    }
}

#[test]
fn port_443_is_asked_over_tls_and_judged_by_the_systems_roots() {
    let chain = Chain::shared();
    let public = nobody(230);
    let mut sidecar = Sidecar::idle("witness-tls").with("SEI_CHAIN_ID", CHAIN);
    let file = sidecar.home.join("roots.pem");
    std::fs::write(&file, front(public, &chain.validator)).expect("a file");
    sidecar = sidecar.with("SSL_CERT_FILE", &file.display().to_string());
    sidecar.run();
    let list = [format!("{public}:443"), chain.follower.witness()];
    sidecar.completes(TASK, servers(&list));
    assert_eq!(section(&sidecar, "rpc-servers"), list.join(","));

    // A system that trusts others.
    let other = rcgen::generate_simple_self_signed(["elsewhere".to_owned()]).expect("one");
    std::fs::write(&file, other.cert.pem()).expect("a file");
    let fresh = json!({"rpcServers": list, "backfillBlocks": 1});
    let task = sidecar.perform(TASK, fresh);
    assert_eq!(task["status"], "failed", "{task}");
    assert!(
        sidecar.log().contains("invalid peer certificate"),
        "{}",
        sidecar.log()
    );
}

#[test]
fn a_witness_that_dies_is_asked_again_when_the_task_is() {
    let (chain, sidecar) = (Chain::shared(), sidecar("witness-back"));
    let mut node = Node::follower("witness-back", CHAIN, &chain.validator);
    let list = servers(&[chain.validator.witness(), node.witness()]);
    fails(&sidecar, list.clone(), true);
    node.start(&[]);
    node.reaches(2);
    sidecar.completes(TASK, list);
    assert_eq!(section(&sidecar, "enable"), "true");
}
