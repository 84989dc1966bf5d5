//! Starting, refusing to, and ending.

use super::stage::{PROGRAM, Sidecar, until};
use nix::sys::signal::Signal;
use serde_json::json;
use std::process::Command;

#[test]
fn everything_that_is_missing_is_named_at_once() {
    let mut sidecar = Sidecar::idle("missing")
        .with("SEI_CHAIN_ID", "")
        .with("SEI_SNAPSHOT_REGION", "");
    let log = sidecar.refuses();
    assert!(
        log.contains("not set: SEI_CHAIN_ID, SEI_SNAPSHOT_REGION"),
        "{log}"
    );
    assert!(!sidecar.home.join("sidecar.db").exists());
}

#[test]
fn a_store_that_is_damaged_is_named_and_left_alone() {
    let mut sidecar = Sidecar::idle("damaged");
    let path = sidecar.home.join("sidecar.db");
    let garbage = b"not a store ".repeat(500);
    std::fs::write(&path, &garbage).expect("a file");
    let log = sidecar.refuses();
    assert!(
        log.contains("sidecar.db") && log.contains("move it"),
        "{log}"
    );
    assert_eq!(std::fs::read(&path).expect("a file"), garbage);
}

/// Runs the program in a mount namespace of its own, where its home is a small volume.
fn on_a_volume(sidecar: &Sidecar, prepare: &str) -> (bool, String) {
    let home = sidecar.home.display();
    let script = format!(
        "mount -t tmpfs -o size=64k none {home} && {prepare} && exec timeout 20 {PROGRAM} serve"
    );
    let status = sidecar
        .command("unshare")
        .args(["-m", "sh", "-c", &script])
        .status();
    (status.expect("unshare").success(), sidecar.log())
}

#[test]
fn a_full_volume_is_named() {
    let sidecar = Sidecar::idle("full");
    let fill = format!("head -c 60000 /dev/zero > {}/fill", sidecar.home.display());
    let (well, log) = on_a_volume(&sidecar, &fill);
    assert!(!well);
    assert!(log.contains("make room on the volume"), "{log}");
}

#[test]
fn a_read_only_volume_is_named() {
    let sidecar = Sidecar::idle("read-only");
    let home = sidecar.home.display();
    let folders = format!("mkdir {home}/config {home}/data && mount -o remount,ro {home}");
    let (well, log) = on_a_volume(&sidecar, &folders);
    assert!(!well);
    assert!(log.contains("sidecar.db cannot be opened"), "{log}");
}

#[test]
fn a_sidecar_without_its_port_takes_nothing_up() {
    let first = Sidecar::start("port-first");
    let mut second = Sidecar::idle("port-second");
    second.port = first.port;
    let log = second.refuses();
    assert!(log.contains("is another sidecar there?"), "{log}");
    assert!(!log.contains("the gate is"), "{log}");
}

#[test]
fn it_ends_in_peace_and_comes_back_with_what_it_knew() {
    for signal in [Signal::SIGTERM, Signal::SIGINT] {
        let mut sidecar = Sidecar::start(&format!("peace-{signal}"));
        let task = sidecar.perform("config-patch", json!({"files": {"app.toml": {"a": 1}}}));
        sidecar.signal(signal);
        assert!(sidecar.exit().success());
        assert!(sidecar.log().contains("\"ended\""), "{}", sidecar.log());
        let wal = sidecar.home.join("sidecar.db-wal");
        assert!(!wal.exists(), "the log was brought back into the file");
        sidecar.run();
        assert_eq!(sidecar.get("/v0/tasks").json(), json!([task]));
    }
}

#[test]
fn an_end_does_not_wait_for_clients_that_rest() {
    let mut sidecar = Sidecar::start("resting");
    let resting = sidecar.connect().expect("a connection");
    sidecar.signal(Signal::SIGTERM);
    let begun = std::time::Instant::now();
    assert!(sidecar.exit().success());
    assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    drop(resting);
}

#[test]
fn it_is_called_by_the_originals_name_too_and_says_its_version() {
    let mut sidecar = Sidecar::idle("seictl");
    let link = sidecar.home.join("seictl");
    std::os::unix::fs::symlink(PROGRAM, &link).expect("a link");
    let mut child = sidecar
        .command(link.to_str().expect("a path"))
        .arg("serve")
        .spawn()
        .expect("seictl");
    until("an answer", || {
        sidecar.try_call("GET", "/v0/healthz", "", "")
    });
    child.kill().expect("killed");
    child.wait().expect("ended");
    let version = Command::new(PROGRAM)
        .arg("--version")
        .output()
        .expect("a version");
    let text = String::from_utf8_lossy(&version.stdout).into_owned();
    assert_eq!(
        text,
        format!("keelson-sidecar {}\n", env!("CARGO_PKG_VERSION"))
    );
    sidecar.kill();
}

#[test]
fn what_a_dead_sidecar_left_unfinished_is_swept_away() {
    let mut sidecar = Sidecar::idle("swept");
    std::fs::create_dir_all(sidecar.home.join("config")).expect("a folder");
    let left = sidecar.home.join("config/app.toml.keelson-new");
    std::fs::write(&left, "half").expect("a file");
    sidecar.run();
    assert!(!left.exists());
}
