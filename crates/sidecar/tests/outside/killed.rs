//! Killed at every point where something becomes durable, and at random: no task that was answered
//! for is lost, and none that completed is run again.

use super::stage::{Sidecar, until};
use flate2::Compression;
use flate2::write::GzEncoder;
use keelson_sidecar::fault::{Point, VARIABLE};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::os::unix::process::ExitStatusExt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use uuid::Uuid;

/// What was on disk when the process was dead: tasks that had completed, and how long the log was.
struct Death {
    completed: Vec<String>,
    log: usize,
}

impl Death {
    fn of(sidecar: &Sidecar) -> Self {
        let path = sidecar.home.join("sidecar.db");
        let completed = match rusqlite::Connection::open(path) {
            Ok(store) => completed(&store).unwrap_or_default(),
            Err(_) => Vec::new(),
        };
        let log = sidecar.log().len();
        Self { completed, log }
    }

    /// None of those tasks has begun since.
    fn check(&self, log: &str) {
        let begun: Vec<String> = log[self.log..]
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok())
            .filter(|line| line["message"] == "task begins")
            .filter_map(|line| line["id"].as_str().map(str::to_owned))
            .collect();
        for id in &self.completed {
            assert!(!begun.contains(id), "{id} had completed and was run again");
        }
    }
}

fn completed(store: &rusqlite::Connection) -> rusqlite::Result<Vec<String>> {
    let mut rows = store.prepare("SELECT id FROM task_results WHERE status = 'completed'")?;
    rows.query_map([], |row| row.get(0))?.collect()
}

/// What is done, one after the other; every durable thing happens in it at least once.
fn script() -> Vec<(&'static str, Value)> {
    let patch = json!({"files": {
        "config.toml": {"p2p": {"persistent-peers": "a@b:1"}},
        "app.toml": {"halt-height": 9},
    }});
    vec![
        ("snapshot-restore", json!({})),
        ("config-apply", json!({"mode": "full"})),
        ("mark-ready", json!({})),
        ("config-patch", patch),
        ("mark-not-ready", json!({})),
        ("reset-data", json!({})),
        ("mark-ready", json!({})),
        ("delete", json!({})),
        ("livez", json!({})),
    ]
}

/// Does one step as the operator does: submit, and ask until it has ended. Nothing if the sidecar
/// dies on the way.
fn attempt(sidecar: &Sidecar, step: &str, id: &str, params: &Value) -> Option<()> {
    match step {
        "livez" => sidecar.try_call("GET", "/v0/livez", "", "").map(|_| ()),
        "delete" => {
            let body = json!({"id": id, "type": "config-validate"}).to_string();
            sidecar.try_call("POST", "/v0/tasks", "", &body)?;
            let reply = sidecar.try_call("DELETE", &format!("/v0/tasks/{id}"), "", "")?;
            assert!(matches!(reply.status, 204 | 404), "{reply:?}");
            Some(())
        }
        _ => {
            let body = json!({"id": id, "type": step, "params": params}).to_string();
            let reply = sidecar.try_call("POST", "/v0/tasks", "", &body)?;
            assert_eq!(reply.status, 201, "{reply:?}");
            loop {
                let reply = sidecar.try_call("GET", &format!("/v0/tasks/{id}"), "", "")?;
                assert_eq!(reply.status, 200, "the task is lost: {reply:?}");
                let task = reply.json();
                match task["status"].as_str() {
                    Some("running") => std::thread::sleep(Duration::from_millis(2)),
                    Some("completed") => return Some(()),
                    _ => panic!("{task}"),
                }
            }
        }
    }
}

/// A bucket with one snapshot, in the home so that it goes with it, and a snapshot that is in the way.
fn provide_snapshots(sidecar: Sidecar) -> Sidecar {
    let bucket = sidecar.home.join("bucket");
    let folder = bucket.join("x/state-sync");
    let stale = sidecar.home.join("data/snapshots/50");
    for folder in [&folder, &stale] {
        std::fs::create_dir_all(folder).expect("a folder");
    }
    let file = std::fs::File::create(folder.join("100.tar.gz")).expect("an object");
    let mut archive = tar::Builder::new(GzEncoder::new(file, Compression::fast()));
    let mut header = tar::Header::new_gnu();
    header.set_size(5);
    header.set_mode(0o644);
    let added = archive.append_data(&mut header, "100/1/0", b"chunk".as_slice());
    added.expect("a member");
    let encoder = archive.into_inner().expect("an archive");
    encoder.finish().expect("an archive");
    sidecar.with(
        "SEI_SNAPSHOT_BUCKET",
        &format!("file://{}", bucket.display()),
    )
}

/// Goes through the script, dying once at a point; says whether it was come to.
fn dies_at(point: Point, pass: u32) -> bool {
    let name = format!("{}-{pass}", point.word());
    let sidecar = Sidecar::idle(&name)
        .with_facts("uid", "node", "start")
        .with("KEELSON_SEID_RPC", "http://127.0.0.1:1")
        .with(VARIABLE, &format!("{}:{pass}", point.word()));
    let data = sidecar.home.join("data");
    std::fs::create_dir_all(data.join("state.db")).expect("a folder");
    let mut sidecar = provide_snapshots(sidecar);
    sidecar.spawn();
    let mut death = None;
    for (index, (step, params)) in script().iter().enumerate() {
        let id = Uuid::from_u128(u128::try_from(index).expect("small") + 1).to_string();
        loop {
            let answers = until("an answer or a death", || {
                match sidecar.try_call("GET", "/v0/healthz", "", "") {
                    Some(_) => Some(true),
                    None => sidecar.is_dead().then_some(false),
                }
            });
            if answers && attempt(&sidecar, step, &id, params).is_some() {
                if *step == "snapshot-restore" {
                    restored(&sidecar, &name);
                }
                break;
            }
            assert!(death.is_none(), "{name}: it dies twice: {}", sidecar.log());
            let status = sidecar.exit();
            assert_eq!(
                status.signal(),
                Some(6),
                "{name}: {status:?}: {}",
                sidecar.log()
            );
            death = Some(Death::of(&sidecar));
            sidecar = sidecar.with(VARIABLE, "");
            sidecar.spawn();
        }
    }
    let log = sidecar.log();
    if let Some(death) = &death {
        death.check(&log);
    }
    settled(&mut sidecar, &name);
    death.is_some()
}

/// What is true at the end of the script, however often it was interrupted.
fn settled(sidecar: &mut Sidecar, name: &str) {
    for restarted in [false, true] {
        if restarted {
            *sidecar = std::mem::replace(sidecar, Sidecar::idle("none")).with(VARIABLE, "");
            sidecar.restart();
        }
        assert!(
            sidecar.is_open(),
            "{name}, restarted {restarted}: {}",
            sidecar.log()
        );
    }
    let read = |file: &str| {
        std::fs::read_to_string(sidecar.home.join("config").join(file)).expect("a file")
    };
    assert!(
        read("config.toml").contains("persistent-peers = \"a@b:1\""),
        "{name}"
    );
    assert!(read("app.toml").contains("halt-height = 9"), "{name}");
    let left: Vec<_> = std::fs::read_dir(sidecar.home.join("data"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    assert_eq!(left, ["priv_validator_state.json"], "{name}");
    for folder in ["", "config"] {
        for entry in std::fs::read_dir(sidecar.home.join(folder)).expect("a folder") {
            let file = entry.expect("an entry").file_name();
            assert!(
                !file.to_string_lossy().ends_with(".keelson-new"),
                "{name}: {file:?}"
            );
        }
    }
    let running = sidecar.get("/v0/tasks").body.contains("\"running\"");
    assert!(!running, "{name}");
}

/// The snapshot is there, whole, and nothing of any attempt is left.
fn restored(sidecar: &Sidecar, name: &str) {
    let names = |folder: &str| -> Vec<String> {
        let entries = std::fs::read_dir(sidecar.home.join(folder)).expect("a folder");
        let names = entries.map(|it| it.expect("an entry").file_name());
        let names = names.map(|it| it.to_string_lossy().into_owned());
        names.filter(|it| it != "state.db").collect()
    };
    assert_eq!(names("data"), ["snapshots"], "{name}");
    assert_eq!(names("data/snapshots"), ["100"], "{name}");
    let chunk = std::fs::read(sidecar.home.join("data/snapshots/100/1/0"));
    assert_eq!(chunk.expect("a chunk"), b"chunk", "{name}");
    let height = std::fs::read(sidecar.home.join(".sei-sidecar-snapshot-height"));
    assert_eq!(height.expect("a height"), b"100", "{name}");
}

#[test]
fn dying_before_or_after_anything_is_durable_loses_nothing_and_repeats_nothing() {
    let mut deaths = HashMap::new();
    for point in Point::ALL {
        // Files are renamed many times on the way, and each time is another place to die at.
        let passes = match point {
            Point::RenameBefore | Point::RenameAfter => 1..=12,
            Point::RemoveBefore | Point::RemoveAfter => 1..=4,
            Point::SubmitBefore | Point::SubmitAfter => 1..=6,
            Point::FinishBefore | Point::FinishAfter => 1..=6,
            Point::MigrateBefore | Point::MigrateAfter => 1..=5,
            _ => 1..=1,
        };
        for pass in passes {
            *deaths.entry(point.word()).or_insert(0) += u32::from(dies_at(*point, pass));
        }
    }
    for point in Point::ALL {
        assert!(
            deaths[point.word()] > 0,
            "{} was never come to",
            point.word()
        );
    }
}

/// Numbers that look drawn, the same for the same seed.
fn draw(state: &AtomicU64) -> u64 {
    let mut x = state.load(Ordering::Relaxed);
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    state.store(x, Ordering::Relaxed);
    x
}

/// A task that was answered for.
struct Answered {
    id: String,
    number: u64,
    ended: bool,
}

/// Submits tasks, one after the other, and asks for each until it has ended, through every death of
/// whoever answers, until told to stop. Gives back those that were answered for.
fn work(sidecar: &Sidecar, worker: u64, stop: &AtomicBool) -> Vec<Answered> {
    let (mut answered, mut number) = (Vec::new(), worker);
    let others = ["mark-ready", "mark-not-ready", "config-validate"];
    while !stop.load(Ordering::Relaxed) {
        let id = Uuid::new_v4().to_string();
        let key = format!("k{number}");
        let patch = json!({"files": {"app.toml": {"kill": {key: number}}}});
        let body = json!({"id": id, "type": "config-patch", "params": patch}).to_string();
        match sidecar.try_call("POST", "/v0/tasks", "", &body) {
            Some(reply) if reply.status == 201 => {
                let other = others[usize::try_from(number % 3).expect("small")];
                let other = json!({"type": other}).to_string();
                let _ = sidecar.try_call("POST", "/v0/tasks", "", &other);
                let ended = await_end(sidecar, &id, stop);
                answered.push(Answered { id, number, ended });
                number += 10;
            }
            _ => std::thread::sleep(Duration::from_millis(5)),
        }
    }
    answered
}

/// Whether the end of a task was seen before everything stopped.
fn await_end(sidecar: &Sidecar, id: &str, stop: &AtomicBool) -> bool {
    while !stop.load(Ordering::Relaxed) {
        if let Some(reply) = sidecar.try_call("GET", &format!("/v0/tasks/{id}"), "", "") {
            assert_eq!(reply.status, 200, "the task is lost: {reply:?}");
            let task = reply.json();
            assert_ne!(task["status"], "failed", "{task}");
            if task["status"] == "completed" {
                return true;
            }
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    false
}

#[test]
fn killed_at_random_moments_it_loses_no_task_and_repeats_none() {
    let kills = std::env::var("KEELSON_SOAK_KILLS")
        .ok()
        .and_then(|it| it.parse().ok())
        .unwrap_or(50);
    let seed = u64::from(std::process::id()) << 20 | 0x9e37;
    println!("seed {seed}, {kills} kills");
    let random = AtomicU64::new(seed);
    let mut sidecar = Sidecar::start("kills");
    // The workers talk to the port, whoever is behind it.
    let mut port = Sidecar::idle("kills-port");
    port.port = sidecar.port;
    let (stop, mut deaths) = (AtomicBool::new(false), Vec::new());
    let answered: Vec<Answered> = std::thread::scope(|threads| {
        let (port, stop) = (&port, &stop);
        let workers = [0, 1, 2].map(|worker| threads.spawn(move || work(port, worker, stop)));
        for _ in 0..kills {
            // Some die while they start, most while they work.
            let starting = draw(&random).is_multiple_of(5);
            if !starting {
                until("an answer", || {
                    sidecar.try_call("GET", "/v0/healthz", "", "")
                });
            }
            std::thread::sleep(Duration::from_millis(draw(&random) % 150));
            sidecar.kill();
            deaths.push(Death::of(&sidecar));
            sidecar.spawn();
        }
        stop.store(true, Ordering::Relaxed);
        let answered = workers.map(|worker| worker.join().expect("no panic"));
        answered.into_iter().flatten().collect()
    });
    until("an answer", || {
        sidecar.try_call("GET", "/v0/healthz", "", "")
    });
    assert!(
        answered.len() > kills / 2,
        "only {} tasks were answered for",
        answered.len()
    );
    for task in answered.iter().filter(|task| !task.ended) {
        let task = sidecar.ended(&task.id);
        assert_eq!(task["status"], "completed", "{task}");
    }
    let log = sidecar.log();
    for death in &deaths {
        death.check(&log);
    }
    let text = std::fs::read_to_string(sidecar.home.join("config/app.toml")).expect("a file");
    for Answered { number, .. } in &answered {
        assert!(
            text.contains(&format!("k{number} = {number}\n")),
            "k{number} is lost"
        );
    }
    println!("{} tasks through {} deaths", answered.len(), deaths.len());
}
