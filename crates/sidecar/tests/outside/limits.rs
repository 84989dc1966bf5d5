//! Tasks while they run, long lists, slow callers, and what the program says of itself.

use super::stage::{Sidecar, read_all, until};
use keelson_sidecar::metrics::own::{Stat, boot, stat};
use nix::sys::signal::Signal;
use serde_json::json;
use std::io::Write;
use std::time::{Duration, Instant, SystemTime};

const ID: &str = "0b6f2c1e-4f12-4d8b-9a6e-1c2d3e4f5a6b";

#[test]
fn a_task_that_runs_is_shown_without_an_end_and_may_be_submitted_again() {
    let mut sidecar = Sidecar::idle("runs").with("KEELSON_SEID_RPC", "http://127.0.0.1:1");
    sidecar.run();
    let params = json!({"condition": "height", "targetHeight": 9});
    let body = json!({"id": ID, "type": "await-condition", "params": params});
    let path = format!("/v0/tasks/{ID}");
    let waits = |sidecar: &Sidecar| {
        until("the wait", || {
            let task = sidecar.get(&path).json();
            task["result"]["progress"]["waitingFor"]
                .is_string()
                .then_some(())
        });
    };
    for _ in 0..2 {
        let reply = sidecar.post(&body);
        assert_eq!((reply.status, reply.json()), (201, json!({"id": ID})));
        waits(&sidecar);
        let task = sidecar.get(&path).json();
        assert_eq!(
            (&task["status"], &task["run"]),
            (&json!("running"), &json!(1))
        );
        assert!(task.get("completedAt").is_none(), "{task}");
    }
    let list = sidecar.get("/v0/tasks").json();
    assert_eq!(list.as_array().map(Vec::len), Some(1), "{list}");
    // What is shown while it runs is not kept: the next sidecar takes it up as it was submitted.
    sidecar.restart();
    let task = sidecar.get(&path).json();
    assert_eq!(
        (&task["status"], &task["run"]),
        (&json!("running"), &json!(1))
    );
    // It answers before it has begun: only who waits again has said so in the log.
    waits(&sidecar);
    let begun = sidecar.log().matches("\"task begins\"").count();
    assert_eq!(begun, 2, "once by each sidecar");
}

#[test]
fn the_newest_hundred_tasks_are_listed() {
    let mut sidecar = Sidecar::start("hundred");
    sidecar.kill();
    let store = rusqlite::Connection::open(sidecar.home.join("sidecar.db")).expect("the store");
    store.execute_batch("BEGIN").expect("begun");
    for index in 0..130 {
        let sql = "INSERT INTO task_results (id, type, status, params, submitted_at, run) \
                   VALUES (?1, 'mark-ready', 'completed', 'null', ?2, 1)";
        let time = format!("2026-01-01T00:{:02}:{:02}Z", index / 60, index % 60);
        store
            .execute(sql, (format!("t{index}"), time))
            .expect("a row");
    }
    store.execute_batch("COMMIT").expect("committed");
    drop(store);
    sidecar.run();
    let list = sidecar.get("/v0/tasks").json();
    let ids: Vec<&str> = list
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["id"].as_str())
        .collect();
    let wanted: Vec<String> = (30..130).rev().map(|index| format!("t{index}")).collect();
    assert_eq!(ids, wanted);
}

#[test]
fn a_request_that_has_begun_when_the_end_comes_is_answered() {
    let mut sidecar = Sidecar::start("begun");
    let mut stream = sidecar.connect().expect("a connection");
    let body = json!({"id": ID, "type": "mark-ready"}).to_string();
    let (first, rest) = body.split_at(5);
    write!(
        stream,
        "POST /v0/tasks HTTP/1.1\r\nHost: node\r\nContent-Length: {}\r\n\r\n{first}",
        body.len()
    )
    .expect("a beginning");
    // Whoever is answered after it shows that it has arrived.
    sidecar.get("/v0/healthz");
    sidecar.signal(Signal::SIGTERM);
    until("the end's beginning", || {
        sidecar
            .log()
            .contains("ending: tasks are told to stop")
            .then_some(())
    });
    stream.write_all(rest.as_bytes()).expect("the rest");
    let reply = read_all(&mut stream).expect("an answer");
    assert_eq!(reply.status, 503, "{reply:?}");
    assert!(
        reply
            .error()
            .contains("submit the task again when it is back"),
        "{reply:?}"
    );
    assert!(sidecar.exit().success());
    sidecar.run();
    assert_eq!(
        sidecar.get("/v0/tasks").body,
        "[]\n",
        "nothing half accepted"
    );
}

#[test]
fn a_body_that_does_not_arrive_is_given_up() {
    let sidecar = Sidecar::start("body");
    let begun = Instant::now();
    let mut stream = sidecar.connect().expect("a connection");
    let head = b"POST /v0/tasks HTTP/1.1\r\nHost: node\r\nContent-Length: 99\r\n\r\n{";
    stream.write_all(head).expect("a beginning");
    let reply = read_all(&mut stream).expect("an answer");
    assert_eq!(reply.status, 408, "{reply:?}");
    assert_eq!(reply.error(), "the request body did not arrive within 10 s");
    let waited = begun.elapsed();
    assert!(waited > Duration::from_secs(9), "{waited:?}");
}

#[test]
fn the_kernels_numbers_are_found_whatever_a_process_is_called() {
    let numbers: Vec<String> = (4..=52).map(|place| place.to_string()).collect();
    let text = format!("77 (a) b (c)) S {}\n", numbers.join(" "));
    let wanted = Stat {
        ticks: 14 + 15,
        started: 22,
        virtual_bytes: 23,
        resident_pages: 24,
    };
    assert_eq!(stat(&text), Some(wanted));
    assert_eq!(stat("77 (a) S 1 2"), None);
    assert_eq!(stat(""), None);
    assert_eq!(
        boot("cpu  1 2\nbtime 1700000000\nprocesses 9\n"),
        Some(1_700_000_000)
    );
    assert_eq!(boot("cpu  1 2\n"), None);
}

#[test]
fn what_the_process_uses_is_told_under_the_usual_names() {
    let sidecar = Sidecar::start("own");
    let number = |name: &str| -> f64 {
        let scraped = sidecar.get("/v0/metrics").body;
        let line = scraped.lines().find_map(|line| line.strip_prefix(name));
        let text = line.unwrap_or_else(|| panic!("{name}: {scraped}"));
        text.trim().parse().expect("a number")
    };
    let resident = number("process_resident_memory_bytes ");
    assert!((1e6..2e8).contains(&resident), "{resident}");
    assert!(number("process_virtual_memory_bytes ") > resident);
    assert!(number("process_virtual_memory_max_bytes ") > resident);
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = now.expect("a time after 1970").as_secs_f64();
    let age = now - number("process_start_time_seconds ");
    assert!((-2.0..60.0).contains(&age), "{age}");
    let before = number("process_cpu_seconds_total ");
    until("CPU time", || {
        (number("process_cpu_seconds_total ") > before).then_some(())
    });
    let few = number("process_open_fds ");
    let held: Vec<_> = (0..20).filter_map(|_| sidecar.connect()).collect();
    until("open connections", || {
        (number("process_open_fds ") >= few + 20.0).then_some(())
    });
    drop(held);
    assert!(number("process_max_fds ") > few);
}
