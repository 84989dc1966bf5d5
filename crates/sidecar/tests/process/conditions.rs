//! await-condition, and what the two witnesses of a node say together.

use super::kubelet::Pod;
use super::node::Node;
use super::puppet::{POLITE, Puppet, STUBBORN};
use super::stage::{Sidecar, until};
use super::stops::{alone, elsewhere, fails};
use keelson_sidecar::fetch;
use keelson_sidecar::process::Found;
use keelson_sidecar::rpc::{Problem, Status, Trouble};
use keelson_sidecar::tasks::condition::is_met;
use keelson_sidecar::tasks::process::{Presence, presence};
use keelson_wire::params::{AwaitCondition, Condition};
use serde_json::{Value, json};
use std::time::Duration;

fn status(height: u64, catching_up: bool) -> Status {
    Status {
        node_id: "id".into(),
        network: "chain".into(),
        height,
        catching_up,
    }
}

#[test]
fn a_height_is_met_when_it_is_reached_and_a_node_has_caught_up_beyond_its_first_block() {
    let params = |condition, target_height| AwaitCondition {
        condition,
        target_height,
        action: None,
    };
    for (params, status, wanted) in [
        (params(Condition::Height, 5), status(4, false), false),
        (params(Condition::Height, 5), status(5, true), true),
        (params(Condition::Height, 5), status(6, false), true),
        (params(Condition::CatchingUp, 0), status(9, true), false),
        (params(Condition::CatchingUp, 0), status(1, false), false),
        (params(Condition::CatchingUp, 0), status(2, false), true),
    ] {
        assert_eq!(is_met(&params, &status), wanted, "{params:?} {status:?}");
    }
}

#[test]
fn only_a_closed_port_means_that_no_node_is_there() {
    let answers = |problem| {
        let url = "http://node/status".into();
        presence(Found::default(), Err(Trouble { url, problem }))
    };
    let closed = fetch::Trouble::Unreachable("refused".into());
    assert!(matches!(answers(closed.into()), Presence::Away));
    for problem in [
        fetch::Trouble::Late(Duration::from_millis(500)).into(),
        fetch::Trouble::Broken("reset".into()).into(),
        Problem::Rpc("starting".into()),
        Problem::Unlike("html".into()),
    ] {
        let said = problem.to_string();
        let Presence::Hidden(what) = answers(problem) else {
            panic!("{said}");
        };
        assert!(what.contains(&said), "{what}");
    }
    let mut found = Found::default();
    found.others.push((7, "/other".into()));
    let Presence::Hidden(what) = presence(found, Ok(status(3, false))) else {
        panic!("it serves");
    };
    assert!(
        what.ends_with("; process 7 is the node of /other"),
        "{what}"
    );
}

#[test]
fn parameters_are_checked_before_anything_is_waited_for() {
    let sidecar = alone("checked");
    for (params, wanted) in [
        (json!({"condition": "depth"}), "unknown variant `depth`"),
        (json!({}), "missing field `condition`"),
        (
            json!({"condition": "height", "targetHeight": 9, "action": "REBOOT"}),
            "unknown action \"REBOOT\": use SIGTERM_SEID or none",
        ),
        (
            json!({"condition": "height", "action": "SIGTERM_SEID"}),
            "targetHeight must be greater than 0",
        ),
    ] {
        let error = fails(&sidecar, "await-condition", params);
        assert!(error.contains(wanted), "{error}");
    }
}

/// Submits a wait and brings back its path.
fn waits(sidecar: &Sidecar, params: Value) -> String {
    let reply = sidecar.post(&json!({"type": "await-condition", "params": params}));
    format!("/v0/tasks/{}", reply.json()["id"].as_str().expect("an id"))
}

fn id(path: &str) -> &str {
    path.strip_prefix("/v0/tasks/").expect("a path")
}

#[test]
fn a_height_is_waited_for_in_sight_of_all_and_then_the_node_is_ended() {
    let pod = Pod::start("height");
    let caught_up = waits(&pod.sidecar, json!({"condition": "catchingUp"}));
    let shown = until("the wait for the node", || {
        let task = pod.sidecar.get(&caught_up).json();
        let shown = task["result"]["progress"].clone();
        shown["last"].is_string().then_some(shown)
    });
    assert_eq!(shown["waitingFor"], "seid to serve", "{shown}");
    pod.completes("mark-ready");
    pod.completed(id(&caught_up));
    let now = pod.reaches(2);
    let target = now + 40;
    let path = waits(
        &pod.sidecar,
        json!({"condition": "height", "targetHeight": target, "action": "SIGTERM_SEID"}),
    );
    let shown = until("the height", || {
        let task = pod.sidecar.get(&path).json();
        let shown = task["result"]["progress"].clone();
        shown["height"].is_u64().then_some(shown)
    });
    assert_eq!(shown["targetHeight"], target, "{shown}");
    assert!(shown["height"].as_u64() >= Some(now), "{shown}");
    // It waits, and keeps nobody else from the process.
    pod.completes("restart-seid");
    assert_eq!(pod.ends(1), [Some(0)]);
    pod.completed(id(&path));
    assert_eq!(pod.ends(2), [Some(0), Some(0)], "it ended by itself");
    pod.reaches(target);
}

#[test]
fn a_wait_that_is_deleted_ends_nothing() {
    let node = elsewhere();
    let mut sidecar = Sidecar::idle("unwaited").with("KEELSON_SEID_RPC", &node.rpc());
    sidecar.run();
    let mut puppet = Puppet::start(&sidecar.home, POLITE);
    let far = json!({"condition": "height", "targetHeight": 1_000_000, "action": "SIGTERM_SEID"});
    let path = waits(&sidecar, far);
    until("the height", || {
        let task = sidecar.get(&path).json();
        task["result"]["progress"]["height"].is_u64().then_some(())
    });
    assert_eq!(sidecar.call("DELETE", &path, "", "").status, 204);
    assert_eq!(sidecar.get(&path).status, 404);
    assert!(puppet.is_alive());
}

#[test]
fn a_node_past_its_height_is_killed_if_it_does_not_end_unless_it_is_a_validator() {
    let node = elsewhere();
    let mut sidecar = Sidecar::idle("past")
        .with("KEELSON_SEID_RPC", &node.rpc())
        .with("KEELSON_SEID_STOP_GRACE", "1s");
    sidecar.run();
    let mut puppet = Puppet::start(&sidecar.home, STUBBORN);
    let reached = json!({"condition": "height", "targetHeight": 1, "action": "SIGTERM_SEID"});
    sidecar.completes("config-apply", json!({"mode": "validator"}));
    let error = fails(&sidecar, "await-condition", reached.clone());
    assert!(
        error.contains("has not ended within 1 s after SIGTERM"),
        "{error}"
    );
    assert!(puppet.is_alive());
    // Where it cannot be told what the node is, it may be one.
    std::fs::write(sidecar.home.join("config/app.toml"), "[").expect("a file");
    fails(&sidecar, "await-condition", reached.clone());
    assert!(puppet.is_alive());
    std::fs::remove_file(sidecar.home.join("config/app.toml")).expect("a file");
    std::fs::remove_file(sidecar.home.join("config/config.toml")).expect("a file");
    sidecar.completes("config-apply", json!({"mode": "full"}));
    sidecar.completes("await-condition", reached);
    assert!(!puppet.is_alive());
}

#[test]
fn a_node_that_has_ended_already_needs_no_end() {
    let mut node = Node::validator("gone", "gone");
    node.start(&[]);
    node.reaches(1);
    let mut sidecar = Sidecar::idle("gone").with("KEELSON_SEID_RPC", &node.rpc());
    sidecar.run();
    let puppet = Puppet::start(&sidecar.home, STUBBORN);
    let stop = sidecar.post(&json!({"type": "stop-seid"})).json();
    let reached = json!({"condition": "height", "targetHeight": 1, "action": "SIGTERM_SEID"});
    let path = waits(&sidecar, reached);
    until("the wait for the other task", || {
        let task = sidecar.get(&path).json();
        let waiting = &task["result"]["progress"]["waitingFor"];
        (waiting == "a task that has the process of seid").then_some(())
    });
    // While it waits for its turn the node goes by itself.
    node.stop();
    drop(puppet);
    let stop = sidecar.ended(stop["id"].as_str().expect("an id"));
    assert_eq!(stop["status"], "completed", "{stop}");
    let task = sidecar.ended(id(&path));
    assert_eq!(task["status"], "completed", "{task}");
}
