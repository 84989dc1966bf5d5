//! `snapshot-upload`: the loop.

use super::gateway::{Kind, Store};
use super::play::{archive, at_work, beside, keys, noted, outcomes, shown, snapshot, submit};
use super::stage::{Sidecar, until};
use nix::sys::signal::Signal;
use serde_json::Value;
use std::net::TcpListener;

const LOOP: &str = "snapshot-upload";

/// What came of the last upload, once it is what is waited for.
fn last(sidecar: &Sidecar, id: &str, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
    until(what, || {
        let last = shown(sidecar, id)["last"].clone();
        wanted(&last).then_some(last)
    })
}

fn looping(test: &str, store: &Store, interval: &str) -> Sidecar {
    let mut sidecar = beside(test, store).with("SEI_SNAPSHOT_UPLOAD_INTERVAL", interval);
    sidecar.run();
    sidecar
}

#[test]
fn the_loop_uploads_at_once_shows_it_and_waits() {
    let store = Store::new(Kind::PathStyle);
    let mut sidecar = looping("loop-waits", &store, "1h");
    snapshot(&sidecar.home, 100, 2, 1 << 20);
    snapshot(&sidecar.home, 200, 1, 100);
    let id = submit(&sidecar, LOOP);
    let seen = last(&sidecar, &id, "an upload", |it| it["outcome"] == "uploaded");
    assert_eq!(seen["height"], 100);
    assert_eq!(seen["key"], archive(100));
    let time = |name: &str| {
        let text = seen[name].as_str().expect("a time");
        text.parse::<jiff::Timestamp>().expect("a time").as_second()
    };
    assert_eq!(time("nextAt") - time("endedAt"), 3600);
    assert_eq!(shown(&sidecar, &id).get("progress"), None);

    // While it waits, it waits; the next sidecar takes it up and looks at once.
    snapshot(&sidecar.home, 300, 1, 100);
    sidecar.signal(Signal::SIGTERM);
    assert!(sidecar.exit().success());
    assert_eq!(
        noted(&sidecar.home).expect("a note")["lastUploadedHeight"],
        100
    );
    sidecar.run();
    last(&sidecar, &id, "an upload", |it| it["height"] == 200);
    sidecar.restart();
    let seen = last(&sidecar, &id, "an end", |it| it["outcome"] == "noop");
    assert_eq!(seen["noopReason"], "already-uploaded");
    assert_eq!(outcomes(&sidecar, "noop"), 1);
}

#[test]
fn the_loop_goes_on_through_errors_until_it_is_deleted() {
    let store = Store::new(Kind::Folder);
    let away = store.folder.with_extension("away");
    std::fs::rename(&store.folder, &away).expect("a rename");
    let sidecar = looping("loop-errors", &store, "100ms");
    snapshot(&sidecar.home, 100, 1, 100);
    snapshot(&sidecar.home, 200, 1, 100);
    let id = submit(&sidecar, LOOP);
    let seen = last(&sidecar, &id, "an error", |it| it["outcome"] == "error");
    let error = seen["error"].as_str().expect("an error");
    assert!(
        error.starts_with("snapshot-upload: folder: open"),
        "{error}"
    );
    until("more errors", || {
        (outcomes(&sidecar, "error") > 1).then_some(())
    });
    std::fs::rename(&away, &store.folder).expect("a rename");
    last(&sidecar, &id, "a noop after an upload", |it| {
        it["outcome"] == "noop"
    });
    assert_eq!(outcomes(&sidecar, "uploaded"), 1);
    snapshot(&sidecar.home, 300, 1, 100);
    until("the next upload", || {
        (noted(&sidecar.home)?["lastUploadedHeight"] == 200).then_some(())
    });
    let deleted = sidecar.call("DELETE", &format!("/v0/tasks/{id}"), "", "");
    assert_eq!(deleted.status, 204);
    let errors = outcomes(&sidecar, "error");
    snapshot(&sidecar.home, 400, 1, 100);
    // One that is asked for finds what the loop has left: nobody else uploads any more.
    let task = sidecar.perform("snapshot-upload-once", serde_json::json!({}));
    assert_eq!(task["result"]["height"], 300, "{task}");
    assert_eq!(outcomes(&sidecar, "error"), errors);
    assert_eq!(keys(&store).len(), 4);
}

#[test]
fn a_loop_that_is_deleted_in_the_middle_of_an_upload_counts_as_nothing() {
    let mut store = Store::new(Kind::PathStyle);
    // It takes connections and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    store.port = silent.local_addr().expect("an address").port();
    let sidecar = looping("loop-deleted", &store, "1h");
    snapshot(&sidecar.home, 100, 1, 100);
    snapshot(&sidecar.home, 200, 1, 100);
    let id = submit(&sidecar, LOOP);
    at_work(&sidecar, &id);
    let deleted = sidecar.call("DELETE", &format!("/v0/tasks/{id}"), "", "");
    assert_eq!(deleted.status, 204);
    // Whoever is next has the turn as soon as the loop has ended.
    let next = submit(&sidecar, "snapshot-upload-once");
    at_work(&sidecar, &next);
    assert_eq!(outcomes(&sidecar, "error"), 0);
}
