//! Containers as the container runtime knows them: what a test looks at, and ends, with the API server
//! and the kubelet out of the way.

use crate::error::{Doing, Error};
use crate::node::ctr;
use crate::{Cluster, enclosure::Enclosure};
use nix::sys::signal::Signal;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(5);
/// What containerd marks containers of pods with.
const POD: &str = "io.kubernetes.pod.name";
const NAMESPACE: &str = "io.kubernetes.pod.namespace";
const NAME: &str = "io.kubernetes.container.name";

/// A container that runs. A sandbox is one, too, without a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Container {
    /// Its name in the pod; nothing for the sandbox.
    pub name: Option<String>,
    /// The runtime's name of it, another one after every restart.
    pub id: String,
    /// Its first process.
    pub process: Running,
}

/// A process, so that no other can be taken for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its number inside the cluster.
    pub pid: i32,
    /// When it was started, in the kernel's ticks since the machine was.
    pub started: u64,
}

/// The part of containerd's description that is of use here.
#[derive(Deserialize)]
struct Described {
    #[serde(rename = "Labels", default)]
    labels: BTreeMap<String, String>,
}

impl Cluster {
    /// The containers of a pod that run, in no particular order.
    pub fn containers(&self, namespace: &str, pod: &str) -> Result<Vec<Container>, Error> {
        let filter = format!("labels.\"{POD}\"=={pod},labels.\"{NAMESPACE}\"=={namespace}");
        let enclosure = self.enclosure();
        let listed = enclosure.output(ctr(&["containers", "list", "--quiet", &filter]))?;
        let running = tasks(&enclosure.output(ctr(&["tasks", "list"]))?);
        let mut containers = Vec::new();
        for id in listed.lines().map(str::trim).filter(|it| !it.is_empty()) {
            let Some(&pid) = running.get(id) else {
                continue;
            };
            let described = enclosure.output(ctr(&["containers", "info", id]))?;
            let described: Described =
                serde_json::from_str(&described).map_err(|error| Error::Command {
                    doing: format!("asking containerd about {id}"),
                    status: error.to_string(),
                    output: described,
                })?;
            // It may have ended since.
            if let Ok(started) = started(enclosure, pid) {
                containers.push(Container {
                    name: described.labels.get(NAME).cloned(),
                    id: id.to_owned(),
                    process: Running { pid, started },
                });
            }
        }
        Ok(containers)
    }

    /// One container of a pod, by its name.
    pub fn container(&self, namespace: &str, pod: &str, name: &str) -> Result<Container, Error> {
        let all = self.containers(namespace, pod)?;
        let found = all.into_iter().find(|it| it.name.as_deref() == Some(name));
        found.ok_or_else(|| Error::Command {
            doing: format!("looking for container {name} of pod {namespace}/{pod}"),
            status: "it does not run".into(),
            output: String::new(),
        })
    }

    /// Sends a signal to all processes of a container, behind the kubelet's back.
    pub fn signal(&self, container: &Container, signal: Signal) -> Result<(), Error> {
        let words = ["tasks", "kill", "--all", "--signal", signal.as_str()];
        let words = [&words[..], &[&container.id]].concat();
        self.enclosure().output(ctr(&words)).map(drop)
    }

    /// Runs a program in a container as what it runs as itself, and gives what it printed.
    pub fn exec(&self, container: &Container, words: &[&str]) -> Result<String, Error> {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test-{}-{number}", std::process::id());
        let run = ["tasks", "exec", "--exec-id", &name, &container.id];
        self.enclosure().output(ctr(&[&run[..], words].concat()))
    }

    /// The address of the pod a container belongs to, as its own network has it.
    pub fn address_of(&self, container: &Container) -> Result<IpAddr, Error> {
        let mut command = Command::new("nsenter");
        let pid = container.process.pid.to_string();
        command.args(["--target", &pid, "--net", "--"]);
        command.args(["ip", "-4", "-oneline", "address", "show", "dev", "eth0"]);
        let said = self.enclosure().output(command)?;
        address(&said).ok_or_else(|| Error::Command {
            doing: format!("looking for the address of container {}", container.id),
            status: "it has none".into(),
            output: said,
        })
    }

    /// A connection to an address inside: a pod's, or a Service's.
    pub fn connect(&self, to: SocketAddr) -> std::io::Result<TcpStream> {
        let connected = self
            .enclosure()
            .run(move || TcpStream::connect_timeout(&to, Duration::from_secs(1)))?;
        connected.set_read_timeout(Some(PATIENCE))?;
        connected.set_write_timeout(Some(PATIENCE))?;
        Ok(connected)
    }

    /// What an address inside answers to a GET: the status and the body.
    pub fn get(&self, from: SocketAddr, path: &str) -> std::io::Result<(u16, String)> {
        self.ask(from, &format!("GET {path}"), &[], "")
    }

    /// The same for any method, with headers of the caller's and a body of JSON.
    pub fn ask(
        &self,
        whom: SocketAddr,
        line: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> std::io::Result<(u16, String)> {
        exchange(self.connect(whom)?, line, headers, body)
    }
}

/// One request and its answer, the status and the body, on a connection that is then closed.
pub fn exchange(
    mut stream: impl Read + Write,
    line: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> std::io::Result<(u16, String)> {
    let headers = headers
        .iter()
        .map(|(name, value)| format!("{name}: {value}\r\n"));
    let headers: String = headers.collect();
    let size = body.len();
    let request = format!(
        "{line} HTTP/1.0\r\nHost: inside\r\nContent-Type: application/json\r\nContent-Length: {size}\r\n{headers}Connection: close\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    parse(&answer).ok_or_else(|| std::io::Error::other(format!("no answer: {answer:?}")))
}

fn parse(answer: &str) -> Option<(u16, String)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split(' ').nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}

/// Containers and their first processes, from what `ctr tasks list` prints.
fn tasks(said: &str) -> BTreeMap<String, i32> {
    let task = |line: &str| {
        let mut words = line.split_whitespace();
        let (id, pid, status) = (words.next()?, words.next()?, words.next()?);
        (status == "RUNNING").then_some((id.to_owned(), pid.parse().ok()?))
    };
    said.lines().filter_map(task).collect()
}

fn started(enclosure: &Enclosure, pid: i32) -> Result<u64, Error> {
    let stat = enclosure
        .run(move || std::fs::read_to_string(format!("/proc/{pid}/stat")))
        .doing(|| format!("process {pid} is not there"))?;
    start_time(&stat).ok_or_else(|| Error::Command {
        doing: format!("asking when process {pid} was started"),
        status: "the kernel's answer is not understood".into(),
        output: stat,
    })
}

/// The address in a line of `ip`.
fn address(line: &str) -> Option<IpAddr> {
    let (_, after) = line.split_once(" inet ")?;
    after.split('/').next()?.parse().ok()
}

/// The twenty-second field; the second is a name in brackets and may have spaces in it.
fn start_time(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tasks_that_run_count() {
        let said = "TASK    PID     STATUS    \nabc    12    RUNNING\ndef    0    STOPPED\n";
        assert_eq!(tasks(said), [("abc".to_owned(), 12)].into());
    }

    #[test]
    fn the_start_of_a_process_is_read_past_its_name() {
        let own = std::fs::read_to_string("/proc/self/stat").expect("this process");
        assert!(start_time(&own).expect("a start") > 0);
        let numbers: Vec<String> = (3..=52).map(|field| (field * 10).to_string()).collect();
        let odd = format!("7 (a ) b) S {}", numbers[1..].join(" "));
        assert_eq!(start_time(&odd), Some(220));
    }

    #[test]
    fn an_address_is_read_from_a_line_of_ip() {
        let line = "2: eth0    inet 10.77.0.9/24 brd 10.77.0.255 scope global eth0";
        assert_eq!(address(line), "10.77.0.9".parse().ok());
        assert_eq!(address(""), None);
    }

    #[test]
    fn an_answer_is_its_status_and_its_body() {
        let answer = "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok";
        assert_eq!(parse(answer), Some((200, "ok".to_owned())));
        assert_eq!(parse("nonsense"), None);
    }
}
