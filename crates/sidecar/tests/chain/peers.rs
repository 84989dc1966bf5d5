//! discover-peers before the nodes of a real chain.

use crate::node::RPC;
use crate::shared::Chain;
use crate::stage::Sidecar;
use serde_json::{Value, json};
use std::net::{Ipv4Addr, TcpListener};
use std::time::Instant;

pub(crate) fn config(sidecar: &Sidecar) -> String {
    let path = sidecar.home.join("config/config.toml");
    std::fs::read_to_string(path).unwrap_or_default()
}

pub(crate) fn peers(sidecar: &Sidecar) -> String {
    let text = config(sidecar);
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("persistent-peers = "));
    line.expect("a line").trim_matches('"').to_owned()
}

/// An address of the loopback network that no node has.
pub(crate) fn nobody(last: u8) -> Ipv4Addr {
    let octets = Chain::shared().validator.address.octets();
    Ipv4Addr::new(octets[0], octets[1], octets[2], last)
}

fn dns(hosts: &[Ipv4Addr]) -> Value {
    let hosts: Vec<String> = hosts.iter().map(ToString::to_string).collect();
    json!({"type": "dnsEndpoints", "endpoints": hosts})
}

pub(crate) fn fails(sidecar: &Sidecar, sources: &Value, retryable: bool) -> String {
    let task = sidecar.perform("discover-peers", json!({"sources": sources}));
    assert_eq!(task["status"], "failed", "{task}");
    assert_eq!(task["result"]["retryable"], retryable, "{task}");
    task["error"].as_str().expect("an error").to_owned()
}

#[test]
fn peers_are_those_written_down_and_those_that_answer_each_once() {
    let (chain, sidecar) = (Chain::shared(), Sidecar::start("peers"));
    sidecar.completes("config-apply", json!({"mode": "full"}));
    let (one, two) = (&chain.validator, &chain.follower);
    let written = "abc@elsewhere:1".to_owned();
    let sources = json!([
        {"type": "static", "addresses": [written, two.peer()]},
        dns(&[one.address, nobody(201), two.address, one.address]),
    ]);
    sidecar.completes("discover-peers", json!({"sources": sources}));
    assert_eq!(peers(&sidecar), [written, two.peer(), one.peer()].join(","));
    let log = sidecar.log();
    let passed: Vec<&str> = log
        .lines()
        .filter(|it| it.contains("passed over"))
        .collect();
    assert_eq!(passed.len(), 1, "{log}");
    assert!(passed[0].contains(&nobody(201).to_string()), "{passed:?}");
    sidecar.completes("config-validate", json!({}));
}

#[test]
fn a_source_of_which_nobody_answers_fails_and_leaves_the_file_as_it_is() {
    let (chain, sidecar) = (Chain::shared(), Sidecar::start("peers-nobody"));
    let path = sidecar.home.join("config/config.toml");
    let text = "# mine\n[p2p]\npersistent-peers = \"a@b:1\"\n";
    std::fs::write(&path, text).expect("a file");
    let sources = json!([
        dns(&[chain.validator.address]),
        dns(&[nobody(202), nobody(203)])
    ]);
    let error = fails(&sidecar, &sources, true);
    assert!(
        error.contains("dnsEndpoints: none of 2 hosts answers with its node id: "),
        "{error}"
    );
    assert!(error.contains(&format!(
        "http://{}:{RPC}/status cannot be connected to",
        nobody(203)
    )));
    assert_eq!(config(&sidecar), text);
}

#[test]
fn sources_that_make_no_sense_are_refused_before_anyone_is_asked() {
    let sidecar = Sidecar::start("peers-bad");
    for (sources, wanted) in [
        (
            json!([{"type": "static", "addresses": ["a@b:1,c@d:1"]}]),
            "is not an address of a peer",
        ),
        (
            json!([{"type": "static", "addresses": ["host:1"]}]),
            "is not an address of a peer",
        ),
        (
            json!([{"type": "dnsEndpoints", "endpoints": ["h:26657"]}]),
            "is not a host",
        ),
        (
            json!([{"type": "dnsEndpoints", "endpoints": ["h/../x"]}]),
            "is not a host",
        ),
        (
            json!([{"type": "ec2Tags", "region": "a.b/", "tags": {"a": "b"}}]),
            "is not a region",
        ),
    ] {
        let error = fails(&sidecar, &sources, false);
        assert!(
            error.starts_with("discover-peers: ") && error.contains(wanted),
            "{error}"
        );
    }
    for source in ["static", "dnsEndpoints", "ec2Tags"] {
        let params = json!({"sources": [{"type": source}]});
        let task = sidecar.perform("discover-peers", params);
        let error = task["error"].as_str().expect("an error");
        assert!(
            error.starts_with(&format!("discover-peers: source[0]: {source} needs")),
            "{error}"
        );
    }
    assert_eq!(config(&sidecar), "");
}

#[test]
fn a_node_is_not_its_own_peer() {
    let (chain, sidecar) = (Chain::shared(), Sidecar::start("peers-own"));
    let key = "config/node_key.json";
    std::fs::copy(chain.validator.home.join(key), sidecar.home.join(key)).expect("a key");
    let sources = json!([dns(&[chain.validator.address, chain.follower.address])]);
    sidecar.completes("discover-peers", json!({"sources": sources}));
    assert_eq!(peers(&sidecar), chain.follower.peer());
    let error = fails(&sidecar, &json!([dns(&[chain.validator.address])]), true);
    assert!(
        error.ends_with("the only one that does is this node"),
        "{error}"
    );
}

#[test]
fn a_task_that_waits_for_hosts_can_be_deleted() {
    let sidecar = Sidecar::start("peers-deleted");
    // They listen and never answer: forty of them take longer than the test.
    let address = nobody(204);
    let _silent = TcpListener::bind((address, RPC)).expect("a port");
    let sources = json!([dns(&[address; 40])]);
    let id = "6f1e8a52-5b1c-4a3e-9d0c-000000000001";
    sidecar.post(&json!({"id": id, "type": "discover-peers", "params": {"sources": sources}}));
    let path = format!("/v0/tasks/{id}");
    assert_eq!(sidecar.get(&path).json()["status"], "running");
    let before = Instant::now();
    assert_eq!(sidecar.call("DELETE", &path, "", "").status, 204);
    assert_eq!(sidecar.get(&path).status, 404);
    // The lock is free again long before the hosts would have been waited for.
    sidecar.completes("config-apply", json!({"mode": "full"}));
    assert!(before.elapsed().as_secs() < 8, "{:?}", before.elapsed());
    assert_eq!(peers(&sidecar), "");
}
