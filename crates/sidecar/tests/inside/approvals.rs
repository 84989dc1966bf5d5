//! Whether a gate opens by itself: one test for each way to match and each way not to.

use super::stage::Folder;
use jiff::Timestamp;
use keelson_sidecar::configuration::{self, Approval};
use keelson_sidecar::engine::recover::Hold;
use keelson_sidecar::gate::{Evidence, Facts, Gate, PodKind, Reason, Record, approved};
use keelson_sidecar::home::Home;
use keelson_wire::TaskType;
use std::sync::Arc;

fn facts() -> Facts {
    Facts {
        node_uid: "uid-1".into(),
        pod_kind: PodKind::Node,
        start_fingerprint: "start-1".into(),
    }
}

fn now() -> Timestamp {
    Timestamp::from_second(1_000).expect("a time")
}

fn record() -> Record {
    Record::new(&facts(), "conf-1".into(), now())
}

fn ask(facts: Option<Facts>, configuration: &str, evidence: Evidence) -> Result<(), Reason> {
    approved(Some(&record()), facts.as_ref(), configuration, &evidence)
}

#[test]
fn all_that_was_approved_is_there_again() {
    assert_eq!(ask(Some(facts()), "conf-1", Evidence::NONE), Ok(()));
}

#[test]
fn a_hold_before_the_approval_changes_nothing() {
    let held_since = Hold::At(Timestamp::from_second(999).expect("a time"));
    let evidence = Evidence {
        held_since,
        ..Evidence::NONE
    };
    assert_eq!(ask(Some(facts()), "conf-1", evidence), Ok(()));
}

#[test]
fn nothing_was_approved() {
    let verdict = approved(None, Some(&facts()), "conf-1", &Evidence::NONE);
    assert_eq!(verdict, Err(Reason::NoRecord));
}

#[test]
fn another_node_has_the_volume() {
    let other = Facts {
        node_uid: "uid-2".into(),
        ..facts()
    };
    assert_eq!(
        ask(Some(other), "conf-1", Evidence::NONE),
        Err(Reason::OtherNode)
    );
}

#[test]
fn a_bootstrap_pods_approval_is_not_the_nodes() {
    let mine = facts();
    let theirs = Facts {
        pod_kind: PodKind::Bootstrap,
        ..facts()
    };
    let record = Record::new(&theirs, "conf-1".into(), now());
    let verdict = approved(Some(&record), Some(&mine), "conf-1", &Evidence::NONE);
    assert_eq!(verdict, Err(Reason::OtherPod(PodKind::Bootstrap)));
}

#[test]
fn another_image_or_key_is_another_start() {
    let other = Facts {
        start_fingerprint: "start-2".into(),
        ..facts()
    };
    assert_eq!(
        ask(Some(other), "conf-1", Evidence::NONE),
        Err(Reason::OtherStart)
    );
}

#[test]
fn an_edited_configuration_file_is_another_configuration() {
    let verdict = ask(Some(facts()), "conf-2", Evidence::NONE);
    assert_eq!(verdict, Err(Reason::OtherConfiguration));
}

#[test]
fn a_hold_since_then_outweighs_the_approval_and_so_does_not_knowing() {
    for held_since in [Hold::At(now()), Hold::Unknown] {
        let evidence = Evidence {
            held_since,
            ..Evidence::NONE
        };
        assert_eq!(ask(Some(facts()), "conf-1", evidence), Err(Reason::Held));
    }
}

#[test]
fn a_half_finished_restore_is_in_the_way() {
    let unfinished = Some(TaskType::SnapshotRestore);
    let evidence = Evidence {
        unfinished,
        ..Evidence::NONE
    };
    let verdict = ask(Some(facts()), "conf-1", evidence);
    assert_eq!(verdict, Err(Reason::Unfinished(TaskType::SnapshotRestore)));
}

#[test]
fn a_pod_that_does_not_say_what_it_is_waits() {
    assert_eq!(
        ask(None, "conf-1", Evidence::NONE),
        Err(Reason::MissingFacts)
    );
}

#[test]
fn a_broken_record_is_no_record() {
    for text in ["", "{", "null", "{\"nodeUid\":\"uid-1\"}", "[]"] {
        assert!(
            matches!(Record::parse(text), Err(Reason::Broken(_))),
            "{text:?}"
        );
    }
}

#[test]
fn a_record_is_read_as_it_was_written() {
    assert_eq!(Record::parse(&record().text()), Ok(record()));
    let carried = record().carried("conf-1", "conf-2").expect("carried");
    assert_eq!(Record::parse(&carried.text()), Ok(carried));
}

#[test]
fn while_files_are_replaced_both_configurations_are_approved_and_a_mixture_is_not() {
    let carried = record().carried("conf-1", "conf-2").expect("carried");
    let ask = |hash: &str| approved(Some(&carried), Some(&facts()), hash, &Evidence::NONE);
    assert_eq!(ask("conf-1"), Ok(()));
    assert_eq!(ask("conf-2"), Ok(()));
    assert_eq!(ask("mixture"), Err(Reason::OtherConfiguration));
    let settled = carried.settled("conf-2");
    let ask = |hash: &str| approved(Some(&settled), Some(&facts()), hash, &Evidence::NONE);
    assert_eq!(ask("conf-2"), Ok(()));
    assert_eq!(ask("conf-1"), Err(Reason::OtherConfiguration));
}

#[test]
fn an_approval_is_not_carried_from_files_nobody_approved() {
    assert_eq!(record().carried("edited", "conf-2"), None);
}

/// A home with the files of a full node.
fn node() -> (Folder, Home) {
    let folder = Folder::new();
    let home = folder.home();
    let host = keelson_seid_config::Host {
        name: "n".into(),
        cpus: 2,
    };
    let intent = keelson_seid_config::Intent {
        mode: "full".into(),
        ..Default::default()
    };
    let files = keelson_seid_config::apply(&intent, &host, &Default::default()).expect("files");
    std::fs::create_dir_all(home.config()).expect("a folder");
    for (name, text) in [
        ("config.toml", files.texts.config),
        ("app.toml", files.texts.app),
    ] {
        std::fs::write(home.config().join(name), text.expect("a text")).expect("a file");
    }
    (folder, home)
}

async fn patch(home: &Home, gate: &Arc<Gate>, key: &str, value: &str) -> bool {
    let patch = serde_json::json!({"config.toml": {"p2p": {key: value}}});
    let patch = patch.as_object().cloned().expect("an object");
    configuration::change(
        home,
        gate,
        "config-patch",
        Approval::Carried,
        move |texts| Ok(keelson_seid_config::patch_files(texts, &patch).expect("a patch")),
    )
    .await
    .expect("a change")
}

fn restarted(home: &Home) -> Result<(), Reason> {
    Gate::new(home.clone(), Some(facts())).restore(&Evidence::NONE)
}

#[tokio::test]
async fn a_patch_on_a_running_node_leaves_the_gate_open_and_is_approved_after_a_restart() {
    let (_folder, home) = node();
    let gate = Arc::new(Gate::new(home.clone(), Some(facts())));
    gate.approve(now(), || false).expect("an approval");
    assert!(patch(&home, &gate, "persistent-peers", "a@b:1").await);
    assert!(gate.is_open());
    assert_eq!(restarted(&home), Ok(()));
}

#[tokio::test]
async fn a_patch_that_changes_nothing_touches_neither_file_nor_record() {
    let (_folder, home) = node();
    let gate = Arc::new(Gate::new(home.clone(), Some(facts())));
    gate.approve(now(), || false).expect("an approval");
    patch(&home, &gate, "persistent-peers", "a@b:1").await;
    let inode = |path: std::path::PathBuf| {
        std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).expect("a file"))
    };
    let before = (
        inode(home.approval()),
        inode(home.config().join("config.toml")),
    );
    assert!(!patch(&home, &gate, "persistent-peers", "a@b:1").await);
    let after = (
        inode(home.approval()),
        inode(home.config().join("config.toml")),
    );
    assert_eq!(before, after);
}

#[tokio::test]
async fn a_patch_of_files_somebody_edited_is_not_approved_after_a_restart() {
    let (_folder, home) = node();
    let gate = Arc::new(Gate::new(home.clone(), Some(facts())));
    gate.approve(now(), || false).expect("an approval");
    let path = home.config().join("app.toml");
    let text = std::fs::read_to_string(&path).expect("a file");
    std::fs::write(&path, text + "# edited\n").expect("a file");
    patch(&home, &gate, "persistent-peers", "a@b:1").await;
    assert!(gate.is_open(), "the process runs on");
    assert_eq!(restarted(&home), Err(Reason::NoRecord));
}

#[tokio::test]
async fn a_patch_that_seid_would_refuse_is_not_approved_after_a_restart() {
    let (_folder, home) = node();
    let gate = Arc::new(Gate::new(home.clone(), Some(facts())));
    gate.approve(now(), || false).expect("an approval");
    patch(&home, &gate, "send-rate", "-5").await;
    assert!(gate.is_open(), "the process runs on");
    assert_eq!(restarted(&home), Err(Reason::NoRecord));
}

#[test]
fn what_sets_a_node_up_closes_the_gate_and_revokes_the_approval() {
    let (_folder, home) = node();
    let gate = Gate::new(home.clone(), Some(facts()));
    gate.approve(now(), || false).expect("an approval");
    assert_eq!(restarted(&home), Ok(()));
    gate.close().expect("closed");
    assert!(!gate.is_open());
    assert_eq!(restarted(&home), Err(Reason::NoRecord));
}

#[test]
fn a_hold_revokes_the_approval_for_good() {
    let (_folder, home) = node();
    let gate = Gate::new(home.clone(), Some(facts()));
    gate.approve(now(), || false).expect("an approval");
    gate.hold(|| Ok(())).expect("held");
    assert!(!gate.is_open());
    assert_eq!(restarted(&home), Err(Reason::NoRecord));
}

#[test]
fn a_release_that_a_hold_overtook_opens_nothing() {
    let (_folder, home) = node();
    let gate = Gate::new(home, Some(facts()));
    gate.approve(now(), || true).expect_err("cancelled");
    assert!(!gate.is_open());
}

#[tokio::test]
async fn a_gate_found_between_two_files_opens_when_the_patch_is_finished() {
    let (_folder, home) = node();
    let gate = Arc::new(Gate::new(home.clone(), Some(facts())));
    gate.approve(now(), || false).expect("an approval");
    // What a process leaves that dies between the two renames: the record names both
    // configurations, one file is new and the other old.
    let before = configuration::read(&home).expect("files");
    let both = serde_json::json!({
        "config.toml": {"p2p": {"persistent-peers": "a@b:1"}},
        "app.toml": {"halt-height": 9},
    });
    let both = both.as_object().cloned().expect("an object");
    let after = keelson_seid_config::patch_files(&before, &both).expect("a patch");
    let hash = keelson_seid_config::fingerprint;
    let record = Record::parse(&std::fs::read_to_string(home.approval()).expect("a record"));
    let carried = record
        .expect("a record")
        .carried(&hash(&before), &hash(&after));
    std::fs::write(home.approval(), carried.expect("carried").text()).expect("a file");
    let config = after.config.clone().expect("a text");
    std::fs::write(home.config().join("config.toml"), config).expect("a file");

    let next = Arc::new(Gate::new(home.clone(), Some(facts())));
    assert_eq!(
        next.restore(&Evidence::NONE),
        Err(Reason::OtherConfiguration)
    );
    assert!(!next.is_open());
    configuration::change(
        &home,
        &next,
        "config-patch",
        Approval::Carried,
        move |texts| Ok(keelson_seid_config::patch_files(texts, &both).expect("a patch")),
    )
    .await
    .expect("a change");
    assert!(next.is_open());
    assert_eq!(configuration::read(&home).expect("files"), after);
    assert_eq!(restarted(&home), Ok(()));
}
