//! The store's file: what the original wrote in each of its versions, and what may be wrong with it.

use super::stage::{Folder, incoming, row};
use jiff::Timestamp;
use keelson_sidecar::store::{KEEP, Store, VERSION, time_text};
use keelson_wire::{TaskResult, TaskStatus, TaskType};
use rusqlite::Connection;
use serde_json::json;
use std::path::Path;

/// What the original's versions are made by. The names of its indexes are not known to us, and are
/// other ones than ours.
const ORIGINAL: [&str; 5] = [
    "CREATE TABLE task_results (id TEXT PRIMARY KEY, type TEXT NOT NULL, status TEXT NOT NULL,
        params TEXT, schedule TEXT, error TEXT NOT NULL DEFAULT '', submitted_at TEXT NOT NULL,
        completed_at TEXT, next_run_at TEXT);
     CREATE INDEX by_submitted ON task_results (submitted_at DESC);
     CREATE INDEX by_next_run ON task_results (next_run_at) WHERE next_run_at IS NOT NULL;",
    "DROP INDEX by_next_run; ALTER TABLE task_results DROP COLUMN schedule;
     ALTER TABLE task_results DROP COLUMN next_run_at;",
    "ALTER TABLE task_results ADD COLUMN run INTEGER NOT NULL DEFAULT 1;",
    "ALTER TABLE task_results ADD COLUMN result TEXT;",
    "CREATE TABLE tx_markers (task_id TEXT PRIMARY KEY, tx_hash TEXT NOT NULL, tx_bytes BLOB NOT NULL,
        account_number INTEGER NOT NULL, sequence INTEGER NOT NULL, chain_id TEXT NOT NULL,
        created_at TEXT NOT NULL);",
];

/// A store as the original left it at a version, with three tasks.
fn original(path: &Path, version: usize) {
    let connection = Connection::open(path).expect("a file");
    for step in &ORIGINAL[..version] {
        connection.execute_batch(step).expect("a step");
    }
    connection
        .pragma_update(None, "user_version", version.to_string())
        .expect("a version");
    connection
        .execute_batch(
            "INSERT INTO task_results (id, type, status, params, error, submitted_at, completed_at)
             VALUES ('a', 'config-apply', 'completed', '{\"mode\":\"full\"}', '',
                     '2026-01-02T03:04:05Z', '2026-01-02T03:04:06.5Z'),
                    ('b', 'gov-vote', 'failed', 'null', 'no keyring',
                     '2026-01-02T03:04:05.1Z', '2026-01-02T03:04:07Z'),
                    ('c', 'snapshot-upload', 'running', NULL, '',
                     '2026-01-02T03:04:05.09Z', NULL);",
        )
        .expect("rows");
    if version >= 4 {
        let sql = "UPDATE task_results SET run = 3, result = '{\"height\":7}' WHERE id = 'b'";
        connection.execute_batch(sql).expect("a result");
    }
    if version >= 5 {
        let sql = "INSERT INTO tx_markers VALUES ('b', 'hash', x'0102', 1, 2, 'c', 'then')";
        connection.execute_batch(sql).expect("a marker");
    }
}

#[tokio::test]
async fn a_store_of_every_version_is_opened_kept_and_served() {
    for version in 1..=5 {
        let folder = Folder::new();
        let path = folder.home().store();
        original(&path, version);
        for _ in 0..2 {
            let store = Store::open(&path).expect("a store");
            let tasks = store.list(100).await.expect("tasks");
            let ids: Vec<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
            assert_eq!(
                ids,
                ["b", "c", "a"],
                "version {version}: by time, not by text"
            );
            let [b, c, a] = tasks.as_slice() else {
                panic!()
            };
            assert_eq!(a.status, TaskStatus::Completed);
            assert_eq!(
                a.params,
                *json!({"mode": "full"}).as_object().expect("an object")
            );
            assert_eq!(
                a.completed_at.map(|it| it.to_string()).as_deref(),
                Some("2026-01-02T03:04:06.5Z")
            );
            assert_eq!(
                (b.status, b.error.as_str()),
                (TaskStatus::Failed, "no keyring")
            );
            assert!(b.params.is_empty());
            assert_eq!(b.run, if version >= 4 { 3 } else { 1 });
            assert_eq!(b.result, (version >= 4).then(|| json!({"height": 7})));
            assert_eq!((c.status, c.completed_at), (TaskStatus::Running, None));
            let running = store.running().await.expect("tasks");
            assert_eq!(running.len(), 1);
            store.close();
        }
        // The original opens it again: its version, its columns, its marker.
        let connection = Connection::open(&path).expect("a file");
        let found: i64 = connection
            .query_row("PRAGMA user_version", [], |row| row.get(0))
            .expect("a version");
        assert_eq!(found, VERSION);
        let columns = "INSERT INTO task_results (id, type, status, params, error, submitted_at, \
                       completed_at, run, result) VALUES ('d','x','completed','null','','t',NULL,1,NULL)";
        connection
            .execute_batch(columns)
            .expect("the original's columns");
        let marker = connection.query_row("SELECT tx_hash FROM tx_markers", [], |row| {
            row.get::<_, String>(0)
        });
        assert_eq!(marker.ok(), (version >= 5).then(|| "hash".to_owned()));
    }
}

#[tokio::test]
async fn a_task_is_kept_with_everything_it_has() {
    let folder = Folder::new();
    let store = Store::open(&folder.home().store()).expect("a store");
    let mut task = incoming(
        "a",
        TaskType::ConfigPatch,
        json!({"files": {"app.toml": null}}),
    );
    task.by = Some("system:serviceaccount:a:b".into());
    store.submit(task.clone(), false).await.expect("submitted");
    let kept = store.get("a").await.expect("an answer").expect("a task");
    assert_eq!(kept.submitted_by, task.by);
    assert_eq!(
        (kept.params.clone(), kept.submitted_at),
        (task.params, task.at)
    );
    assert_eq!((kept.result.clone(), kept.completed_at), (None, None));
    for result in [Some(json!({"a": [1, null, "<&>"]})), None] {
        let done = TaskResult {
            status: TaskStatus::Failed,
            result: result.clone(),
            error: "why".into(),
            completed_at: Some(Timestamp::now()),
            ..store.get("a").await.expect("an answer").expect("a task")
        };
        assert!(store.finish(done.clone()).await.expect("finished"));
        assert_eq!(store.get("a").await.expect("an answer"), Some(done));
        store
            .submit(incoming("a", TaskType::ConfigPatch, json!({})), false)
            .await
            .expect("again");
    }
    assert_eq!(store.get("none").await.expect("an answer"), None);
    assert!(store.delete("a").await.expect("deleted"));
    assert!(!store.delete("a").await.expect("deleted"));
}

#[tokio::test]
async fn what_came_of_an_older_run_or_of_a_deleted_task_is_not_written() {
    let folder = Folder::new();
    let store = Store::open(&folder.home().store()).expect("a store");
    let mut done = row("a", "mark-ready", TaskStatus::Completed);
    assert!(
        !store.finish(done.clone()).await.expect("an answer"),
        "no such task"
    );
    let task = incoming("a", TaskType::MarkReady, json!({}));
    store.submit(task, false).await.expect("submitted");
    done.run = 7;
    assert!(!store.finish(done).await.expect("an answer"), "another run");
    assert_eq!(
        store
            .get("a")
            .await
            .expect("an answer")
            .expect("a task")
            .status,
        TaskStatus::Running
    );
}

#[tokio::test]
async fn a_closed_store_says_so() {
    let folder = Folder::new();
    let store = Store::open(&folder.home().store()).expect("a store");
    store.beat().await.expect("a beat");
    store.close();
    let error = store.beat().await.expect_err("closed");
    assert_eq!(
        error.to_string(),
        "the store is closed: the sidecar is ending"
    );
    assert!(store.get("a").await.is_err());
}

#[test]
fn times_are_written_so_that_texts_sort_as_times_do() {
    let texts = [
        "2026-01-02T03:04:05Z",
        "2026-01-02T03:04:05.09Z",
        "2026-01-02T03:04:05.1Z",
    ];
    let written = texts.map(|text| time_text(text.parse().expect("a time")));
    assert!(written.is_sorted(), "{written:?}");
    assert!(written.iter().all(|text| text.len() == 30), "{written:?}");
}

#[tokio::test]
async fn old_tasks_are_forgotten_but_never_a_running_one_or_the_newest_of_its_type() {
    let folder = Folder::new();
    let path = folder.home().store();
    Store::open(&path).expect("a store").close();
    let connection = Connection::open(&path).expect("a file");
    let insert = "INSERT INTO task_results (id, type, status, params, submitted_at, run) \
                  VALUES (?1, ?2, ?3, 'null', ?4, 1)";
    let time = |second| time_text(Timestamp::from_second(second).expect("a time"));
    let old = [
        ("hold", "mark-not-ready", "failed"),
        ("loop", "snapshot-upload", "running"),
        ("older", "config-patch", "completed"),
    ];
    for (second, (id, type_, status)) in old.iter().enumerate() {
        let second = i64::try_from(second).expect("small");
        connection
            .execute(insert, (id, type_, status, time(second)))
            .expect("a row");
    }
    connection.execute_batch("BEGIN").expect("begun");
    for index in 0..KEEP + 5 {
        let second = 100 + i64::try_from(index).expect("small");
        let id = format!("t{index}");
        connection
            .execute(insert, (id, "config-patch", "completed", time(second)))
            .expect("a row");
    }
    connection.execute_batch("COMMIT").expect("committed");
    drop(connection);
    let store = Store::open(&path).expect("a store");
    let left = store.list(KEEP * 2).await.expect("tasks");
    let has = |id: &str| left.iter().any(|task| task.id == id);
    assert!(has("hold") && has("loop"));
    assert!(!has("older") && !has("t0") && !has("t4") && has("t5"));
    assert_eq!(left.len(), KEEP + 2);
}

fn refusal(path: &Path) -> String {
    Store::open(path).expect_err("refused").to_string()
}

#[test]
fn a_file_that_is_no_store_is_refused_by_name_and_left_alone() {
    let folder = Folder::new();
    let path = folder.home().store();
    let garbage = b"this is not a database, but it is long enough to look like a header".repeat(20);
    std::fs::write(&path, &garbage).expect("a file");
    let sentence = refusal(&path);
    assert!(
        sentence.contains(path.to_str().expect("a path")),
        "{sentence}"
    );
    assert!(sentence.contains("move it"), "{sentence}");
    assert_eq!(std::fs::read(&path).expect("a file"), garbage);
}

#[test]
fn a_damaged_store_is_refused_and_left_alone() {
    let folder = Folder::new();
    let path = folder.home().store();
    original(&path, 5);
    let mut bytes = std::fs::read(&path).expect("a file");
    let end = bytes.len();
    bytes[4096..end].fill(0xa5);
    std::fs::write(&path, &bytes).expect("a file");
    let sentence = refusal(&path);
    assert!(sentence.contains("damaged"), "{sentence}");
    assert_eq!(std::fs::read(&path).expect("a file"), bytes);
}

#[test]
fn a_store_of_a_version_to_come_is_refused_and_left_alone() {
    let folder = Folder::new();
    let path = folder.home().store();
    original(&path, 5);
    let connection = Connection::open(&path).expect("a file");
    connection
        .pragma_update(None, "user_version", 6)
        .expect("a version");
    drop(connection);
    let before = std::fs::read(&path).expect("a file");
    let sentence = refusal(&path);
    assert!(sentence.contains("version is 6"), "{sentence}");
    assert_eq!(std::fs::read(&path).expect("a file"), before);
}

#[test]
fn a_store_that_cannot_be_made_is_refused_by_name() {
    let folder = Folder::new();
    let sentence = refusal(&folder.0.join("nowhere").join("sidecar.db"));
    assert!(sentence.contains("nowhere"), "{sentence}");
}
