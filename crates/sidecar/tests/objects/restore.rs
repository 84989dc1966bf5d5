//! snapshot-restore through the program: what is chosen, what is there afterwards, and what is said.

use super::gateway::{ACCESS_KEY, KINDS, Kind, SECRET_KEY, Store};
use super::pack::{Pack, gzip, snapshot, zstandard};
use super::stage::Sidecar;
use super::suite::noise;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const GZIP: &str = "application/gzip";

/// Puts an object in a bucket, past any line.
pub(crate) fn put(store: &Store, key: &str, bytes: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    let direct = Store {
        port: super::gateway::gateway().port,
        ..store.clone()
    };
    runtime.block_on(async {
        let objects = direct.open();
        let mut writing = objects.write(key, GZIP, 0).await.expect("a begin");
        writing.write(bytes).await.expect("room");
        writing.finish().await.expect("an end");
    });
}

pub(crate) fn beside(store: &Store, test: &str) -> Sidecar {
    Sidecar::idle(test).with_all(store.variables())
}

/// The program beside a bucket, serving.
pub(crate) fn serving(store: &Store, test: &str) -> Sidecar {
    let mut sidecar = beside(store, test);
    sidecar.run();
    sidecar
}

pub(crate) fn read(sidecar: &Sidecar, path: &str) -> Vec<u8> {
    let path = sidecar.home.join(path);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn mode(path: &Path) -> u32 {
    let found = std::fs::metadata(path).expect("a file");
    found.permissions().mode() & 0o7777
}

pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<String> = entries
        .map(|it| {
            it.expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

/// The snapshot of a height is there, whole, and noted, and nothing else is.
pub(crate) fn staged(sidecar: &Sidecar, height: u64, chunks: u64, size: usize) {
    let data = sidecar.home.join("data");
    assert_eq!(names(&data), ["snapshots"]);
    let snapshots = data.join("snapshots");
    assert_eq!(
        names(&snapshots),
        [height.to_string(), "metadata.db".into()]
    );
    assert_eq!(
        names(&snapshots.join("metadata.db")),
        ["000001.log", "CURRENT"]
    );
    let folder = snapshots.join(format!("{height}/1"));
    assert_eq!(u64::try_from(names(&folder).len()), Ok(chunks));
    for chunk in 0..chunks {
        let bytes = std::fs::read(folder.join(chunk.to_string())).expect("a chunk");
        assert!(bytes == noise(height + chunk, size), "chunk {chunk}");
    }
    let noted = read(sidecar, ".sei-sidecar-snapshot-height");
    assert_eq!(noted, height.to_string().into_bytes());
    assert!(sidecar.home.join(".sei-sidecar-snapshot-done").exists());
}

fn restored(sidecar: &Sidecar, params: Value) {
    let task = sidecar.perform("snapshot-restore", params);
    assert_eq!(task["status"], "completed", "{task}: {}", sidecar.log());
    assert_eq!(task.get("result"), None, "{task}");
}

#[test]
fn a_snapshot_is_restored_from_every_back_end_in_either_form() {
    for kind in KINDS {
        for (suffix, form) in [
            ("tar.gz", gzip as fn(&[u8]) -> Vec<u8>),
            ("tar.zst", zstandard),
        ] {
            let store = Store::new(kind);
            let tar = snapshot(100, 3, 700_001).tar();
            put(&store, &format!("x/state-sync/100.{suffix}"), &form(&tar));
            // Whatever a library may tell is told, and no secret is in it.
            let mut sidecar = beside(&store, &format!("restore-{kind:?}-{suffix}"))
                .with("SEI_LOG_LEVEL", "trace");
            sidecar.run();
            sidecar.completes("config-apply", json!({"mode": "full"}));
            sidecar.completes("mark-ready", json!({}));
            assert!(sidecar.is_open());
            restored(&sidecar, json!({}));
            staged(&sidecar, 100, 3, 700_001);
            assert!(
                !sidecar.is_open(),
                "the gate is closed before anything is written"
            );
            let marker = read(&sidecar, ".sei-sidecar-snapshot-done");
            let marker: Value = serde_json::from_slice(&marker).expect("a marker");
            assert_eq!(marker["key"], format!("x/state-sync/100.{suffix}"));
            let log = sidecar.log();
            for secret in [ACCESS_KEY, SECRET_KEY, "AWS4-HMAC"] {
                assert!(!log.contains(secret), "{secret}: {log}");
            }
            let store = read(&sidecar, "sidecar.db");
            let held = |secret: &str| {
                store
                    .windows(secret.len())
                    .any(|it| it == secret.as_bytes())
            };
            assert!(!held(ACCESS_KEY) && !held(SECRET_KEY));
        }
    }
}

#[test]
fn what_is_restored_already_needs_no_network_and_leaves_the_gate() {
    let store = Store::new(Kind::Folder);
    put(&store, "x/state-sync/100.tar.gz", &snapshot(100, 1, 9).gz());
    let sidecar = serving(&store, "restored");
    restored(&sidecar, json!({}));
    sidecar.completes("config-apply", json!({"mode": "full"}));
    sidecar.completes("mark-ready", json!({}));
    std::fs::remove_dir_all(&store.folder).expect("no bucket");
    restored(&sidecar, json!({}));
    assert!(sidecar.is_open());
    let task = sidecar.perform("snapshot-restore", json!({"targetHeight": 50}));
    assert_eq!(
        task["status"], "failed",
        "another height is another snapshot"
    );
    assert!(sidecar.is_open());
}

#[test]
fn the_originals_marker_is_believed() {
    let mut store = Store::new(Kind::PathStyle);
    store.port = 1;
    let mut sidecar = beside(&store, "believed");
    let marker = sidecar.home.join(".sei-sidecar-snapshot-done");
    std::fs::write(&marker, "").expect("a marker");
    sidecar.run();
    restored(&sidecar, json!({}));
    assert_eq!(read(&sidecar, ".sei-sidecar-snapshot-done"), b"");
}

#[test]
fn the_highest_at_or_below_the_target_is_taken_and_another_target_is_another_snapshot() {
    let store = Store::new(Kind::Folder);
    for height in [9, 100, 200, 300] {
        let key = format!("x/state-sync/{height}.tar.gz");
        put(&store, &key, &snapshot(height, 1, 1000).gz());
    }
    for other in ["x/state-sync/latest.txt", "y/state-sync/999.tar.gz"] {
        put(&store, other, b"999");
    }
    let sidecar = serving(&store, "target");
    for (target, taken) in [(250, 200), (300, 300), (99, 9), (0, 300), (1000, 300)] {
        restored(&sidecar, json!({"targetHeight": target}));
        staged(&sidecar, taken, 1, 1000);
    }
    // Nothing was brought for the last one: it was there.
    let unpacked = sidecar.log().matches("snapshot unpacked").count();
    assert_eq!(unpacked, 4);
}

#[test]
fn where_there_is_none_it_says_so() {
    for kind in KINDS {
        let store = Store::new(kind);
        let sidecar = serving(&store, &format!("none-{kind:?}"));
        let failed = |params: Value| {
            let task = sidecar.perform("snapshot-restore", params);
            assert_eq!(task["status"], "failed", "{task}");
            assert_eq!(task["result"]["retryable"], false, "{task}");
            task["error"].as_str().expect("an error").to_owned()
        };
        let error = failed(json!({}));
        let found = "snapshot-restore: no snapshots found in ";
        assert!(error.starts_with(found), "{error}");
        put(&store, "x/state-sync/100.tar.gz", b"never read");
        let error = failed(json!({"targetHeight": 99}));
        let found = "snapshot-restore: no snapshot found at or below height 99 in ";
        assert!(error.starts_with(found), "{error}");
        assert!(!sidecar.home.join(".sei-sidecar-snapshot-done").exists());
        let reply =
            sidecar.post(&json!({"type": "snapshot-restore", "params": {"targetHeight": -1}}));
        let refused = reply.status == 400
            || sidecar.ended(reply.json()["id"].as_str().expect("an id"))["status"] == "failed";
        assert!(refused, "{reply:?}");
    }
}

#[test]
fn a_bucket_that_is_not_there_is_named_in_the_tasks_error() {
    let mut store = Store::new(Kind::PathStyle);
    store.name = "nobodys".into();
    let sidecar = serving(&store, "nobodys");
    let task = sidecar.perform("snapshot-restore", json!({}));
    let error = task["error"].as_str().expect("an error");
    assert!(
        error.starts_with("snapshot-restore: S3: list nobodys/x/state-sync/: there is no such bucket: NoSuchBucket: "),
        "{error}"
    );
    assert!(
        error.ends_with(
            "[hint: check the bucket's name and region, and the object store's endpoint]"
        ),
        "{error}"
    );
    assert_eq!(
        task["result"],
        json!({"retryable": false, "operation": "list"})
    );
}

#[test]
fn names_and_rights_are_kept_as_far_as_they_may_be() {
    let long = format!("100/{}/{}", "a".repeat(120), "b".repeat(120));
    let longer = format!("100/{}", "c".repeat(200));
    let pack = Pack::new()
        .folder("./", 0o755)
        .folder("100/", 0o500)
        .file("100/.dotfile", 0o444, b"dot")
        .file("..100/..a", 0o644, b"dots")
        .file("100/deep/er/without/folders", 0o640, b"deep")
        .file(&long, 0o644, b"long")
        .said("path", &longer)
        .raw(tar::EntryType::Regular, "short", "", b"posix")
        .file("100/setuid", 0o6755, b"s")
        .file("100/twice", 0o644, b"first and longer")
        .file("100/twice", 0o644, b"last")
        .raw(tar::EntryType::Fifo, "100/fifo", "", b"")
        .file("100/empty", 0o644, b"");
    let store = Store::new(Kind::Folder);
    put(&store, "x/state-sync/100.tar.gz", &pack.gz());
    let sidecar = serving(&store, "names");
    restored(&sidecar, json!({}));
    let snapshots = sidecar.home.join("data/snapshots");
    for (path, bytes, rights) in [
        ("100/.dotfile", "dot", 0o644),
        ("..100/..a", "dots", 0o644),
        ("100/deep/er/without/folders", "deep", 0o640),
        (long.as_str(), "long", 0o644),
        (longer.as_str(), "posix", 0o644),
        ("100/setuid", "s", 0o755),
        ("100/twice", "last", 0o644),
        ("100/empty", "", 0o644),
    ] {
        let path = snapshots.join(path);
        assert_eq!(std::fs::read(&path).expect("a file"), bytes.as_bytes());
        assert_eq!(mode(&path), rights, "{}", path.display());
    }
    assert_eq!(mode(&snapshots.join("100")), 0o700);
    assert!(!snapshots.join("100/fifo").exists());
}

#[test]
fn what_was_in_the_place_goes_as_a_whole() {
    let store = Store::new(Kind::Folder);
    put(
        &store,
        "x/state-sync/100.tar.gz",
        &snapshot(100, 2, 10).gz(),
    );
    let mut sidecar = beside(&store, "whole");
    // What a run left that died, and what one before it had staged.
    for left in ["snapshots/50/1", ".snapshots.keelson-new/100/1"] {
        let left = sidecar.home.join("data").join(left);
        std::fs::create_dir_all(&left).expect("a folder");
        std::fs::write(left.join("0"), "stale").expect("a file");
    }
    sidecar.run();
    restored(&sidecar, json!({}));
    staged(&sidecar, 100, 2, 10);
}

#[test]
fn what_was_in_the_place_stays_where_nothing_takes_it() {
    let store = Store::new(Kind::Folder);
    put(&store, "x/state-sync/100.tar.gz", b"no archive");
    let mut sidecar = beside(&store, "stays");
    // A run died between moving this out of the way and putting the new one in place.
    let aside = sidecar.home.join("data/.snapshots.keelson-old/50");
    std::fs::create_dir_all(&aside).expect("a folder");
    sidecar.run();
    let task = sidecar.perform("snapshot-restore", json!({}));
    assert_eq!(task["status"], "failed", "{task}");
    assert_eq!(names(&sidecar.home.join("data")), ["snapshots"]);
    assert_eq!(names(&sidecar.home.join("data/snapshots")), ["50"]);
}
