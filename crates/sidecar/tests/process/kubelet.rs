//! What the kubelet and the node's container do in a pod: a script waits at the gate and becomes seid,
//! and is started again when it has ended. Beside it the sidecar, with the same home.

use super::node::{Node, P2P, PATIENCE, RPC, program};
use super::stage::{Sidecar, until};
use serde_json::json;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// The node's container: the question at the gate is the one the operator's script asks.
const SCRIPT: &str = r#"
until exec 3<>"/dev/tcp/127.0.0.1/$0" &&
      printf 'GET /v0/healthz HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3 &&
      read -r line <&3 && [[ $line == *200* ]]
do read -r -t 0.1 _; done 2> /dev/null
exec 3<&-
exec "$@""#;

/// A pod with one node, the only validator of its chain.
pub(crate) struct Pod {
    pub(crate) sidecar: Sidecar,
    pub(crate) node: Node,
    ends: Arc<Mutex<Vec<ExitStatus>>>,
    over: Arc<AtomicBool>,
    kubelet: Option<JoinHandle<()>>,
}

impl Pod {
    /// A pod whose gate is closed.
    pub(crate) fn start(name: &str) -> Self {
        let node = Node::validator(name, "pod");
        let mut sidecar = beside(node.home.clone(), name).with("KEELSON_SEID_RPC", &node.rpc());
        sidecar.run();
        let (ends, over) = (Arc::default(), Arc::new(AtomicBool::new(false)));
        let container = container(&node, sidecar.port);
        let kubelet = std::thread::spawn({
            let (ends, over) = (Arc::clone(&ends), Arc::clone(&over));
            move || keep(container, &ends, &over)
        });
        Self {
            sidecar,
            node,
            ends,
            over,
            kubelet: Some(kubelet),
        }
    }

    /// How the node's process ended, each time it did; waits until it did so often.
    pub(crate) fn ends(&self, times: usize) -> Vec<Option<i32>> {
        until("the end of the node", || {
            let ends = self.ends.lock().expect("ends");
            let codes: Vec<_> = ends.iter().map(ExitStatus::code).collect();
            (codes.len() >= times).then_some(codes)
        })
    }

    /// Performs a task that may have to wait for the node.
    pub(crate) fn completes(&self, type_: &str) {
        let reply = self.sidecar.post(&json!({"type": type_}));
        self.completed(reply.json()["id"].as_str().expect("an id"));
    }

    /// Waits for the good end of a task that waits for the node.
    pub(crate) fn completed(&self, id: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let task = self.sidecar.get(&format!("/v0/tasks/{id}")).json();
            match task["status"].as_str() {
                Some("completed") => return,
                Some("running") => assert!(Instant::now() < deadline, "{task}"),
                _ => panic!("{task}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for a block.
    pub(crate) fn reaches(&self, height: u64) -> u64 {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let seen = self.node.height();
            if let Some(seen) = seen.filter(|it| *it >= height) {
                return seen;
            }
            let log = self.node.log();
            assert!(
                Instant::now() < deadline,
                "block {height}, not {seen:?}: {log}"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Pod {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(kubelet) = self.kubelet.take() {
            let _ = kubelet.join();
        }
    }
}

/// A sidecar over a home that is there already.
fn beside(home: PathBuf, name: &str) -> Sidecar {
    let mut sidecar = Sidecar::idle(name);
    std::fs::remove_dir_all(&sidecar.home).expect("an empty folder");
    sidecar.home = home;
    sidecar
}

fn container(node: &Node, port: u16) -> Command {
    let log = std::fs::File::create(node.home.join("seid.log")).expect("a log");
    // Whatever becomes of the test, the node ends with the thread that started it.
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "KILL", "bash", "-c", SCRIPT])
        .arg(port.to_string())
        .arg(program())
        .args(["start", "--home"])
        .arg(&node.home)
        .arg(format!("--p2p.laddr=tcp://{}:{P2P}", node.address))
        .arg(format!("--rpc.laddr=tcp://{}:{RPC}", node.address))
        .args(["--rpc.pprof_laddr=", "--grpc.enable=false"])
        .args(["--api.enable=false", "--log_no_color"])
        .stdin(Stdio::null())
        .stdout(log.try_clone().expect("a log"))
        .stderr(log);
    command
}

fn keep(mut container: Command, ends: &Mutex<Vec<ExitStatus>>, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let mut child = container.spawn().expect("a container");
        let ended = loop {
            match child.try_wait().expect("a child") {
                Some(status) => break status,
                None if over.load(Ordering::Relaxed) => {
                    let _ = child.kill();
                    let _ = child.wait();
                    return;
                }
                None => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        ends.lock().expect("ends").push(ended);
    }
}
