//! `keelson-testbed` as a person types it.

use keelson_testbed::{Transcript, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

fn testbed(name: &str, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_keelson-testbed"));
    command.args(["--name", name]).args(words);
    command
}

fn said(output: &Output) -> String {
    let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
    String::from_utf8_lossy(&both).into_owned()
}

fn run(name: &str, words: &[&str]) -> (bool, String) {
    let output = testbed(name, words).output().expect("the command");
    (output.status.success(), said(&output))
}

/// The same with both of its streams in the order a person sees them.
fn typed(name: &str, word: &str) -> (bool, String) {
    let program = env!("CARGO_BIN_EXE_keelson-testbed");
    let line = format!("exec 2>&1; exec {program} --name {name} {word}");
    let output = Command::new("sh").args(["-c", &line]).output();
    let output = output.expect("the command");
    (output.status.success(), said(&output))
}

/// The first steps of a new user, on a cluster of this name that is up.
fn first_steps(name: &str, up: &str) -> Transcript {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let kubeconfig = PathBuf::from(run(name, &["kubeconfig", "--path"]).1.trim());
    let cache = keelson_testbed::cache_folder().display().to_string();
    // The screen names the folder of kubectl, which is called after all that is in it.
    let programs = up
        .split_once(" PATH=")
        .and_then(|(_, it)| it.split_once(':'));
    let programs = Path::new(programs.expect("a folder of programs").0);
    let path = std::env::var("PATH").expect("a path");
    let path = format!("{}:{path}", programs.display());
    // What the Makefile runs, for a cluster of our own.
    let make = format!("{} --name {name}", env!("CARGO_BIN_EXE_keelson-testbed"));
    let folder = programs.file_name().expect("a name").to_string_lossy();
    // Reminders come as often as the machine is slow.
    let lines = up.lines().filter(|line| !line.ends_with(" so far"));
    let up: String = lines.map(|line| format!("{line}\n")).collect();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("its address").port().to_string();
    Transcript::of(root.join("docs/first-steps.md"), root)
        .program("make", Path::new(&make))
        .variable("PATH", Path::new(&path))
        .variable("KUBECONFIG", &kubeconfig)
        .stands_for("18443", &port)
        .shown_as(name, "local")
        .shown_as(&folder, "…")
        .shown_as(&cache, "~/.cache/keelson")
        .printed("make up", &up)
}

/// A name no other run uses, so that a person's own cluster is left alone.
fn unique(what: &str) -> String {
    format!("{what}-{}", std::process::id())
}

/// Whether the screen at the end shows the node at a block.
fn makes_blocks(said: &str, node: &str) -> bool {
    said.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        matches!(words[..], [name, "Running", block] if name == node && block.parse::<u64>().is_ok_and(|it| it > 0))
    })
}

/// What a second `up` could change: pods by their uids, what has a status that goes on by the
/// generation of its spec, and everything else by its version.
fn made(name: &str) -> String {
    let kinds = "configmaps,secrets,services,clusterissuers,crds";
    let versions = "{range .items[*]}{.kind}/{.metadata.name}={.metadata.resourceVersion} {end}";
    let uids = "{range .items[*]}{.metadata.name}={.metadata.uid} {end}";
    let specs = "{range .items[*]}{.metadata.name}={.metadata.generation} {end}";
    let list = |kinds: &str, path: &str| {
        let path = format!("--output=jsonpath={path}");
        let words = ["kubectl", "get", kinds, "--all-namespaces", &path];
        let (ok, said) = run(name, &words);
        assert!(ok, "{said}");
        said
    };
    [
        list(kinds, versions),
        list("pods", uids),
        list("seinodes,statefulsets,deployments", specs),
    ]
    .concat()
}

#[test]
fn up_is_idempotent_and_down_leaves_nothing() {
    let name = unique("command");
    let (ok, said) = run(&name, &["status"]);
    assert!(ok && said.contains("is down"), "{said}");
    let (ok, said) = run(&name, &["kubectl", "get", "nodes"]);
    assert!(!ok && said.contains("`make up` brings it up"), "{said}");

    let _leftover = Leftover(&name);
    let (ok, first) = typed(&name, "up");
    assert!(ok && first.contains("is up"), "{first}");
    let said = &first;
    for node in ["validator", "full-0", "full-1"] {
        assert!(makes_blocks(said, node), "{node} makes no blocks: {said}");
    }
    let before = made(&name);
    let (ok, kubeconfig) = run(&name, &["kubeconfig"]);
    assert!(
        ok && kubeconfig.contains("https://127.0.0.1:"),
        "{kubeconfig}"
    );
    let (ok, said) = run(&name, &["up"]);
    assert!(ok && said.contains("is up already"), "{said}");
    assert_eq!(
        run(&name, &["kubeconfig"]).1,
        kubeconfig,
        "a second `up` changes nothing"
    );
    assert_eq!(made(&name), before, "a second `up` changes nothing");

    let (ok, said) = run(&name, &["kubectl", "get", "nodes", "--output", "name"]);
    assert!(ok && said.trim() == "node/node-1", "{said}");
    let (ok, said) = run(&name, &["kubectl", "get", "crds", "--output", "name"]);
    for kind in [
        "seinodes.sei.io",
        "nmstates.nmstate.io",
        "certificates.cert-manager.io",
    ] {
        assert!(ok && said.contains(kind), "{kind} is missing: {said}");
    }
    let (ok, said) = run(&name, &["status"]);
    for component in ["kube-apiserver", "kubelet", "cert-manager"] {
        assert!(
            ok && said.contains(component),
            "{component} is missing: {said}"
        );
    }
    assert!(!said.contains("not running"), "{said}");

    let folder = PathBuf::from(run(&name, &["kubeconfig", "--path"]).1.trim());
    // Everything the page has people do, and the end.
    let ran = first_steps(&name, &first).replay();
    assert!(ran >= 10, "the page has {ran} commands");
    assert!(!folder.exists(), "its files are removed");
    let (ok, said) = run(&name, &["down"]);
    assert!(ok && said.contains("There was no cluster"), "{said}");
}

/// Takes a cluster down that a test which failed has left.
struct Leftover<'a>(&'a str);

impl Drop for Leftover<'_> {
    fn drop(&mut self) {
        let _ = testbed(self.0, &["down"]).output();
    }
}

#[tokio::test]
async fn ctrl_c_in_the_middle_of_up_leaves_nothing() {
    let name = unique("interrupted");
    let _leftover = Leftover(&name);
    let child = testbed(&name, &["up"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command");
    let up = Pid::from_raw(child.id().cast_signed());
    // What is missing is built first.
    let folder = until(
        "its first component",
        Duration::from_secs(300),
        async || {
            let folders = std::fs::read_dir(clusters()).map_err(|error| error.to_string())?;
            let mut folders = folders.flatten().map(|entry| entry.path());
            let ours = folders
                .find(|folder| folder.ends_with(&name))
                .ok_or("no folder yet")?;
            let started = ours.join("pids/kube-apiserver").exists();
            if started {
                Ok(ours)
            } else {
                Err("no API server yet".to_owned())
            }
        },
    )
    .await
    .expect("a cluster that starts");

    kill(up, Signal::SIGINT).expect("a signal");
    let output = tokio::task::spawn_blocking(|| child.wait_with_output()).await;
    let output = output.expect("a thread").expect("its end");
    assert!(!output.status.success());
    assert!(said(&output).contains("interrupted"), "{}", said(&output));
    assert!(!folder.exists(), "its files are removed");
    let (_, said) = run(&name, &["status"]);
    assert!(said.contains("is down"), "{said}");
}

/// Where the clusters' folders are, as the command itself finds it.
fn clusters() -> PathBuf {
    let home = std::env::var("HOME").expect("a home");
    let cache = std::env::var("KEELSON_CACHE").unwrap_or_else(|_| format!("{home}/.cache/keelson"));
    PathBuf::from(cache).join("clusters")
}
