//! A sidecar with buckets, and servers that have too much to do.

use super::gateway::Store;
use super::stage::Sidecar;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) const CHAIN: &str = "play-1";

/// A sidecar of a chain whose two buckets are this one; it does not run yet.
pub(crate) fn beside(test: &str, store: &Store) -> Sidecar {
    let bucket = store.bucket();
    let mut sidecar = Sidecar::idle(test)
        .with("SEI_CHAIN_ID", CHAIN)
        .with("SEI_GENESIS_BUCKET", &bucket.name)
        .with("SEI_GENESIS_REGION", &bucket.region);
    for (name, value) in store.variables() {
        sidecar = sidecar.with(&name, &value);
    }
    sidecar
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
