//! Processes found, held and ended.

use super::puppet::{POLITE, Puppet, SLOW, STUBBORN};
use keelson_sidecar::home::Home;
use keelson_sidecar::process::{Found, Insist, Node, Processes, Trouble};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(300);

fn home(test: &str) -> PathBuf {
    std::env::temp_dir().join(format!("keelson-process-{test}-{}", std::process::id()))
}

fn find(home: &PathBuf) -> Found {
    Processes::of(&Home::at(home)).find().expect("a look")
}

fn only(home: &PathBuf) -> Node {
    let mut nodes = find(home).nodes;
    assert_eq!(nodes.len(), 1, "{nodes:?}");
    nodes.remove(0)
}

#[tokio::test]
async fn the_node_of_a_home_is_found_and_ended_and_no_other() {
    let (mine, others) = (home("mine"), home("others"));
    let mut puppet = Puppet::start(&mine, POLITE);
    let mut other = Puppet::start(&others, POLITE);
    let found = find(&mine);
    let pids: Vec<i32> = found.nodes.iter().map(|node| node.pid).collect();
    assert_eq!(pids, [puppet.pid()]);
    assert!(found.others.contains(&(other.pid(), others)), "{found:?}");
    for node in found.nodes {
        node.end(LONG, Insist::Never).await.expect("an end");
    }
    assert!(!puppet.is_alive());
    assert!(other.is_alive());
    assert!(find(&mine).nodes.is_empty());
}

#[tokio::test]
async fn a_node_that_needs_time_to_end_has_it() {
    let home = home("slow");
    let mut puppet = Puppet::start(&home, SLOW);
    only(&home).end(LONG, Insist::Kill).await.expect("an end");
    let status = puppet.child.wait().expect("a child");
    assert_eq!(status.code(), Some(0), "{status:?}");
    assert!(puppet.folder.join("ended").exists());
}

#[tokio::test]
async fn a_node_that_does_not_end_is_named_and_left_alone() {
    let home = home("left");
    let mut puppet = Puppet::start(&home, STUBBORN);
    let trouble = only(&home).end(SHORT, Insist::Never).await;
    let trouble = trouble.expect_err("it does not end");
    let sentence = format!(
        "process {} has not ended within 0 s after SIGTERM",
        puppet.pid()
    );
    assert_eq!(trouble.to_string(), sentence);
    assert!(puppet.is_alive());
}

#[tokio::test]
async fn a_node_that_does_not_end_is_killed_where_the_caller_insists() {
    let home = home("killed");
    let mut puppet = Puppet::start(&home, STUBBORN);
    only(&home).end(SHORT, Insist::Kill).await.expect("an end");
    let status = puppet.child.wait().expect("a child");
    assert_eq!(status.signal(), Some(9), "{status:?}");
}

#[tokio::test]
async fn a_process_that_ended_and_was_not_collected_is_gone() {
    let home = home("zombie");
    let puppet = Puppet::start(&home, POLITE);
    let before = only(&home);
    only(&home).end(LONG, Insist::Never).await.expect("an end");
    // Nobody has waited for the child: it is still listed.
    let status = std::fs::read_to_string(format!("/proc/{}/status", puppet.pid()));
    assert!(status.expect("a status").contains("State:\tZ"));
    assert!(before.is_gone());
    before.end(LONG, Insist::Never).await.expect("gone already");
    assert!(find(&home).nodes.is_empty());
}

#[test]
fn numbers_of_another_namespace_are_not_used() {
    let home = home("namespace");
    let listed = home.join("self");
    std::fs::create_dir_all(&listed).expect("a folder");
    std::fs::write(listed.join("status"), "NSpid:\t31\t7\n").expect("a file");
    let processes = Processes::listed_in(&home, &Home::at("/sei"));
    let foreign = processes.find();
    std::fs::remove_dir_all(&home).expect("no folder");
    assert!(
        matches!(foreign, Err(Trouble::Foreign { .. })),
        "{foreign:?}"
    );
    let nowhere = processes.find();
    assert!(
        matches!(nowhere, Err(Trouble::Unlisted { .. })),
        "{nowhere:?}"
    );
}

#[test]
fn a_number_that_was_given_to_another_process_is_not_signalled() {
    // In a process namespace of its own numbers can be chosen, and nobody else takes them.
    let program = std::env::current_exe().expect("this program");
    let output = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", "--kill-child"])
        .arg(program)
        .args([
            "--exact",
            "signals::within_a_namespace",
            "--ignored",
            "--nocapture",
        ])
        .output()
        .expect("unshare");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{output:?}"
    );
}

#[tokio::test]
#[ignore = "started by a_number_that_was_given_to_another_process_is_not_signalled"]
async fn within_a_namespace() {
    let home = home("reused");
    let mut first = Puppet::start(&home, POLITE);
    let (found, pid) = (only(&home), first.pid());
    first.child.kill().expect("a signal");
    first.child.wait().expect("an end");
    drop(first);
    let mut second = (0..100)
        .find_map(|_| {
            std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).expect("root");
            let next = Puppet::start(&home, POLITE);
            (next.pid() == pid).then_some(next)
        })
        .expect("the same number again");
    assert_eq!(only(&home).pid, pid, "it looks the same");
    found
        .end(LONG, Insist::Kill)
        .await
        .expect("the first is gone");
    assert!(second.is_alive());
}
