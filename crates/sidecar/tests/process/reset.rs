//! reset-data.

use super::kubelet::Pod;
use super::puppet::{POLITE, Puppet};
use super::stage::Sidecar;
use super::stops::{NOBODY, alone, fails};
use keelson_seid_config::{File, Texts};
use keelson_sidecar::configuration::validates;
use keelson_sidecar::fault::VARIABLE;
use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

const NOTHING_SIGNED: &str = "{\"height\":\"0\",\"round\":0,\"step\":0}\n";
const KEPT: [&str; 4] = [
    ".sei-sidecar-genesis-done",
    ".sei-sidecar-last-upload.json",
    "config/genesis.json",
    "tmp/other",
];
const GONE: [&str; 3] = [
    ".sei-sidecar-statesync-done",
    ".sei-sidecar-snapshot-done",
    ".sei-sidecar-snapshot-height",
];

fn put(home: &Path, file: &str, text: &str) {
    let path = home.join(file);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

/// A home with data of 1,100 bytes.
fn fill(home: &Path) {
    for file in KEPT.iter().chain(&GONE) {
        put(home, file, "x");
    }
    put(home, "data/application.db/000001.log", &"a".repeat(600));
    put(home, "data/snapshots/7/1/0", &"b".repeat(440));
    put(home, "data/cs.wal/wal", "");
    let signed = format!(
        "{{\"height\":\"{}\",\"round\":0,\"step\":3}}",
        "9".repeat(28)
    );
    put(home, "data/priv_validator_state.json", &signed);
    assert_eq!(signed.len(), 60);
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries
        .map(|it| {
            it.expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect()
}

fn is_reset(home: &Path) {
    assert_eq!(entries(&home.join("data")), ["priv_validator_state.json"]);
    let signed = home.join("data/priv_validator_state.json");
    assert_eq!(fs::read_to_string(&signed).expect("a file"), NOTHING_SIGNED);
    let mode = fs::metadata(&signed).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    for file in GONE {
        assert!(!home.join(file).exists(), "{file}");
    }
    for file in KEPT {
        assert!(home.join(file).exists(), "{file}");
    }
}

#[test]
fn what_is_in_the_data_folder_goes_and_nothing_else() {
    let sidecar = alone("reset");
    fill(&sidecar.home);
    let outside = sidecar.home.join("tmp");
    std::os::unix::fs::symlink(&outside, sidecar.home.join("data/link")).expect("a link");
    let task = sidecar.perform("reset-data", json!({}));
    assert_eq!(task["result"], json!({"wipedBytes": 1100}), "{task}");
    is_reset(&sidecar.home);
    // Again, and where there is no folder at all.
    let task = sidecar.perform("reset-data", json!({}));
    assert_eq!(task["status"], "completed", "{task}");
    fs::remove_dir_all(sidecar.home.join("data")).expect("no folder");
    let task = sidecar.perform("reset-data", json!({}));
    assert_eq!(task["result"], json!({"wipedBytes": 0}), "{task}");
    is_reset(&sidecar.home);
    let about = fs::metadata(sidecar.home.join("data")).expect("a folder");
    assert_eq!(about.permissions().mode() & 0o777, 0o750);
}

#[test]
fn bytes_that_cannot_be_counted_are_removed_all_the_same() {
    let sidecar = alone("uncounted");
    fill(&sidecar.home);
    // A path longer than the system takes at once.
    let name = "d".repeat(200);
    let script = "for _ in $(seq 30); do mkdir \"$0\" && cd \"$0\" || exit 1; done";
    let made = Command::new("bash")
        .args(["-c", script, &name])
        .current_dir(sidecar.home.join("data"))
        .status();
    assert!(made.expect("bash").success());
    let task = sidecar.perform("reset-data", json!({}));
    assert_eq!(task["result"], json!({"wipedBytes": -1}), "{task}");
    is_reset(&sidecar.home);
}

/// A sidecar with a full data folder behind a gate that opens by itself.
fn approved(test: &str) -> Sidecar {
    let mut sidecar = Sidecar::idle(test)
        .with_facts("uid", "node", "start")
        .with("KEELSON_SEID_RPC", NOBODY);
    sidecar.run();
    sidecar.completes("config-apply", json!({"mode": "full"}));
    fill(&sidecar.home);
    sidecar.completes("mark-ready", json!({}));
    sidecar
}

#[test]
fn the_gate_is_closed_for_good_before_anything_goes() {
    let mut sidecar = approved("reset-gate");
    sidecar.restart();
    assert!(sidecar.is_open());
    sidecar.completes("reset-data", json!({}));
    assert!(!sidecar.is_open());
    sidecar.restart();
    assert!(!sidecar.is_open());
}

#[test]
fn a_sidecar_that_dies_on_the_way_goes_on_when_it_is_back() {
    for (word, pass) in [
        ("data-wipe-before", 1),
        ("data-wipe-after", 1),
        ("data-wipe-after", 2),
        ("data-wipe-before", 3),
        ("file-remove-after", 2),
        ("file-remove-after", 3),
        ("file-rename-before", 1),
    ] {
        let mut sidecar = approved(&format!("{word}-{pass}"));
        sidecar = sidecar.with(VARIABLE, &format!("{word}:{pass}"));
        sidecar.restart();
        assert!(sidecar.is_open(), "{word} {pass}");
        let id = "00000000-0000-4000-8000-000000000001";
        sidecar.post(&json!({"id": id, "type": "reset-data"}));
        sidecar.exit();
        assert!(
            sidecar.home.join("data/priv_validator_state.json").exists(),
            "what was signed is never away: {word} {pass}"
        );
        sidecar = sidecar.with(VARIABLE, "");
        sidecar.run();
        assert!(!sidecar.is_open(), "{word} {pass}");
        let task = sidecar.ended(id);
        assert_eq!(task["status"], "completed", "{word} {pass}: {task}");
        is_reset(&sidecar.home);
        assert!(!sidecar.is_open(), "{word} {pass}");
    }
}

#[test]
fn the_data_of_a_validator_is_never_touched() {
    let sidecar = alone("reset-validator");
    fill(&sidecar.home);
    sidecar.completes("config-apply", json!({"mode": "validator"}));
    sidecar.completes("mark-ready", json!({}));
    let error = fails(&sidecar, "reset-data", json!({}));
    assert_eq!(
        error,
        "reset-data: this node is a validator: without its data it may sign twice"
    );
    put(&sidecar.home, "config/app.toml", "[");
    let error = fails(&sidecar, "reset-data", json!({}));
    assert!(
        error.contains("a validator cannot be told: app.toml is not TOML"),
        "{error}"
    );
    assert_eq!(entries(&sidecar.home.join("data")).len(), 4);
    assert!(sidecar.is_open(), "a refusal changes nothing");
}

#[test]
fn a_node_is_a_validator_by_either_file() {
    let texts = |config: Option<&str>, app: Option<&str>| {
        let mut texts = Texts::default();
        for (file, text) in [(File::Config, config), (File::App, app)] {
            if let Some(text) = text {
                texts.set(file, text.to_owned());
            }
        }
        validates(&texts)
    };
    assert_eq!(texts(None, None), Ok(false));
    assert_eq!(texts(Some(""), Some("")), Ok(false));
    assert_eq!(
        texts(Some(""), Some("[sei]\nmode = \"validator\"\n")),
        Ok(true)
    );
    assert_eq!(texts(Some("mode = \"validator\"\n"), Some("")), Ok(true));
    assert_eq!(texts(Some(""), Some("[sei]\nmode = \"full\"\n")), Ok(false));
    texts(Some("mode = \"validator\"\n"), None).expect_err("half of a configuration");
    texts(None, Some("[sei]\nmode = \"full\"\n")).expect_err("half of a configuration");
}

#[test]
fn the_data_of_a_node_that_runs_is_not_touched() {
    let sidecar = alone("reset-running");
    fill(&sidecar.home);
    sidecar.completes("mark-ready", json!({}));
    let mut puppet = Puppet::start(&sidecar.home, POLITE);
    let error = fails(&sidecar, "reset-data", json!({}));
    let wanted = format!(
        "reset-data: seid runs (process {}): the data of a node that runs is not touched \
         [hint: submit mark-not-ready and stop-seid first]",
        puppet.pid()
    );
    assert_eq!(error, wanted);
    assert!(puppet.is_alive());
    assert!(sidecar.is_open(), "a refusal changes nothing");
    assert_eq!(entries(&sidecar.home.join("data")).len(), 4);
    sidecar.completes("stop-seid", json!({}));
    sidecar.completes("reset-data", json!({}));
    is_reset(&sidecar.home);
}

#[test]
fn a_node_held_stopped_wiped_and_released_begins_anew() {
    let pod = Pod::start("anew");
    let sidecar = &pod.sidecar;
    pod.completes("mark-ready");
    let before = pod.reaches(8);
    let error = fails(sidecar, "reset-data", json!({}));
    assert!(error.contains("seid runs (process "), "{error}");
    pod.completes("mark-not-ready");
    pod.completes("stop-seid");
    let task = sidecar.perform("reset-data", json!({}));
    assert!(
        task["result"]["wipedBytes"].as_i64() > Some(10_000),
        "{task}"
    );
    let data: PathBuf = pod.node.home.join("data");
    assert_eq!(entries(&data), ["priv_validator_state.json"]);
    assert!(
        pod.node
            .home
            .join("config/priv_validator_key.json")
            .exists()
    );
    pod.completes("mark-ready");
    let first = pod.reaches(1);
    assert!(first < before, "{first} is after {before}");
    pod.reaches(first + 2);
    assert_eq!(pod.ends(1), [Some(0)]);
}
