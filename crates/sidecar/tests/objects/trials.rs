//! snapshot-restore while things go wrong: lines that are cut, objects that change, processes that are
//! killed, disks that are full; and how it looks while it goes on.

use super::gateway::{Kind, Store, gateway};
use super::line::Line;
use super::pack::{Pack, gzip, snapshot, zstandard};
use super::restore::{beside, names, put, serving, staged};
use super::stage::{PROGRAM, Sidecar, until};
use super::suite::noise;
use serde_json::{Value, json};
use std::process::Child;

const KEY: &str = "x/state-sync/100.tar.gz";
const MEGABYTE: usize = 1 << 20;

/// A bucket with a snapshot of so many megabytes, behind a line.
fn behind_a_line(megabytes: u64) -> (Store, Line, u64) {
    let mut store = Store::new(Kind::PathStyle);
    let archive = snapshot(100, megabytes, MEGABYTE).gz();
    put(&store, KEY, &archive);
    let line = Line::to(gateway().port);
    store.port = line.port;
    (store, line, u64::try_from(archive.len()).expect("a size"))
}

fn submit(sidecar: &Sidecar) -> String {
    let reply = sidecar.post(&json!({"type": "snapshot-restore"}));
    assert_eq!(reply.status, 201, "{reply:?}");
    reply.json()["id"].as_str().expect("an id").to_owned()
}

/// Waits until a restore is under way, with bytes on the disk, and held.
fn under_way(sidecar: &Sidecar, id: &str) -> Value {
    until("a file of the snapshot", || {
        let file = sidecar.home.join("data/.snapshots.keelson-new/100/1/1");
        file.exists().then_some(())
    });
    until("progress", || {
        let task = sidecar.get(&format!("/v0/tasks/{id}")).json();
        assert_eq!(task["status"], "running", "{task}");
        task["result"]["progress"]["bytes"]
            .as_u64()
            .filter(|it| *it > 0)?;
        Some(task["result"]["progress"].clone())
    })
}

#[test]
fn how_far_it_is_is_seen_while_it_goes_on() {
    let (store, line, size) = behind_a_line(12);
    let sidecar = serving(&store, "far");
    line.hold(4 << 20);
    let id = submit(&sidecar);
    let progress = under_way(&sidecar, &id);
    assert_eq!(progress["total"], size, "{progress}");
    let bytes = progress["bytes"].as_u64().expect("bytes");
    assert!(bytes < size, "{progress}");
    assert!(progress["bytesPerSecond"].is_u64(), "{progress}");
    line.release();
    assert_eq!(sidecar.ended(&id)["status"], "completed");
    staged(&sidecar, 100, 12, MEGABYTE);
}

#[test]
fn a_download_that_is_cut_goes_on_where_it_was() {
    let (store, line, size) = behind_a_line(24);
    let sidecar = serving(&store, "cut");
    line.cut(6, 3 << 20);
    sidecar.completes("snapshot-restore", json!({}));
    assert_eq!(line.cuts(), 0);
    staged(&sidecar, 100, 24, MEGABYTE);
    // From the beginning each time, it would have been twice the archive.
    assert!(line.back() < size + (6 << 20), "{} of {size}", line.back());
    let log = sidecar.log();
    assert!(log.contains("it is tried again"), "{log}");
}

#[test]
fn an_object_that_is_replaced_on_the_way_is_refused() {
    let (store, line, _) = behind_a_line(24);
    let sidecar = serving(&store, "replaced");
    line.hold(4 << 20);
    let id = submit(&sidecar);
    under_way(&sidecar, &id);
    put(&store, KEY, &snapshot(101, 24, MEGABYTE).gz());
    line.cut(1, 1);
    line.release();
    let task = sidecar.ended(&id);
    let error = task["error"].as_str().expect("an error");
    assert!(
        error.contains("the object was replaced while it was being read"),
        "{error}"
    );
    assert_eq!(names(&sidecar.home.join("data")), [""; 0]);
    sidecar.completes("snapshot-restore", json!({"targetHeight": 100}));
}

#[test]
fn killed_on_the_way_it_is_done_again_and_nothing_is_left() {
    let (store, line, _) = behind_a_line(12);
    let mut sidecar = serving(&store, "killed-restore");
    line.hold(4 << 20);
    let id = submit(&sidecar);
    under_way(&sidecar, &id);
    sidecar.kill();
    assert!(!sidecar.home.join("data/snapshots").exists());
    assert!(!sidecar.home.join(".sei-sidecar-snapshot-done").exists());
    line.release();
    sidecar.run();
    assert_eq!(sidecar.ended(&id)["status"], "completed");
    staged(&sidecar, 100, 12, MEGABYTE);
}

#[test]
fn told_to_stop_it_stops_and_takes_away_what_it_brought() {
    let (store, line, _) = behind_a_line(12);
    let sidecar = serving(&store, "stopped-restore");
    line.hold(4 << 20);
    let id = submit(&sidecar);
    under_way(&sidecar, &id);
    let begun = std::time::Instant::now();
    let reply = sidecar.call("DELETE", &format!("/v0/tasks/{id}"), "", "");
    assert_eq!(reply.status, 204, "{reply:?}");
    until("an empty folder", || {
        names(&sidecar.home.join("data")).is_empty().then_some(())
    });
    assert!(begun.elapsed().as_secs() < 5, "{:?}", begun.elapsed());
    line.release();
}

#[test]
fn memory_does_not_grow_with_the_snapshot() {
    for (kind, suffix, form) in [
        (Kind::PathStyle, "tar.gz", gzip as fn(&[u8]) -> Vec<u8>),
        (Kind::Folder, "tar.zst", zstandard),
    ] {
        let store = Store::new(kind);
        let chunk = noise(1, MEGABYTE);
        let mut pack = Pack::new();
        for number in 0..300 {
            pack = pack.file(&format!("100/1/{number}"), 0o644, &chunk);
        }
        let archive = form(&pack.tar());
        assert!(archive.len() > 300 * MEGABYTE, "nothing is repeated nearby");
        put(&store, &format!("x/state-sync/100.{suffix}"), &archive);
        let sidecar = serving(&store, &format!("memory-{suffix}"));
        let id = submit(&sidecar);
        let task = sidecar.ended(&id);
        assert_eq!(task["status"], "completed", "{task}");
        let most = peak(&sidecar);
        println!("{kind:?} {suffix}: at most {most} kB resident");
        assert!(most < 64 << 10, "{kind:?} {suffix}: {most} kB");
        assert!(std::fs::metadata(sidecar.home.join("data/snapshots/100/1/299")).is_ok());
    }
}

/// The most memory the program ever had, in kilobytes.
fn peak(sidecar: &Sidecar) -> u64 {
    let home = format!("SEI_HOME={}", sidecar.home.display());
    let mine = |pid: &str| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let mut variables = environment.split(|it| *it == 0);
        variables.any(|it| it == home.as_bytes())
    };
    let processes = names("/proc".as_ref());
    let pid = processes.iter().find(|it| mine(it)).expect("the program");
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a status");
    let line = status.lines().find(|it| it.starts_with("VmHWM:"));
    let words: Vec<&str> = line.expect("a line").split_whitespace().collect();
    words[1].parse().expect("a number")
}

/// A program whose data folder is a volume of its own, in a mount namespace of its own.
struct Mounted(Sidecar, Child);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = self.1.kill();
        let _ = self.1.wait();
    }
}

fn mounted(store: &Store, test: &str, options: &str) -> Mounted {
    let sidecar = beside(store, test);
    let data = sidecar.home.join("data");
    std::fs::create_dir(&data).expect("a folder");
    let data = data.display();
    let script = format!("mount -t tmpfs -o {options} none {data} && exec {PROGRAM} serve");
    let child = sidecar
        .command("unshare")
        .args(["-m", "sh", "-c", &script])
        .spawn()
        .expect("unshare");
    let mounted = Mounted(sidecar, child);
    until("an answer", || {
        mounted.0.try_call("GET", "/v0/healthz", "", "")
    });
    mounted
}

#[test]
fn a_volume_that_is_full_too_small_or_read_only_is_named_with_what_to_do() {
    let empty = vec![0; 20 * MEGABYTE];
    let wide = Pack::new().file("100/1/0", 0o644, &empty).gz();
    let tall = snapshot(100, 10, MEGABYTE).gz();
    for (options, archive, why) in [
        (
            "size=8m",
            &wide,
            "cannot be written: No space left on device",
        ),
        (
            "size=8m",
            &tall,
            "the volume is too small: the archive alone has",
        ),
        ("ro", &wide, "cannot be made: Read-only file system"),
    ] {
        let store = Store::new(Kind::Folder);
        put(&store, KEY, archive);
        let test = format!("volume-{}-{}", options, archive.len());
        let mounted = mounted(&store, &test, options);
        let task = mounted.0.perform("snapshot-restore", json!({}));
        let error = task["error"].as_str().expect("an error");
        assert!(error.contains(why), "{error}");
        assert!(error.contains("volume"), "{error}");
        assert!(error.contains("[hint: "), "{error}");
        if options != "ro" {
            let data = mounted.0.home.join("data");
            let seen = format!("/proc/{}/root{}", mounted.1.id(), data.display());
            assert_eq!(names(seen.as_ref()), [""; 0], "{why}");
        }
    }
}
