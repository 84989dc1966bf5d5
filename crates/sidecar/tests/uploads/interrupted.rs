//! Uploads that do not come to their end: nobody sees half of one, and the next one is whole.

use super::gateway::{Kind, Store};
use super::play::{
    archive, beside, keys, metadata, noted, outcomes, running, same, shown, snapshot, submit,
    unpack,
};
use super::stage::{PROGRAM, Sidecar, until};
use super::tap::Tap;
use nix::sys::signal::Signal;
use std::path::Path;
use std::process::Child;

const ONCE: &str = "snapshot-upload-once";
/// What is on the way at once, in parts and pieces, is far less than a snapshot has.
const CHUNKS: usize = 16;
const CHUNK: usize = 4 << 20;

/// An upload that stands still after some of it has passed.
struct Standing {
    store: Store,
    tap: Tap,
    sidecar: Sidecar,
    id: String,
}

impl Standing {
    fn new(test: &str) -> Self {
        let mut store = Store::new(Kind::PathStyle);
        let tap = Tap::to(store.port);
        let behind = store.clone();
        store.port = tap.port;
        let sidecar = running(test, &store);
        snapshot(&sidecar.home, 100, CHUNKS, CHUNK);
        snapshot(&sidecar.home, 200, 1, 100);
        metadata(&sidecar.home);
        tap.close_after(10 << 20);
        let id = submit(&sidecar, ONCE);
        until("a line that stands still", || tap.is_dry().then_some(()));
        Self {
            store: behind,
            tap,
            sidecar,
            id,
        }
    }

    /// Every file of the server's, whoever sees it.
    fn files(&self) -> Vec<String> {
        fn below(folder: &Path, found: &mut Vec<String>) {
            for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
                match entry.path().is_dir() {
                    true => below(&entry.path(), found),
                    false => found.push(entry.path().display().to_string()),
                }
            }
        }
        let mut found = Vec::new();
        below(&self.store.folder, &mut found);
        found
    }
}

#[test]
fn a_snapshot_that_is_pruned_or_changed_on_the_way_is_an_error_and_no_object() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 2] = [
        ("it is gone", |it| {
            std::fs::remove_dir_all(it).expect("a folder");
        }),
        ("it is shorter than it was", |it| {
            std::fs::write(it.join("3/15"), "x").expect("a file");
        }),
    ];
    for (index, (sentence, change)) in changes.into_iter().enumerate() {
        let standing = Standing::new(&format!("changed-{index}"));
        let sidecar = &standing.sidecar;
        let folder = sidecar.home.join("data/snapshots/100");
        change(&folder);
        standing.tap.open();
        let task = sidecar.ended(&standing.id);
        let error = task["error"].as_str().expect("an error");
        for part in [
            "snapshot-upload-once: snapshot 100 was not uploaded: ",
            sentence,
            "[hint: the node may prune its snapshots too soon: let it keep more of them]",
        ] {
            assert!(error.contains(part), "{error}");
        }
        assert_eq!(task["result"]["outcome"], "error", "{task}");
        assert_eq!(task["result"]["retryable"], true, "{task}");
        assert_eq!(keys(&standing.store), [""; 0]);
        assert_eq!(standing.files(), [""; 0], "parts are left");
        assert_eq!(noted(&sidecar.home), None);
    }
}

#[test]
fn a_deleted_upload_leaves_nothing_and_counts_as_nothing() {
    let standing = Standing::new("deleted");
    let (sidecar, id) = (&standing.sidecar, &standing.id);
    // What was begun can be taken away again: the line is open for that.
    let deleting = format!("/v0/tasks/{id}");
    standing.tap.open();
    let deleted = sidecar.call("DELETE", &deleting, "", "");
    assert_eq!(deleted.status, 204);
    until("the end of what was begun", || {
        standing.files().is_empty().then_some(())
    });
    assert_eq!(outcomes(sidecar, "error"), 0);
    assert_eq!(noted(&sidecar.home), None);
}

#[test]
fn killed_in_the_middle_nobody_sees_half_of_it_and_the_next_sidecar_brings_it_whole() {
    let mut standing = Standing::new("killed");
    let sidecar = &mut standing.sidecar;
    sidecar.kill();
    assert_eq!(keys(&standing.store), [""; 0]);
    standing.tap.open();
    sidecar.run();
    let task = sidecar.ended(&standing.id);
    assert_eq!(task["result"]["outcome"], "uploaded", "{task}");
    assert_eq!(keys(&standing.store).len(), 2);
    let unpacked = sidecar.home.join("unpacked");
    unpack(&standing.store, 100, &unpacked);
    same(&sidecar.home, &unpacked, &["100", "metadata.db"]);
}

#[test]
fn ended_in_the_middle_the_task_is_taken_up_by_the_next_sidecar() {
    let mut standing = Standing::new("ended");
    let sidecar = &mut standing.sidecar;
    standing.tap.open();
    sidecar.signal(Signal::SIGTERM);
    assert!(sidecar.exit().success());
    sidecar.run();
    let task = sidecar.ended(&standing.id);
    assert_eq!(task["result"]["outcome"], "uploaded", "{task}");
}

#[test]
fn killed_again_and_again_before_a_folder_it_brings_it_whole_in_the_end() {
    let store = Store::new(Kind::Folder);
    let mut sidecar = running("killed-folder", &store);
    snapshot(&sidecar.home, 100, CHUNKS, CHUNK);
    snapshot(&sidecar.home, 200, 1, 100);
    let id = submit(&sidecar, ONCE);
    for kill in 1..=3_u64 {
        until("some of it", || {
            let bytes = shown(&sidecar, &id)["progress"]["bytes"].as_u64()?;
            (bytes > kill << 20).then_some(())
        });
        sidecar.kill();
        assert_eq!(keys(&store), [""; 0]);
        sidecar.run();
    }
    assert_eq!(sidecar.ended(&id)["result"]["outcome"], "uploaded");
    assert_eq!(keys(&store).len(), 2);
    let unpacked = sidecar.home.join("unpacked");
    unpack(&store, 100, &unpacked);
    same(&sidecar.home, &unpacked, &["100"]);
}

#[test]
fn a_part_whose_connection_is_cut_is_sent_again() {
    let mut store = Store::new(Kind::PathStyle);
    let tap = Tap::to(store.port);
    let behind = store.clone();
    store.port = tap.port;
    let sidecar = running("cut", &store);
    snapshot(&sidecar.home, 100, 6, CHUNK);
    snapshot(&sidecar.home, 200, 1, 100);
    tap.cut(3, 3 << 20);
    let id = submit(&sidecar, ONCE);
    let task = sidecar.ended(&id);
    assert_eq!(task["result"]["outcome"], "uploaded", "{task}");
    assert_eq!(tap.cuts(), 0);
    let unpacked = sidecar.home.join("unpacked");
    unpack(&behind, 100, &unpacked);
    same(&sidecar.home, &unpacked, &["100"]);
}

/// The program; it ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Ended {
    /// The most it ever had resident.
    fn most_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id()));
        let status = status.expect("a process");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kibibytes = line.expect("a line").trim().trim_end_matches(" kB");
        kibibytes.parse::<u64>().expect("a number") << 10
    }
}

#[test]
fn memory_does_not_grow_with_the_snapshot() {
    for kind in [Kind::PathStyle, Kind::Folder] {
        let store = Store::new(kind);
        let sidecar = beside(&format!("memory-{kind:?}"), &store);
        snapshot(&sidecar.home, 100, 40, CHUNK);
        snapshot(&sidecar.home, 200, 1, 100);
        // A child of this test's own, which it may look at.
        let child = sidecar.command(PROGRAM).arg("serve").spawn();
        let child = Ended(child.expect("the program"));
        until("an answer", || {
            sidecar.try_call("GET", "/v0/healthz", "", "")
        });
        let id = submit(&sidecar, ONCE);
        let task = sidecar.ended(&id);
        assert_eq!(task["result"]["outcome"], "uploaded", "{task}");
        let size = std::fs::metadata(store.folder.join(archive(100))).expect("an object");
        assert!(size.len() > 160 << 20);
        let most = child.most_memory();
        println!("{kind:?}: {} KiB", most >> 10);
        assert!(most < 64 << 20, "{kind:?}: {most} bytes");
    }
}
