//! A sidecar with buckets, and servers that have too much to do.

use super::gateway::Store;
use super::stage::{Sidecar, until};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const CHAIN: &str = "play-1";

/// A sidecar of a chain whose two buckets are this one; it does not run yet.
pub(crate) fn beside(test: &str, store: &Store) -> Sidecar {
    let bucket = store.bucket();
    Sidecar::idle(test)
        .with("SEI_CHAIN_ID", CHAIN)
        .with("SEI_GENESIS_BUCKET", &bucket.name)
        .with("SEI_GENESIS_REGION", &bucket.region)
        .with_all(store.variables())
}

/// The same, running.
pub(crate) fn running(test: &str, store: &Store) -> Sidecar {
    let mut sidecar = beside(test, store);
    sidecar.run();
    sidecar
}

/// Puts an object where a back end has it.
pub(crate) fn put(store: &Store, key: &str, bytes: impl AsRef<[u8]>) {
    let path = store.folder.join(key);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    std::fs::write(path, bytes).expect("an object");
}

/// What a task that fails says.
pub(crate) fn failure(sidecar: &Sidecar, type_: &str, params: Value) -> (String, Value) {
    let task = sidecar.perform(type_, params);
    assert_eq!(task["status"], "failed", "{task}");
    let error = task["error"].as_str().expect("an error").to_owned();
    (error, task["result"].clone())
}

pub(crate) fn sha256(bytes: impl AsRef<[u8]>) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is left beside its place.
pub(crate) fn unfinished(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    entries
        .map(|entry| entry.expect("an entry").file_name())
        .map(|name| name.to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".keelson-new"))
        .collect()
}

/// A server that answers so many requests with one code and then leads to another port.
pub(crate) fn refusing(port: u16, times: u64, status: u16, code: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let own = listener.local_addr().expect("an address").port();
    let left = Arc::new(AtomicU64::new(times));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let left = Arc::clone(&left);
            std::thread::spawn(move || answer(stream, port, &left, status, code));
        }
    });
    own
}

fn answer(
    mut client: TcpStream,
    port: u16,
    left: &AtomicU64,
    status: u16,
    code: &str,
) -> Option<()> {
    let less = |it: u64| it.checked_sub(1);
    if left
        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, less)
        .is_ok()
    {
        let _ = client.read(&mut [0; 16 * 1024]);
        let body = format!("<Error><Code>{code}</Code><Message>so it is</Message></Error>");
        let length = body.len();
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close");
        return write!(client, "{head}\r\n\r\n{body}").ok();
    }
    let mut server = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let (mut from, mut to) = (client.try_clone().ok()?, server.try_clone().ok()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(std::net::Shutdown::Write);
    });
    let _ = std::io::copy(&mut server, &mut client);
    client.shutdown(std::net::Shutdown::Both).ok()
}

pub(crate) fn submit(sidecar: &Sidecar, type_: &str) -> String {
    let reply = sidecar.post(&json!({ "type": type_ }));
    assert_eq!(reply.status, 201, "{reply:?}");
    reply.json()["id"].as_str().expect("an id").to_owned()
}

/// What a running task shows.
pub(crate) fn shown(sidecar: &Sidecar, id: &str) -> Value {
    let task = sidecar.get(&format!("/v0/tasks/{id}")).json();
    assert_eq!(task["status"], "running", "{task}");
    task["result"].clone()
}

/// Waits until a task knows how much there is to do.
pub(crate) fn at_work(sidecar: &Sidecar, id: &str) {
    until("the task's progress", || {
        shown(sidecar, id)["progress"]["total"].as_u64()
    });
}

/// A snapshot of so many chunks of so many bytes, as a node writes it.
pub(crate) fn snapshot(home: &Path, height: u64, chunks: usize, size: usize) -> PathBuf {
    let folder = home.join(format!("data/snapshots/{height}/3"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let mut random = std::fs::File::open("/dev/urandom").expect("a source");
    for chunk in 0..chunks {
        let mut bytes = vec![0; size];
        random.read_exact(&mut bytes).expect("bytes");
        std::fs::write(folder.join(format!("{chunk:02}")), bytes).expect("a chunk");
    }
    folder
}

/// The database a node keeps beside its snapshots.
pub(crate) fn metadata(home: &Path) {
    let folder = home.join("data/snapshots/metadata.db");
    std::fs::create_dir_all(&folder).expect("a folder");
    for (name, text) in [
        ("CURRENT", "MANIFEST-000001\n"),
        ("000001.log", "a log"),
        ("LOCK", ""),
    ] {
        std::fs::write(folder.join(name), text).expect("a file");
    }
}

/// Every object of a bucket, as those see it who list it.
pub(crate) fn keys(store: &Store) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let listing = async { store.open().list("").await };
    let listed = runtime.expect("a runtime").block_on(listing);
    let listed = listed.expect("a listing");
    listed.into_iter().map(|it| it.key).collect()
}

/// Unpacks an archive of the bucket as anybody would.
pub(crate) fn unpack(store: &Store, height: u64, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).expect("a folder");
    let archive = store.folder.join(archive(height));
    let mut tar = Command::new("tar");
    let status = tar.arg("xzf").arg(archive).arg("-C").arg(to).status();
    assert!(status.expect("tar").success());
}

pub(crate) fn archive(height: u64) -> String {
    format!("{CHAIN}/state-sync/{height}.tar.gz")
}

/// What an unpacked archive must be: the snapshot, whole, and what is said of it.
pub(crate) fn same(home: &Path, unpacked: &Path, names: &[&str]) {
    for name in names {
        let (one, other) = (home.join("data/snapshots").join(name), unpacked.join(name));
        let compared = Command::new("diff").arg("-r").arg(one).arg(other).output();
        let compared = compared.expect("diff");
        assert!(compared.status.success(), "{compared:?}");
    }
    let mut found: Vec<String> = std::fs::read_dir(unpacked)
        .expect("a folder")
        .map(|it| {
            it.expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    found.sort();
    assert_eq!(found, names);
}

/// What is noted of the last upload.
pub(crate) fn noted(home: &Path) -> Option<Value> {
    let text = std::fs::read_to_string(home.join(".sei-sidecar-last-upload.json")).ok()?;
    Some(serde_json::from_str(&text).expect("a note"))
}

/// The value of a series.
pub(crate) fn series(sidecar: &Sidecar, name: &str) -> Option<i64> {
    let body = sidecar.get("/v0/metrics").body;
    let line = body.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().parse().expect("a number"))
}

pub(crate) fn outcomes(sidecar: &Sidecar, outcome: &str) -> i64 {
    let name =
        format!("seictl_snapshot_upload_outcome_total{{chain=\"{CHAIN}\",outcome=\"{outcome}\"}}");
    series(sidecar, &name).unwrap_or_default()
}

/// A gauge of uploads.
pub(crate) fn gauge(sidecar: &Sidecar, name: &str) -> Option<i64> {
    series(
        sidecar,
        &format!("seictl_snapshot_upload_{name}{{chain=\"{CHAIN}\"}}"),
    )
}
