//! `snapshot-upload-once`, end to end.

use super::gateway::{KINDS, Kind, Store};
use super::play::{
    CHAIN, archive, at_work, beside, failure, gauge, keys, metadata, noted, outcomes, refusing,
    running, same, snapshot, submit, unpack,
};
use super::stage::Sidecar;
use serde_json::{Value, json};
use std::net::TcpListener;

const ONCE: &str = "snapshot-upload-once";

fn uploaded(sidecar: &Sidecar) -> Value {
    let task = sidecar.perform(ONCE, json!({}));
    assert_eq!(task["status"], "completed", "{task}");
    task["result"].clone()
}

fn latest(store: &Store) -> String {
    let path = store.folder.join(CHAIN).join("state-sync/latest.txt");
    std::fs::read_to_string(path).expect("an object")
}

#[test]
fn the_second_newest_snapshot_is_uploaded_as_an_archive_any_tar_unpacks() {
    for kind in KINDS {
        let store = Store::new(kind);
        let sidecar = running(&format!("once-{kind:?}"), &store);
        let home = &sidecar.home;
        for height in [90, 200, 1000] {
            snapshot(home, height, 3, 3 << 20);
        }
        metadata(home);
        // None of these is a snapshot.
        for name in ["0300", "tmp", "-7", "+8", "99999999999999999999"] {
            std::fs::create_dir(home.join("data/snapshots").join(name)).expect("a folder");
        }
        std::fs::write(home.join("data/snapshots/5000"), "").expect("a file");
        let key = archive(200);
        assert_eq!(
            uploaded(&sidecar),
            json!({"outcome": "uploaded", "height": 200, "key": key})
        );
        let both = [key, format!("{CHAIN}/state-sync/latest.txt")];
        assert_eq!(keys(&store), both, "{kind:?}");
        assert_eq!(latest(&store), "200");
        let note = noted(home).expect("a note");
        assert_eq!(note["lastUploadedHeight"], 200);
        let at = note["lastUploadedAt"].as_i64().expect("a time");
        assert!((jiff::Timestamp::now().as_second() - at).abs() < 60);
        let unpacked = home.join("unpacked");
        unpack(&store, 200, &unpacked);
        same(home, &unpacked, &["200", "metadata.db"]);
        assert!(!home.join("tmp/snapshot-upload").exists());
    }
}

#[test]
fn the_database_beside_the_snapshots_may_be_a_file_or_not_be_there() {
    let store = Store::new(Kind::Folder);
    let sidecar = running("once-metadata", &store);
    let (home, unpacked) = (&sidecar.home, sidecar.home.join("unpacked"));
    snapshot(home, 10, 1, 100);
    snapshot(home, 20, 1, 100);
    uploaded(&sidecar);
    unpack(&store, 10, &unpacked);
    same(home, &unpacked, &["10"]);
    std::fs::write(home.join("data/snapshots/metadata.db"), "a file").expect("a file");
    snapshot(home, 30, 1, 100);
    uploaded(&sidecar);
    unpack(&store, 20, &unpacked);
    same(home, &unpacked, &["20", "metadata.db"]);
}

#[test]
fn what_was_uploaded_is_not_uploaded_again_and_what_is_newer_is() {
    let store = Store::new(Kind::PathStyle);
    let mut sidecar = running("once-again", &store);
    let home = sidecar.home.clone();
    snapshot(&home, 100, 1, 100);
    snapshot(&home, 200, 1, 100);
    assert_eq!(uploaded(&sidecar)["height"], 100);
    std::fs::remove_file(store.folder.join(archive(100))).expect("an object");
    let noop = json!({"outcome": "noop", "noopReason": "already-uploaded"});
    assert_eq!(uploaded(&sidecar), noop);
    sidecar.restart();
    assert_eq!(uploaded(&sidecar), noop);
    assert!(!store.folder.join(archive(100)).exists());
    snapshot(&home, 300, 1, 100);
    assert_eq!(uploaded(&sidecar)["key"], archive(200));
    assert_eq!(latest(&store), "200");
    // A note nobody can read costs an upload and no more.
    std::fs::write(home.join(".sei-sidecar-last-upload.json"), "{\"last").expect("a file");
    assert_eq!(uploaded(&sidecar)["height"], 200);
    assert_eq!(noted(&home).expect("a note")["lastUploadedHeight"], 200);
}

#[test]
fn fewer_than_two_snapshots_are_nothing_to_upload() {
    let mut store = Store::new(Kind::PathStyle);
    // Nobody is asked for it.
    store.port = 1;
    let sidecar = running("once-few", &store);
    let noop = json!({"outcome": "noop", "noopReason": "fewer-than-2-snapshots"});
    assert_eq!(uploaded(&sidecar), noop);
    std::fs::create_dir(sidecar.home.join("data/snapshots")).expect("a folder");
    assert_eq!(uploaded(&sidecar), noop);
    snapshot(&sidecar.home, 100, 1, 100);
    assert_eq!(uploaded(&sidecar), noop);
    assert_eq!(noted(&sidecar.home), None);
}

#[test]
fn uploads_are_counted_and_the_last_one_is_known_after_a_restart() {
    let store = Store::new(Kind::Folder);
    let mut sidecar = running("once-metrics", &store);
    assert_eq!(gauge(&sidecar, "last_uploaded_height"), None);
    uploaded(&sidecar);
    assert_eq!(outcomes(&sidecar, "noop"), 1);
    let noop = gauge(&sidecar, "last_run_success_timestamp_seconds");
    assert!(noop.is_some_and(|it| it > 1_700_000_000));
    snapshot(&sidecar.home, 100, 1, 100);
    snapshot(&sidecar.home, 200, 1, 100);
    uploaded(&sidecar);
    assert_eq!(outcomes(&sidecar, "uploaded"), 1);
    std::fs::rename(&store.folder, store.folder.with_extension("away")).expect("a rename");
    snapshot(&sidecar.home, 300, 1, 100);
    failure(&sidecar, ONCE, json!({}));
    assert_eq!(outcomes(&sidecar, "error"), 1);
    let at = noted(&sidecar.home).expect("a note")["lastUploadedAt"].as_i64();
    for restarted in [false, true] {
        if restarted {
            sidecar.restart();
            assert_eq!(gauge(&sidecar, "last_run_success_timestamp_seconds"), None);
        }
        assert_eq!(gauge(&sidecar, "last_uploaded_height"), Some(100));
        assert_eq!(gauge(&sidecar, "last_uploaded_timestamp_seconds"), at);
    }
}

#[test]
fn many_at_once_upload_one_snapshot_once_and_write_one_note() {
    let store = Store::new(Kind::Folder);
    let sidecar = running("once-many", &store);
    snapshot(&sidecar.home, 100, 4, 1 << 20);
    snapshot(&sidecar.home, 200, 1, 100);
    let ids: Vec<String> = (0..50).map(|_| submit(&sidecar, ONCE)).collect();
    let outcome = |id: &String| {
        let task = sidecar.ended(id);
        task["result"]["outcome"].as_str().map(str::to_owned)
    };
    let outcomes: Vec<_> = ids.iter().map(outcome).collect();
    let count = |name: &str| {
        outcomes
            .iter()
            .filter(|it| it.as_deref() == Some(name))
            .count()
    };
    assert_eq!((count("uploaded"), count("noop")), (1, 49));
    assert_eq!(
        noted(&sidecar.home).expect("a note")["lastUploadedHeight"],
        100
    );
}

#[test]
fn a_server_that_refuses_is_named_and_nothing_is_noted() {
    let denied = "access is denied: AccessDenied: so it is \
                  [hint: check the credentials and what the bucket allows them to do]";
    let bucket = "there is no such bucket: NoSuchBucket: so it is \
                  [hint: check the bucket's name and region, and the object store's endpoint]";
    for (status, code, sentence) in [(403, "AccessDenied", denied), (404, "NoSuchBucket", bucket)] {
        let mut store = Store::new(Kind::PathStyle);
        store.port = refusing(store.port, u64::MAX, status, code);
        let sidecar = running(&format!("once-{code}"), &store);
        snapshot(&sidecar.home, 100, 1, 100);
        snapshot(&sidecar.home, 200, 1, 100);
        let (error, result) = failure(&sidecar, ONCE, json!({}));
        let (name, key) = (&store.name, archive(100));
        assert_eq!(error, format!("{ONCE}: S3: put {name}/{key}: {sentence}"));
        assert_eq!(
            result,
            json!({"retryable": false, "operation": "upload", "outcome": "error"})
        );
        assert_eq!(noted(&sidecar.home), None);
        assert_eq!(outcomes(&sidecar, "error"), 1);
    }
}

#[test]
fn a_real_server_says_no_to_a_bucket_that_is_not_there_and_to_a_wrong_secret() {
    for (variable, value, sentence) in [
        (
            "SEI_SNAPSHOT_BUCKET",
            "nobody",
            "there is no such bucket: NoSuchBucket",
        ),
        (
            "AWS_SECRET_ACCESS_KEY",
            "wrong-and-secret",
            "access is denied: SignatureDoesNotMatch",
        ),
    ] {
        let store = Store::new(Kind::PathStyle);
        let mut sidecar = beside(&format!("once-no-{value}"), &store).with(variable, value);
        sidecar.run();
        snapshot(&sidecar.home, 100, 1, 100);
        snapshot(&sidecar.home, 200, 1, 100);
        let (error, _) = failure(&sidecar, ONCE, json!({}));
        assert!(error.contains(sentence), "{error}");
        let told = format!("{}{error}", sidecar.log());
        assert!(!told.contains("wrong-and-secret"));
    }
}

#[test]
fn a_server_that_is_busy_for_a_while_gets_the_snapshot_all_the_same() {
    let mut store = Store::new(Kind::PathStyle);
    let behind = store.clone();
    store.port = refusing(store.port, 4, 503, "SlowDown");
    let sidecar = running("once-busy", &store);
    snapshot(&sidecar.home, 100, 1, 100);
    snapshot(&sidecar.home, 200, 1, 100);
    assert_eq!(uploaded(&sidecar)["outcome"], "uploaded");
    assert_eq!(keys(&behind).len(), 2);
}

#[test]
fn a_deadline_is_a_failure_with_an_outcome_and_a_deletion_is_none() {
    let mut store = Store::new(Kind::PathStyle);
    // It takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    store.port = silent.local_addr().expect("an address").port();
    let mut sidecar = beside("once-deadline", &store).with("SEI_SNAPSHOT_UPLOAD_TIMEOUT", "2s");
    sidecar.run();
    snapshot(&sidecar.home, 100, 1, 100);
    snapshot(&sidecar.home, 200, 1, 100);
    let (error, result) = failure(&sidecar, ONCE, json!({}));
    assert_eq!(
        error,
        "snapshot-upload-once: deadline exceeded: it was not done within 2 s"
    );
    assert_eq!(result, json!({"outcome": "error"}));
    assert_eq!(outcomes(&sidecar, "error"), 1);

    let mut sidecar = sidecar.with("SEI_SNAPSHOT_UPLOAD_TIMEOUT", "1h");
    sidecar.restart();
    let id = submit(&sidecar, ONCE);
    at_work(&sidecar, &id);
    let deleted = sidecar.call("DELETE", &format!("/v0/tasks/{id}"), "", "");
    assert_eq!(deleted.status, 204);
    assert_eq!(outcomes(&sidecar, "error"), 0);
    assert!(!sidecar.home.join("tmp/snapshot-upload").exists());
}
