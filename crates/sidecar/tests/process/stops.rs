//! stop-seid and restart-seid.

use super::kubelet::Pod;
use super::node::Node;
use super::puppet::{POLITE, Puppet, STUBBORN};
use super::stage::{Sidecar, free, until};
use keelson_sidecar::home::Home;
use keelson_sidecar::process::Processes;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::sync::OnceLock;
use std::time::Duration;

/// Where nobody serves.
pub(crate) const NOBODY: &str = "http://127.0.0.1:1";

/// A node that runs elsewhere: its RPC answers, and its process is not the one of any sidecar here.
pub(crate) fn elsewhere() -> &'static Node {
    static NODE: OnceLock<Node> = OnceLock::new();
    NODE.get_or_init(|| {
        let mut node = Node::validator("elsewhere", "elsewhere");
        node.start(&[]);
        node.reaches(2);
        node
    })
}

/// A sidecar whose node does not serve, and who is impatient.
pub(crate) fn alone(test: &str) -> Sidecar {
    let mut sidecar = Sidecar::idle(test)
        .with("KEELSON_SEID_RPC", NOBODY)
        .with("KEELSON_SEID_STOP_GRACE", "1s")
        .with("KEELSON_SEID_START_TIMEOUT", "1s");
    sidecar.run();
    sidecar
}

/// The error of a task that fails.
pub(crate) fn fails(sidecar: &Sidecar, type_: &str, params: Value) -> String {
    let task = sidecar.perform(type_, params);
    assert_eq!(task["status"], "failed", "{task}");
    task["error"].as_str().expect("an error").to_owned()
}

#[test]
fn a_restart_ends_the_node_and_waits_until_it_serves_again() {
    let pod = Pod::start("restart");
    pod.completes("mark-ready");
    let before = pod.reaches(2);
    pod.completes("restart-seid");
    assert_eq!(pod.ends(1), [Some(0)], "it ended once, and by itself");
    assert!(
        pod.node.height().is_some(),
        "it serves when the task is done"
    );
    pod.reaches(before + 2);
    assert_eq!(pod.ends(1).len(), 1);
}

#[test]
fn restarts_that_are_asked_for_together_are_one_and_a_sidecar_that_dies_in_one_does_not_make_it_two()
 {
    let mut pod = Pod::start("once");
    pod.completes("mark-ready");
    pod.reaches(2);
    // It cannot end, and be started again, before all of them were asked for.
    let found = Processes::of(&Home::at(&pod.node.home)).find();
    let node = Pid::from_raw(found.expect("processes").nodes[0].pid);
    kill(node, Signal::SIGSTOP).expect("a rest");
    let ids = [(); 3].map(|()| {
        let reply = pod.sidecar.post(&json!({"type": "restart-seid"}));
        reply.json()["id"].as_str().expect("an id").to_owned()
    });
    // No container is started again within hundredths of a second, in which ages are told.
    std::thread::sleep(Duration::from_millis(100));
    kill(node, Signal::SIGCONT).expect("a way on");
    assert_eq!(pod.ends(1), [Some(0)]);
    // It ended, and whoever had it ended dies before that is written down.
    pod.sidecar.kill();
    pod.sidecar.run();
    pod.completes("mark-ready");
    for id in &ids {
        pod.completed(id);
    }
    // Told by the log: a container that waits at the gate may end with the sidecar it asks.
    let told = |pod: &Pod| pod.sidecar.log().matches("seid is told to end").count();
    assert_eq!(told(&pod), 1, "the node was ended once for all of them");
    pod.completes("restart-seid");
    assert_eq!(told(&pod), 2, "and once more for one that came later");
}

#[test]
fn a_node_that_is_stopped_behind_a_closed_gate_stays_down() {
    let pod = Pod::start("stop");
    pod.completes("mark-ready");
    pod.reaches(2);
    pod.completes("mark-not-ready");
    pod.completes("stop-seid");
    assert_eq!(pod.ends(1), [Some(0)]);
    assert_eq!(pod.node.height(), None);
    // Nothing to stop is as good.
    pod.completes("stop-seid");
    // A restart of it waits for whoever opens the gate.
    let restart = pod.sidecar.post(&json!({"type": "restart-seid"})).json();
    let id = restart["id"].as_str().expect("an id");
    until("the wait for the node", || {
        let task = pod.sidecar.get(&format!("/v0/tasks/{id}")).json();
        (task["result"]["progress"]["waitingFor"] == "seid to serve again").then_some(())
    });
    assert_eq!(pod.ends(1).len(), 1, "it was not started");
    pod.completes("mark-ready");
    pod.completed(id);
}

#[test]
fn a_node_that_does_not_serve_is_ended_all_the_same() {
    let sidecar = alone("unserving");
    let mut puppet = Puppet::start(&sidecar.home, POLITE);
    sidecar.completes("stop-seid", json!({}));
    assert!(!puppet.is_alive());
    sidecar.completes("stop-seid", json!({}));
}

#[test]
fn a_node_that_does_not_end_in_time_fails_the_task_and_is_left_alone() {
    let sidecar = alone("stubborn");
    let mut puppet = Puppet::start(&sidecar.home, STUBBORN);
    for type_ in ["stop-seid", "restart-seid"] {
        let error = fails(&sidecar, type_, json!({}));
        let pid = puppet.pid();
        let wanted = format!("{type_}: process {pid} has not ended within 1 s after SIGTERM");
        assert_eq!(error, wanted);
        assert!(puppet.is_alive());
    }
}

#[test]
fn a_node_that_does_not_come_back_fails_the_restart_with_what_is_seen() {
    let sidecar = alone("never-up");
    let mut puppet = Puppet::start(&sidecar.home, POLITE);
    let error = fails(&sidecar, "restart-seid", json!({}));
    assert!(!puppet.is_alive(), "it was stopped");
    for part in [
        "restart-seid: seid RPC did not come up within 1s: http://127.0.0.1:1/status cannot be connected to",
        "no process of it is seen, see its container; the gate is closed: submit mark-ready",
    ] {
        assert!(error.contains(part), "{error}");
    }
    sidecar.completes("mark-ready", json!({}));
    let error = fails(&sidecar, "restart-seid", json!({}));
    assert!(error.contains("the gate is open"), "{error}");
}

#[test]
fn an_end_is_not_claimed_where_the_node_serves_and_no_process_is_seen() {
    let node = elsewhere();
    let mut sidecar = Sidecar::idle("hidden").with("KEELSON_SEID_RPC", &node.rpc());
    sidecar.run();
    for type_ in ["stop-seid", "restart-seid", "reset-data"] {
        let error = fails(&sidecar, type_, json!({}));
        for part in [
            "answers, but no process of seid with this home is seen",
            &format!(
                "process {} is the node of {}",
                node.pid(),
                node.home.display()
            ),
        ] {
            assert!(error.contains(part), "{error}");
        }
    }
    assert!(node.height().is_some(), "it was left alone");
}

#[test]
fn something_that_accepts_and_does_not_answer_may_be_the_node() {
    let silent = std::net::TcpListener::bind(("127.0.0.1", free())).expect("a port");
    let address = silent.local_addr().expect("an address");
    let mut sidecar =
        Sidecar::idle("silent").with("KEELSON_SEID_RPC", &format!("http://{address}"));
    sidecar.run();
    for type_ in ["stop-seid", "reset-data"] {
        let error = fails(&sidecar, type_, json!({}));
        assert!(error.contains("does not answer within 500ms"), "{error}");
    }
}

#[test]
fn a_node_of_another_user_is_named() {
    let other = 65_532;
    let mut sidecar = Sidecar::idle("denied").with("KEELSON_SEID_RPC", NOBODY);
    sidecar.user = Some(other);
    sidecar.run();
    let mut puppet = Puppet::start(&sidecar.home, POLITE);
    let error = fails(&sidecar, "stop-seid", json!({}));
    let wanted = format!(
        "stop-seid: process {} may not be signalled by user {other}: run sidecar and seid as the same user",
        puppet.pid()
    );
    assert_eq!(error, wanted);
    assert!(puppet.is_alive());
}

#[test]
fn a_stop_that_is_deleted_leaves_the_node_to_itself() {
    let mut sidecar = Sidecar::idle("deleted").with("KEELSON_SEID_RPC", NOBODY);
    sidecar.run();
    let mut puppet = Puppet::start(&sidecar.home, STUBBORN);
    for type_ in ["stop-seid", "restart-seid"] {
        let id = sidecar.post(&json!({"type": type_})).json()["id"].clone();
        let path = format!("/v0/tasks/{}", id.as_str().expect("an id"));
        until("the wait for the end", || {
            let task = sidecar.get(&path).json();
            (task["result"]["progress"]["waitingFor"] == "seid to end").then_some(())
        });
        assert_eq!(sidecar.call("DELETE", &path, "", "").status, 204);
        assert_eq!(sidecar.get(&path).status, 404);
    }
    let log = sidecar.log();
    assert!(
        !log.contains("its work has not ended yet"),
        "it was heard: {log}"
    );
    assert!(puppet.is_alive());
}
