//! The API, route by route.

use super::stage::{PROGRAM, Sidecar, read_all, until};
use base64::Engine;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use std::process::Command;
use std::time::{Duration, Instant};

const ID: &str = "0b6f2c1e-4f12-4d8b-9a6e-1c2d3e4f5a6b";

#[test]
fn livez_answers_before_the_gate_is_open_and_after() {
    let sidecar = Sidecar::start("livez");
    for _ in 0..2 {
        let reply = sidecar.get("/v0/livez");
        assert_eq!((reply.status, reply.body.as_str()), (200, ""));
        sidecar.completes("mark-ready", json!({}));
    }
}

#[test]
fn livez_says_503_when_nothing_can_be_written_and_why_when_asked() {
    let sidecar = Sidecar::start("livez-stuck");
    let other = rusqlite::Connection::open(sidecar.home.join("sidecar.db")).expect("the store");
    other.execute_batch("BEGIN IMMEDIATE").expect("the file");
    let reply = sidecar.get("/v0/livez");
    assert_eq!((reply.status, reply.body.as_str()), (503, ""));
    let reply = sidecar.get("/v0/livez?verbose=1");
    assert_eq!(reply.status, 503);
    assert!(reply.error().contains("the store"), "{reply:?}");
    other.execute_batch("ROLLBACK").expect("let go");
    until("life", || {
        (sidecar.get("/v0/livez").status == 200).then_some(())
    });
}

#[test]
fn the_gate_is_closed_until_mark_ready_and_the_status_follows() {
    let sidecar = Sidecar::start("gate-status");
    for path in ["/v0/healthz", "/v0/startupz"] {
        let reply = sidecar.get(path);
        assert_eq!((reply.status, reply.body.as_str()), (503, ""));
    }
    assert_eq!(
        sidecar.get("/v0/status").json(),
        json!({"status": "Initializing"})
    );
    sidecar.completes("mark-ready", json!({}));
    for path in ["/v0/healthz", "/v0/startupz"] {
        assert_eq!(sidecar.get(path).status, 200);
    }
    let status = sidecar.get("/v0/status");
    assert_eq!(status.body, "{\"status\":\"Ready\"}\n");
    assert_eq!(
        status.header("content-type").as_deref(),
        Some("application/json")
    );
    sidecar.completes("config-patch", json!({"files": {"app.toml": {"a": 1}}}));
    assert_eq!(sidecar.get("/v0/healthz").status, 200, "open for good");
    sidecar.completes("mark-not-ready", json!({}));
    assert_eq!(sidecar.get("/v0/healthz").status, 503);
}

#[test]
fn a_submission_is_answered_with_its_id_and_so_is_the_same_one_again() {
    let sidecar = Sidecar::start("submit");
    let drawn = sidecar.post(&json!({"type": "config-validate"}));
    assert_eq!(drawn.status, 201);
    assert_eq!(drawn.json()["id"].as_str().map(str::len), Some(36));
    let body = json!({"id": ID, "type": "config-validate", "unknown": 1});
    for _ in 0..2 {
        let reply = sidecar.post(&body);
        assert_eq!(
            (reply.status, reply.body),
            (201, format!("{{\"id\":\"{ID}\"}}\n"))
        );
    }
    let other = sidecar.post(&json!({"id": ID, "type": "mark-ready"}));
    assert_eq!(other.status, 409);
    assert!(other.error().contains("config-validate"), "{other:?}");
}

#[test]
fn bad_submissions_get_400_and_a_sentence() {
    let sidecar = Sidecar::start("bad");
    for (body, sentence) in [
        ("{", "invalid request body"),
        ("", "invalid request body"),
        (
            "{\"type\":\"mark-ready\",\"params\":[]}",
            "invalid request body",
        ),
        ("{}", "type is required"),
        ("{\"type\":\"dance\"}", "unknown task type: dance"),
        (
            "{\"type\":\"config-reload\"}",
            "unknown task type: config-reload",
        ),
        (
            "{\"type\":\"mark-ready\",\"id\":\"7\"}",
            "task ID must be a valid UUID: \"7\"",
        ),
    ] {
        let reply = sidecar.call("POST", "/v0/tasks", "", body);
        assert_eq!(
            (reply.status, reply.error().as_str()),
            (400, sentence),
            "{body}"
        );
    }
    assert_eq!(sidecar.get("/v0/tasks").body, "[]\n", "nothing was kept");
}

#[test]
fn tasks_are_listed_newest_first_and_had_one_by_one() {
    let sidecar = Sidecar::start("list");
    assert_eq!(sidecar.get("/v0/tasks").body, "[]\n");
    sidecar.completes("config-patch", json!({"files": {"app.toml": {"a": 1}}}));
    let ready = sidecar.perform("mark-ready", json!({}));
    let list = sidecar.get("/v0/tasks").json();
    let types: Vec<&str> = list
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|it| it["type"].as_str())
        .collect();
    assert_eq!(types, ["mark-ready", "config-patch"]);
    assert_eq!(list[0], ready);
    let mut fields: Vec<&str> = ready
        .as_object()
        .expect("a task")
        .keys()
        .map(String::as_str)
        .collect();
    fields.sort_unstable();
    assert_eq!(
        fields,
        ["completedAt", "id", "run", "status", "submittedAt", "type"]
    );
    assert_eq!(list[1]["params"], json!({"files": {"app.toml": {"a": 1}}}));
}

#[test]
fn params_are_read_when_the_task_runs() {
    let sidecar = Sidecar::start("params");
    let task = sidecar.perform("snapshot-restore", json!({"targetHeight": "x"}));
    assert_eq!(task["status"], "failed");
    let error = task["error"].as_str().expect("an error");
    assert!(error.starts_with("parsing params:"), "{error}");
}

#[test]
fn what_is_not_there_is_404_and_what_is_deleted_stays_away() {
    let sidecar = Sidecar::start("delete");
    let path = format!("/v0/tasks/{ID}");
    let reply = sidecar.get(&path);
    assert_eq!(
        (reply.status, reply.error().as_str()),
        (404, "task not found")
    );
    sidecar.post(&json!({"id": ID, "type": "config-validate"}));
    sidecar.ended(ID);
    let reply = sidecar.call("DELETE", &path, "", "");
    assert_eq!((reply.status, reply.body.as_str()), (204, ""));
    let reply = sidecar.call("DELETE", &path, "", "");
    assert_eq!(
        (reply.status, reply.error().as_str()),
        (404, "task not found")
    );
}

#[test]
fn the_node_id_is_the_hash_of_the_public_key_and_nothing_of_the_key_is_told() {
    let sidecar = Sidecar::start("node-id");
    let reply = sidecar.get("/v0/node-id");
    assert_eq!(reply.status, 500);
    assert!(reply.error().contains("node_key.json"), "{reply:?}");
    let key: Vec<u8> = (0..64).collect();
    let encode = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
    let write = |value: &str| {
        let file = json!({"id": "other", "priv_key": {"type": "t", "value": value}});
        std::fs::write(sidecar.home.join("config/node_key.json"), file.to_string())
            .expect("a file");
    };
    write(&encode(&key));
    let digest = Sha256::digest(&key[32..]);
    let wanted: String = digest
        .iter()
        .take(20)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(sidecar.get("/v0/node-id").json(), json!({"nodeId": wanted}));
    for bad in [encode(&key[..63]), "secret!".into()] {
        write(&bad);
        let reply = sidecar.get("/v0/node-id");
        assert_eq!(reply.status, 500);
        assert!(!reply.body.contains(&bad), "{reply:?}");
    }
}

#[test]
fn other_paths_are_404_and_other_methods_405() {
    let sidecar = Sidecar::start("routes");
    for path in [
        "/",
        "/v0",
        "/v0/tasks/",
        "/v0/healthz/",
        "/v0/%68ealthz",
        "/v0/tasks/a/b",
    ] {
        let reply = sidecar.get(path);
        assert_eq!(
            (reply.status, reply.body.as_str()),
            (404, "404 page not found\n"),
            "{path}"
        );
    }
    for (method, path, allowed) in [
        ("POST", "/v0/healthz", "GET, HEAD"),
        ("DELETE", "/v0/tasks", "GET, HEAD, POST"),
        ("PUT", "/v0/tasks/x", "DELETE, GET, HEAD"),
    ] {
        let reply = sidecar.call(method, path, "", "");
        assert_eq!(reply.status, 405);
        assert_eq!(reply.header("allow").as_deref(), Some(allowed));
    }
    let head = sidecar.call("HEAD", "/v0/status", "", "");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}

#[test]
fn what_is_too_large_is_refused_and_its_sender_hears_of_it() {
    let sidecar = Sidecar::start("large");
    let blank = " ".repeat(1 << 20);
    let fits = format!(
        "{{\"type\":\"config-validate\"{}}}",
        &blank[..(1 << 20) - 26]
    );
    assert_eq!(fits.len(), 1 << 20);
    assert_eq!(sidecar.call("POST", "/v0/tasks", "", &fits).status, 201);
    let reply = sidecar.call("POST", "/v0/tasks", "", &format!("{fits} "));
    assert_eq!(reply.status, 413);
    assert_eq!(reply.error(), "the request body is larger than 1 MiB");
    let long = format!("X-Long: {}\r\n", "x".repeat(33 << 10));
    for _ in 0..20 {
        assert_eq!(sidecar.call("GET", "/v0/status", &long, "").status, 431);
    }
}

#[test]
fn a_client_that_dawdles_is_cut_and_one_that_rests_is_not() {
    let sidecar = Sidecar::start("slow");
    let begun = Instant::now();
    let mut slow = sidecar.connect().expect("a connection");
    slow.write_all(b"GET /v0/healthz HT").expect("a beginning");
    let mut resting = sidecar.connect().expect("a connection");
    let request = b"GET /v0/status HTTP/1.1\r\nHost: a\r\n\r\n";
    let mut answer = [0; 1024];
    resting.write_all(request).expect("a request");
    assert!(resting.read(&mut answer).expect("an answer") > 0);
    let mut nothing = Vec::new();
    let _ = slow.read_to_end(&mut nothing);
    let waited = begun.elapsed();
    assert!(
        waited > Duration::from_secs(4) && waited < Duration::from_secs(20),
        "{waited:?}"
    );
    std::thread::sleep(Duration::from_secs(2));
    resting.write_all(request).expect("a request");
    assert!(
        resting.read(&mut answer).expect("an answer") > 0,
        "still there after {waited:?}"
    );
}

#[test]
fn the_gate_loop_of_seids_container_works_as_it_is() {
    let sidecar = Sidecar::start("bash");
    let script = format!(
        "exec 3<>/dev/tcp/localhost/{} && \
         printf 'GET /v0/healthz HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3 && \
         read -r line <&3 && [[ \"$line\" == *200* ]] && cat <&3 >/dev/null",
        sidecar.port
    );
    let gate = || {
        Command::new("/bin/bash")
            .args(["-c", &script])
            .status()
            .expect("bash")
    };
    assert!(!gate().success());
    sidecar.completes("mark-ready", json!({}));
    assert!(gate().success());
    let mut stream = sidecar.connect().expect("a connection");
    let request = b"GET /v0/healthz HTTP/1.0\r\nHost: localhost\r\n\r\n";
    stream.write_all(request).expect("a request");
    let reply = read_all(&mut stream).expect("an answer, and the end of the connection");
    assert!(
        reply.head.lines().next().expect("a line").contains("200"),
        "{reply:?}"
    );
}

#[test]
fn a_store_that_fails_is_503_and_never_404_or_an_empty_list() {
    let sidecar = Sidecar::start("store-fails");
    sidecar.post(&json!({"id": ID, "type": "config-validate"}));
    sidecar.ended(ID);
    let other = rusqlite::Connection::open(sidecar.home.join("sidecar.db")).expect("the store");
    other
        .execute_batch("ALTER TABLE task_results RENAME TO away")
        .expect("renamed");
    let path = format!("/v0/tasks/{ID}");
    let body = json!({"id": ID, "type": "config-validate"}).to_string();
    for (method, path, body) in [
        ("GET", "/v0/tasks", ""),
        ("GET", &path, ""),
        ("DELETE", &path, ""),
        ("POST", "/v0/tasks", &body),
    ] {
        let reply = sidecar.call(method, path, "", body);
        assert_eq!(reply.status, 503, "{method} {path}: {reply:?}");
        assert_eq!(reply.header("retry-after").as_deref(), Some("1"));
        assert!(reply.error().contains("the store failed"), "{reply:?}");
    }
    other
        .execute_batch("ALTER TABLE away RENAME TO task_results")
        .expect("renamed");
    assert_eq!(sidecar.get(&path).json()["run"], 1, "it was not run again");
}

#[test]
fn metrics_have_the_originals_names_and_only_labels_that_are_harmless() {
    let sidecar = Sidecar::start("metrics").with("SEI_SIDECAR_AUTHN_MODE", "unauthenticated");
    sidecar.completes("mark-ready", json!({}));
    sidecar.perform(
        "config-patch",
        json!({"files": {"secret-name.toml": {"password": "hunter2"}}}),
    );
    let scraped = sidecar.get("/v0/metrics");
    assert_eq!(scraped.status, 200);
    for line in [
        "seictl_task_submissions_total{type=\"mark-ready\"} 1",
        "seictl_task_failures_total{type=\"config-patch\"} 1",
        "keelson_sidecar_ready 1",
    ] {
        assert!(scraped.body.contains(line), "{line}: {}", scraped.body);
    }
    let bucket = "seictl_task_execution_duration_seconds_bucket{le=\"0.005\"";
    assert!(scraped.body.contains(bucket), "{}", scraped.body);
    let known = [
        "type", "status", "reason", "chain", "outcome", "le", "version",
    ];
    let families = [
        "seictl_task_",
        "seictl_sidecar_authn_rejections",
        "seictl_snapshot_upload_",
        "keelson_sidecar_",
        "process_",
    ];
    for line in scraped.body.lines().filter(|line| !line.starts_with('#')) {
        assert!(
            families.iter().any(|family| line.starts_with(family)),
            "{line}"
        );
        let labels = line
            .split_once('{')
            .map_or("", |(_, rest)| rest.split_once('}').expect("labels").0);
        for label in labels.split(',').filter(|it| !it.is_empty()) {
            let (name, _) = label.split_once('=').expect("a label");
            assert!(known.contains(&name), "{line}");
        }
    }
    assert!(!scraped.body.contains("secret") && !scraped.body.contains("hunter2"));
}

#[test]
fn healthcheck_asks_over_loopback_and_ends_accordingly() {
    let mut sidecar = Sidecar::start("healthcheck");
    let ask = |sidecar: &Sidecar, question: &str| {
        let status = sidecar
            .command(PROGRAM)
            .args(["healthcheck", question])
            .status();
        status.expect("the program").success()
    };
    assert!(ask(&sidecar, "livez"));
    assert!(!ask(&sidecar, "healthz"));
    sidecar.completes("mark-ready", json!({}));
    assert!(ask(&sidecar, "healthz"));
    sidecar.kill();
    assert!(!ask(&sidecar, "livez"));
    assert!(
        sidecar.log().contains("does not answer /v0/livez"),
        "{}",
        sidecar.log()
    );
}
