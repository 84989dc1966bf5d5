//! The commands of the node's containers, run by the shells they name.
//!
//! The home is a folder of the test's, put in place of the one in the script; `seid` is a script that
//! says how it was called; the sidecar is a listener that is told what to answer.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use keelson_api::SeiNode;
use serde_json::json;

use super::world::{bootstrap_pod_of, changed, container, node, platform, pod_of, variable};

/// Seconds after which a script that waits for what will not come is ended.
const DEADLINE: &str = "60";

/// A folder with a `seid` in it, gone when the test ends.
struct Place(PathBuf);

impl Place {
    fn new(seid: &str) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("keelson-render-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(folder.join("home/config")).expect("a folder");
        let program = folder.join("seid");
        fs::write(&program, format!("#!/bin/sh\n{seid}\n")).expect("a program");
        let may_run = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&program, may_run).expect("permissions");
        Self(folder)
    }

    fn run(&self, command: &[String], chain: &str) -> Output {
        let home = self.0.join("home").display().to_string();
        let script = command[2].replace("/.sei", &home);
        let path = format!("{}:/usr/bin:/bin", self.0.display());
        let mut shell = Command::new("timeout");
        shell.args([DEADLINE, &command[0], &command[1], &script]);
        shell.env("PATH", path);
        shell.env("SEI_CHAIN_ID", chain).output().expect("a shell")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed is in the folder for what is temporary.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Answers one connection after the other, and ends with the last answer.
fn sidecar(answers: &'static [&'static str]) -> (u16, thread::JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let asked = thread::spawn(move || {
        let mut requests = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().expect("a connection");
            // To the end: what is left unread would turn the answer into a reset.
            let mut request = String::new();
            let mut byte = [0];
            while !request.ends_with("\r\n\r\n") && stream.read(&mut byte).expect("a byte") > 0 {
                request.push(char::from(byte[0]));
            }
            requests.push(request);
            stream.write_all(answer.as_bytes()).expect("an answer");
        }
        requests
    });
    (port, asked)
}

fn on_port(port: u16, mode: &str) -> SeiNode {
    changed(node(mode), "sidecar", json!({"port": port}))
}

const CLOSED: &str = "HTTP/1.0 503 Service Unavailable\r\n\r\n";
const OPEN: &str = "HTTP/1.0 200 OK\r\n\r\n";

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn the_node_starts_when_the_gate_opens_and_not_before() {
    let (port, asked) = sidecar(&[CLOSED, "", "nonsense 200\r\n", OPEN]);
    let pod = pod_of(&on_port(port, "fullNode"), &platform());
    let command = container(&pod, "seid").command.clone().expect("a command");
    let place = Place::new("echo called: \"$@\"; exit 7");
    let output = place.run(&command, "");
    let requests = asked.join().expect("the sidecar");
    assert!(
        requests
            .iter()
            .all(|it| it.starts_with("GET /v0/healthz HTTP/1.0\r\n"))
    );
    assert_eq!(output.status.code(), Some(7), "the shell becomes the node");
    let home = place.0.join("home");
    let call = format!("called: start --home {}\n", home.display());
    assert!(said(&output).ends_with(&call), "{}", said(&output));
}

#[test]
fn a_bootstrap_that_halts_at_its_height_is_a_success_and_nothing_else_is() {
    for (status, expected) in [(130, 0), (0, 0), (1, 1), (7, 7)] {
        let (port, asked) = sidecar(&[OPEN]);
        let pod = bootstrap_pod_of(&on_port(port, "fullNode"), &platform());
        let command = container(&pod, "seid").command.clone().expect("a command");
        let place = Place::new(&format!("echo called: \"$@\"; exit {status}"));
        let output = place.run(&command, "");
        asked.join().expect("the sidecar");
        assert!(
            said(&output).contains("--halt-height 1000\n"),
            "{}",
            said(&output)
        );
        assert_eq!(
            output.status.code(),
            Some(expected),
            "seid ended with {status}"
        );
    }
}

#[test]
fn a_home_is_made_once_and_a_chains_name_is_never_a_command() {
    let chain = r#"a"; touch "$HOME/x"; $(touch y) `touch z`"#;
    let object = changed(node("fullNode"), "chainId", json!(chain));
    let pod = pod_of(&object, &platform());
    let init = container(&pod, "seid-init");
    assert_eq!(variable(init, "SEI_CHAIN_ID"), Some(chain));
    let command = init.command.clone().expect("a command");
    assert!(!command[2].contains("touch"));
    assert!(!command[2].contains("$("), "Kubernetes would read it");

    let place = Place::new("for it; do echo \"[$it]\"; done");
    let output = place.run(&command, chain);
    let home = place.0.join("home");
    let expected = format!(
        "[init]\n[{chain}]\n[--chain-id]\n[{chain}]\n[--home]\n[{}]\n[--overwrite]\n",
        home.display()
    );
    assert_eq!(said(&output), expected);
    assert!(home.join("tmp").is_dir());

    fs::write(home.join("config/genesis.json"), "{}").expect("a file");
    let again = place.run(&command, chain);
    assert!(!said(&again).contains("[init]"));
    assert!(again.status.success());
}

#[test]
fn a_home_that_cannot_be_made_is_a_failure() {
    let pod = pod_of(&node("fullNode"), &platform());
    let command = container(&pod, "seid-init")
        .command
        .clone()
        .expect("a command");
    assert!(!Place::new("exit 3").run(&command, "a").status.success());
}
