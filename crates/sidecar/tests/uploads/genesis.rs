//! The genesis file: where it comes from, what is refused, and that it is whole or not there.

use super::gateway::{KINDS, Kind, Store};
use super::play::{CHAIN, beside, failure, put, refusing, running, sha256, unfinished};
use super::stage::Sidecar;
use keelson_sidecar::fault::VARIABLE;
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;

const KEY: &str = "play-1/genesis.json";
const TASK: &str = "configure-genesis";

fn genesis(chain: &str) -> String {
    json!({"genesis_time": "2026-11-16T00:00:00Z", "chain_id": chain, "app_state": {"a": [1, {}]}})
        .to_string()
}

fn in_place(sidecar: &Sidecar) -> Option<String> {
    std::fs::read_to_string(sidecar.home.join("config/genesis.json")).ok()
}

fn marker(sidecar: &Sidecar) -> PathBuf {
    sidecar.home.join(".sei-sidecar-genesis-done")
}

/// Nothing was done, and nothing lies about.
fn untouched(sidecar: &Sidecar, before: Option<&str>) {
    assert_eq!(in_place(sidecar).as_deref(), before);
    assert!(!marker(sidecar).exists());
    assert_eq!(unfinished(&sidecar.home.join("config")), [""; 0]);
}

#[test]
fn the_genesis_comes_from_the_bucket_and_the_gate_is_closed_for_it() {
    for kind in KINDS {
        let store = Store::new(kind);
        let text = genesis(CHAIN);
        put(&store, KEY, &text);
        let sidecar = running(&format!("genesis-{kind:?}"), &store);
        std::fs::write(sidecar.home.join("config/genesis.json"), "{}").expect("a file");
        sidecar.completes("mark-ready", json!({}));
        assert!(sidecar.is_open());
        let task = sidecar.perform(TASK, json!({"expectedGenesisHash": sha256(&text)}));
        assert_eq!(task["status"], "completed", "{kind:?} {task}");
        assert_eq!(task["result"], Value::Null);
        assert_eq!(in_place(&sidecar), Some(text.clone()), "{kind:?}");
        assert!(!sidecar.is_open(), "{kind:?}");
        assert_eq!(unfinished(&sidecar.home.join("config")), [""; 0]);
        let note = std::fs::read_to_string(marker(&sidecar)).expect("a marker");
        let note: Value = serde_json::from_str(&note).expect("a note");
        assert_eq!(note["chain"], CHAIN);
        assert_eq!(note["sha256"], sha256(&text));
    }
}

#[test]
fn a_genesis_with_another_hash_is_refused_and_what_was_in_place_stays() {
    let store = Store::new(Kind::PathStyle);
    put(&store, KEY, genesis(CHAIN));
    let sidecar = running("genesis-hash", &store);
    std::fs::write(sidecar.home.join("config/genesis.json"), "before").expect("a file");
    sidecar.completes("mark-ready", json!({}));
    let other = sha256("another");
    let (error, result) = failure(&sidecar, TASK, json!({"expectedGenesisHash": other}));
    let (name, found) = (&store.name, sha256(genesis(CHAIN)));
    assert_eq!(
        error,
        format!(
            "configure-genesis: verify-hash: {name}/{KEY} has SHA-256 {found}, and {other} was \
             expected [hint: upload the right file, or correct expectedGenesisHash]"
        )
    );
    assert_eq!(
        result,
        json!({"retryable": false, "operation": "verify-hash"})
    );
    untouched(&sidecar, Some("before"));
    assert!(!sidecar.is_open(), "it was about to be written");
}

#[test]
fn a_hash_of_a_wrong_form_is_named_and_nothing_is_asked() {
    let mut store = Store::new(Kind::PathStyle);
    store.port = 1;
    let sidecar = running("genesis-form", &store);
    let right = sha256(genesis(CHAIN));
    for wrong in [
        right.to_uppercase(),
        format!("0x{right}"),
        right[1..].into(),
        "sha256:abc".into(),
    ] {
        let (error, _) = failure(&sidecar, TASK, json!({"expectedGenesisHash": wrong}));
        let named = format!(
            "configure-genesis: expectedGenesisHash={wrong:?} is not a SHA-256: use 64 digits"
        );
        assert!(error.starts_with(&named), "{error}");
    }
    untouched(&sidecar, None);
}

#[test]
fn a_file_of_the_image_comes_first_and_needs_no_network() {
    let mut store = Store::new(Kind::PathStyle);
    store.port = 1;
    let files = store.folder.join("image");
    put(&store, "image/pacific-1.json", genesis("pacific-1"));
    let mut sidecar = beside("genesis-image", &store)
        .with("SEI_CHAIN_ID", "pacific-1")
        .with("SEI_GENESIS_DIR", files.to_str().expect("a path"));
    sidecar.run();
    for _ in 0..2 {
        sidecar.completes(TASK, json!({}));
        assert_eq!(in_place(&sidecar), Some(genesis("pacific-1")));
    }
    let (error, _) = failure(&sidecar, TASK, json!({"expectedGenesisHash": sha256("")}));
    assert!(
        error.contains("image/pacific-1.json has SHA-256"),
        "{error}"
    );
}

#[test]
fn a_genesis_that_is_nowhere_is_named_with_both_places_and_is_taken_when_it_is_there() {
    for kind in KINDS {
        let store = Store::new(kind);
        let sidecar = running(&format!("genesis-nowhere-{kind:?}"), &store);
        sidecar.completes("mark-ready", json!({}));
        let id = "00000000-0000-4000-8000-000000000001";
        let asked = json!({"id": id, "type": TASK});
        assert_eq!(sidecar.post(&asked).status, 201);
        let task = sidecar.ended(id);
        let error = task["error"].as_str().expect("an error");
        for part in [
            "there is no such object",
            KEY,
            "; and there is no file /usr/share/keelson/genesis/play-1.json [hint: check that",
        ] {
            assert!(error.contains(part), "{kind:?} {error}");
        }
        untouched(&sidecar, None);
        assert!(sidecar.is_open(), "there was nothing to write");
        put(&store, KEY, genesis(CHAIN));
        assert_eq!(sidecar.post(&asked).status, 201);
        let task = sidecar.ended(id);
        assert_eq!(
            (&task["status"], &task["run"]),
            (&json!("completed"), &json!(2))
        );
    }
}

#[test]
fn what_is_not_this_chains_genesis_is_refused_with_a_sentence() {
    let store = Store::new(Kind::Folder);
    let sidecar = running("genesis-other", &store);
    let source = format!("{}/{KEY}", store.bucket().name);
    for (text, sentence) in [
        (
            genesis("other-1"),
            format!(
                "{source} is the genesis of chain \"other-1\", and this node's chain is \"play-1\" \
                 [hint: upload the right file, or correct SEI_CHAIN_ID]"
            ),
        ),
        (
            "<html>".into(),
            format!("{source} is not a genesis: expected value at line 1 column 1"),
        ),
        (
            json!({"app_state": {"chain_id": CHAIN}}).to_string(),
            format!("{source} is not a genesis: missing field `chain_id` at line 1"),
        ),
        (
            genesis(CHAIN) + "x",
            format!("{source} is not a genesis: trailing characters"),
        ),
        (
            genesis(CHAIN)[..60].into(),
            format!("{source} is not a genesis: EOF while parsing"),
        ),
    ] {
        put(&store, KEY, text);
        let (error, result) = failure(&sidecar, TASK, json!({}));
        assert!(error.starts_with(&format!("{TASK}: {sentence}")), "{error}");
        assert_eq!(result["retryable"], false);
        untouched(&sidecar, None);
    }
}

#[test]
fn a_genesis_that_is_larger_than_any_is_refused_before_it_is_read() {
    for kind in [Kind::PathStyle, Kind::Folder] {
        let store = Store::new(kind);
        put(&store, KEY, "");
        let file = std::fs::File::options()
            .write(true)
            .open(store.folder.join(KEY));
        file.expect("a file")
            .set_len((512 << 20) + 1)
            .expect("a hole");
        let sidecar = running(&format!("genesis-large-{kind:?}"), &store);
        let (error, _) = failure(&sidecar, TASK, json!({}));
        let sentence = "has 536870913 bytes, and a genesis has at most 536870912";
        assert!(error.ends_with(sentence), "{error}");
        untouched(&sidecar, None);
    }
}

#[test]
fn what_is_done_is_not_done_again_and_the_gate_stays() {
    let store = Store::new(Kind::PathStyle);
    put(&store, KEY, genesis(CHAIN));
    let sidecar = running("genesis-done", &store);
    sidecar.completes(TASK, json!({}));
    sidecar.completes("mark-ready", json!({}));
    std::fs::remove_dir_all(&store.folder).expect("no bucket");
    let hash = sha256(genesis(CHAIN));
    for params in [json!({}), json!({"expectedGenesisHash": hash})] {
        sidecar.completes(TASK, params);
        assert!(sidecar.is_open());
    }
    // Another hash, another file or another chain is not what was done.
    let (error, _) = failure(&sidecar, TASK, json!({"expectedGenesisHash": sha256("")}));
    assert!(error.contains("there is no such bucket"), "{error}");
    let file = sidecar.home.join("config/genesis.json");
    std::fs::write(&file, genesis(CHAIN) + " ").expect("a file");
    let (error, _) = failure(&sidecar, TASK, json!({}));
    assert!(error.contains("there is no such bucket"), "{error}");
    std::fs::write(&file, genesis(CHAIN)).expect("a file");
    sidecar.completes(TASK, json!({}));
    let mut sidecar = sidecar.with("SEI_CHAIN_ID", "other-1");
    sidecar.restart();
    let (error, _) = failure(&sidecar, TASK, json!({}));
    assert!(error.contains("there is no such bucket"), "{error}");
}

#[test]
fn the_marker_of_the_original_counts_where_the_file_is_this_chains() {
    let mut store = Store::new(Kind::Folder);
    store.folder = store.folder.join("none");
    let sidecar = running("genesis-original", &store);
    let file = sidecar.home.join("config/genesis.json");
    std::fs::write(marker(&sidecar), "").expect("a marker");
    std::fs::write(&file, genesis(CHAIN)).expect("a file");
    sidecar.completes(TASK, json!({}));
    for other in [genesis("other-1"), String::new()] {
        std::fs::write(&file, other).expect("a file");
        let (error, _) = failure(&sidecar, TASK, json!({}));
        assert!(error.contains("there is no such folder"), "{error}");
    }
    std::fs::remove_file(&file).expect("a file");
    failure(&sidecar, TASK, json!({}));
}

#[test]
fn a_server_that_is_busy_for_a_while_is_asked_again() {
    for (status, code) in [
        (503, "SlowDown"),
        (503, "ServiceUnavailable"),
        (500, "InternalError"),
    ] {
        let mut store = Store::new(Kind::PathStyle);
        put(&store, KEY, genesis(CHAIN));
        store.port = refusing(store.port, 3, status, code);
        let sidecar = running(&format!("genesis-busy-{code}"), &store);
        sidecar.completes(TASK, json!({}));
        let log = sidecar.log();
        let told = format!("/{KEY}: the server is too busy: {code}: so it is");
        assert_eq!(log.matches(&told).count(), 3, "{log}");
    }
}

#[test]
fn a_server_that_refuses_is_named_by_what_it_says() {
    let denied = "access is denied: AccessDenied: so it is \
                  [hint: check the credentials and what the bucket allows them to do]";
    let bucket = "there is no such bucket: NoSuchBucket: so it is \
                  [hint: check the bucket's name and region, and the object store's endpoint]";
    let other = "the server refuses: KMS.DisabledException: so it is";
    for (status, code, sentence) in [
        (403, "AccessDenied", denied),
        (404, "NoSuchBucket", bucket),
        (400, "KMS.DisabledException", other),
    ] {
        let mut store = Store::new(Kind::PathStyle);
        store.port = refusing(store.port, u64::MAX, status, code);
        let sidecar = running(&format!("genesis-{code}"), &store);
        let (error, result) = failure(&sidecar, TASK, json!({}));
        let name = &store.name;
        assert_eq!(error, format!("{TASK}: S3: get {name}/{KEY}: {sentence}"));
        assert_eq!(result, json!({"retryable": false, "operation": "download"}));
    }
}

#[test]
fn killed_at_every_rename_the_file_is_the_old_or_the_new_and_the_task_is_gone_on_with() {
    let mut deaths = 0;
    for point in ["file-rename-before", "file-rename-after"] {
        // The file itself, and the note.
        for pass in 1..=2 {
            let store = Store::new(Kind::PathStyle);
            put(&store, KEY, genesis(CHAIN));
            let plan = format!("{point}:{pass}");
            let mut sidecar = beside(&format!("genesis-{point}-{pass}"), &store);
            std::fs::create_dir(sidecar.home.join("config")).expect("a folder");
            std::fs::write(sidecar.home.join("config/genesis.json"), "old").expect("a file");
            sidecar = sidecar.with(VARIABLE, &plan);
            sidecar.run();
            let id = "00000000-0000-4000-8000-000000000002";
            let asked = json!({"id": id, "type": TASK}).to_string();
            let _ = sidecar.try_call("POST", "/v0/tasks", "", &asked);
            assert_eq!(sidecar.exit().signal(), Some(6), "{plan}");
            deaths += 1;
            let text = in_place(&sidecar).expect("a file");
            let renamed = plan != "file-rename-before:1";
            assert_eq!(
                text,
                if renamed {
                    genesis(CHAIN)
                } else {
                    "old".into()
                },
                "{plan}"
            );
            assert_eq!(
                marker(&sidecar).exists(),
                plan == "file-rename-after:2",
                "{plan}"
            );
            let mut sidecar = sidecar.with(VARIABLE, "");
            sidecar.run();
            assert_eq!(sidecar.ended(id)["status"], "completed", "{plan}");
            assert_eq!(in_place(&sidecar), Some(genesis(CHAIN)));
            assert_eq!(unfinished(&sidecar.home.join("config")), [""; 0]);
            assert_eq!(unfinished(&sidecar.home), [""; 0]);
        }
    }
    assert_eq!(deaths, 4);
}
