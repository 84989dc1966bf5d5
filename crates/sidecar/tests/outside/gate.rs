//! A gate that survives its sidecar, and what closes it.

use super::stage::{Sidecar, until};
use serde_json::json;

/// A node that was set up and approved.
fn approved(test: &str) -> Sidecar {
    let mut sidecar = Sidecar::idle(test).with_facts("uid", "node", "start");
    sidecar.run();
    sidecar.completes("config-apply", json!({"mode": "full"}));
    sidecar.completes("mark-ready", json!({}));
    assert!(sidecar.is_open());
    sidecar
}

fn restarted_as(sidecar: Sidecar, uid: &str, kind: &str, start: &str) -> Sidecar {
    let mut sidecar = sidecar.with_facts(uid, kind, start);
    sidecar.restart();
    sidecar
}

#[test]
fn a_restarted_sidecar_opens_the_gate_by_itself() {
    let mut sidecar = approved("again");
    for _ in 0..2 {
        sidecar.restart();
        assert!(sidecar.is_open(), "{}", sidecar.log());
    }
}

#[test]
fn another_node_on_the_volume_waits() {
    assert!(!restarted_as(approved("other-uid"), "uid-2", "node", "start").is_open());
}

#[test]
fn a_node_does_not_start_on_its_bootstrap_pods_approval() {
    let mut sidecar = Sidecar::idle("bootstrap").with_facts("uid", "bootstrap", "start");
    sidecar.run();
    sidecar.completes("mark-ready", json!({}));
    sidecar.restart();
    assert!(sidecar.is_open(), "the bootstrap pod itself may");
    assert!(!restarted_as(sidecar, "uid", "node", "start").is_open());
}

#[test]
fn a_node_of_another_image_waits() {
    let sidecar = restarted_as(approved("image"), "uid", "node", "start-2");
    assert!(!sidecar.is_open());
    assert!(sidecar.log().contains("another image"), "{}", sidecar.log());
}

#[test]
fn a_pod_that_does_not_say_all_it_is_waits() {
    assert!(!restarted_as(approved("facts"), "uid", "node", "").is_open());
}

#[test]
fn an_edited_configuration_waits() {
    let mut sidecar = approved("edited");
    let path = sidecar.home.join("config/config.toml");
    let text = std::fs::read_to_string(&path).expect("a file");
    std::fs::write(&path, text + "# edited\n").expect("a file");
    sidecar.restart();
    assert!(!sidecar.is_open());
}

#[test]
fn a_broken_record_waits_and_is_named() {
    let mut sidecar = approved("broken");
    std::fs::write(sidecar.home.join(".sei-sidecar-approval.json"), "{").expect("a file");
    sidecar.restart();
    assert!(!sidecar.is_open());
    assert!(
        sidecar.log().contains("cannot be read"),
        "{}",
        sidecar.log()
    );
}

#[test]
fn a_half_finished_restore_waits() {
    let mut sidecar = approved("restore");
    sidecar.kill();
    let store = rusqlite::Connection::open(sidecar.home.join("sidecar.db")).expect("the store");
    let sql = "INSERT INTO task_results (id, type, status, params, submitted_at, run) \
               VALUES ('s', 'snapshot-restore', 'running', 'null', '2026-01-01T00:00:00Z', 1)";
    store.execute_batch(sql).expect("a row");
    drop(store);
    sidecar.run();
    assert!(!sidecar.is_open());
    assert!(
        sidecar.log().contains("snapshot-restore has not finished"),
        "{}",
        sidecar.log()
    );
}

#[test]
fn a_hold_lasts_until_the_next_release() {
    let mut sidecar = approved("hold");
    sidecar.completes("mark-not-ready", json!({}));
    sidecar.restart();
    assert!(!sidecar.is_open());
    sidecar.completes("mark-ready", json!({}));
    sidecar.restart();
    assert!(sidecar.is_open());
}

#[test]
fn a_hold_of_the_originals_sidecar_counts_too() {
    let mut sidecar = approved("foreign-hold");
    sidecar.kill();
    let store = rusqlite::Connection::open(sidecar.home.join("sidecar.db")).expect("the store");
    let now = jiff::Timestamp::now();
    let sql = "INSERT INTO task_results (id, type, status, params, submitted_at, run) \
               VALUES ('h', 'mark-not-ready', 'completed', 'null', ?1, 1)";
    store.execute(sql, [now.to_string()]).expect("a row");
    drop(store);
    sidecar.run();
    assert!(!sidecar.is_open());
}

#[test]
fn a_configuration_written_anew_closes_the_gate_unless_it_is_the_same() {
    let mut sidecar = approved("anew");
    sidecar.completes("config-apply", json!({"mode": "full"}));
    assert!(sidecar.is_open(), "nothing changed");
    let overrides = json!({"logging.level": "debug"});
    sidecar.completes(
        "config-apply",
        json!({"mode": "full", "overrides": overrides}),
    );
    assert!(!sidecar.is_open());
    sidecar.restart();
    assert!(!sidecar.is_open());
}

#[test]
fn peers_for_the_next_start_leave_the_gate_open_now_and_after_a_restart() {
    let mut sidecar = approved("peers");
    let patch = json!({"files": {"config.toml": {"p2p": {"persistent-peers": "a@b:1"}}}});
    sidecar.completes("config-patch", patch);
    assert!(sidecar.is_open());
    sidecar.restart();
    assert!(sidecar.is_open());
}

#[test]
fn a_task_left_running_is_taken_up_before_anyone_is_answered() {
    let mut sidecar = approved("taken-up");
    sidecar.kill();
    let store = rusqlite::Connection::open(sidecar.home.join("sidecar.db")).expect("the store");
    let sql = "INSERT INTO task_results (id, type, status, params, submitted_at, run) VALUES \
               ('p', 'config-patch', 'running', '{\"files\":{\"app.toml\":{\"x\":1}}}', \
                '2026-01-01T00:00:00Z', 3)";
    store.execute_batch(sql).expect("a row");
    drop(store);
    sidecar.run();
    let task = sidecar.ended("p");
    assert_eq!(
        (&task["status"], &task["run"]),
        (&json!("completed"), &json!(3))
    );
    until("the gate", || sidecar.is_open().then_some(()));
}
