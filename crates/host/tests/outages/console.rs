//! What a person reads on a host's console while there is no API server. It stands in docs/handler.md,
//! which `KEELSON_WRITE_DOCS=1` writes anew.

use crate::common::homes::{SOON, program};
use crate::world::{World, stopped};
use clap::Parser;
use keelson_api::host_condition::EnactmentCondition;
use keelson_host::cli::{Cli, OnHost, Task};
use keelson_host::handler::points::{Act, Point};
use keelson_testbed::{passage, until};
use serde_json::json;
use std::fmt::Write;
use std::path::Path;

const PAGE: &str = "docs/handler.md";

/// Where a host has what a test has in a folder of its own.
const PLACES: [(&str, &str); 3] = [
    ("--state-dir", "state"),
    ("--lock-file", "lock"),
    ("--socket", "health.sock"),
];

/// A console of a host, and what of its words is another every time.
struct Console<'a> {
    world: &'a World,
    shown: Vec<(String, &'static str)>,
}

impl<'a> Console<'a> {
    fn of(world: &'a World) -> Self {
        let path = |name: &str| world.path(name).display().to_string();
        let shown = vec![
            (path("health.sock"), "/run/keelson-host/health.sock"),
            (path("state"), "/var/k8s_nmstate"),
            (world.faults.address().to_string(), "10.0.0.1:6443"),
            (format!("-{}", world.node), ""),
            (world.node.clone(), "worker-1"),
        ];
        Self { world, shown }
    }

    /// Types a command, and gives it with what it printed, as the page has it.
    async fn type_(&self, command: &str) -> String {
        let mut line = program().display().to_string();
        let words = command.strip_prefix("keelson-host ").expect("the program");
        let (task, rest) = words.split_once(' ').unwrap_or((words, ""));
        let _ = write!(line, " {task}");
        for (flag, name) in PLACES {
            let _ = write!(line, " {flag}={}", self.world.path(name).display());
        }
        let told = self.world.words().join(" ");
        let node = &self.world.node;
        let kubeconfig = self.world.path("kubeconfig");
        let _ = write!(line, " --node-name={node} {told}");
        let _ = write!(line, " --kubeconfig={} {rest}", kubeconfig.display());
        let args = vec!["-c".to_owned(), line];
        let shell = self.world.host.program("sh", "sh".into(), args, Vec::new());
        let before = std::fs::read_to_string(shell.log()).unwrap_or_default();
        shell.start().expect("a shell");
        shell.ended().await;
        let after = std::fs::read_to_string(shell.log()).expect("what it printed");
        let printed = after[before.len()..].to_owned();
        let shown = self.shown.iter();
        let printed = shown.fold(printed, |text, (here, page)| text.replace(here, page));
        format!("$ {command}\n{printed}")
    }

    /// Waits until a command says something.
    async fn says(&self, command: &str, part: &str) {
        until(part, SOON, async || match self.type_(command).await {
            said if said.contains(part) => Ok(()),
            said => Err(said),
        })
        .await
        .expect("words on a console");
    }
}

fn block(lines: &str) -> String {
    format!("```console\n{lines}```\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_console_says_how_a_host_is_and_recovers_it_without_an_api_server() {
    let world = World::new("console").await;
    let mut console = Console::of(&world);
    let lab = json!({"interfaces": [
        {"name": "br0", "type": "linux-bridge", "state": "up", "bridge": {"port": []}},
    ]});
    let handler = world.handler(None);
    handler.start().expect("a handler");
    world.ready().await;
    let policy = world.ask_for("lab", &lab).await;
    world.comes_to(&policy, EnactmentCondition::Available).await;
    let process = world.host.run("/bin/busybox pidof keelson-handler");
    let process = format!("process {} ", process.expect("a process").trim());
    console.shown.push((process, "process 1234 "));

    let away = world.faults.refuse();
    let status = "keelson-host status";
    console.says(status, "Connection refused").await;
    console.says(status, "Policy lab: Available").await;
    let status = console.type_(status).await;
    let busy = console.type_("keelson-host recover").await;
    passage(PAGE, "a handler that runs", &block(&(status + &busy)));
    drop(away);

    handler.kill().await;
    let handler = world.handler(Some(Point::Before(Act::Probe)));
    handler.start().expect("a handler");
    world.ask_for("uplink", &world.under_a_bridge()).await;
    stopped(&handler).await;
    let _away = world.faults.black_hole();
    handler.kill().await;
    let mut lines = console.type_("keelson-host status").await;
    lines += &console.type_("keelson-host recover 2> /dev/null").await;
    lines += &console.type_("keelson-host recover").await;
    passage(PAGE, "a handler that was killed", &block(&lines));
}

#[test]
fn the_unit_for_reboots_recovers_before_the_kubelet_starts() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/host");
    let unit = folder.join("keelson-host-recover.service");
    let unit = std::fs::read_to_string(unit).expect("a unit");
    let says = |key: &str| {
        unit.lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
    };
    let command = says("ExecStart").expect("a command");
    let cli = Cli::try_parse_from(command.split(' ')).expect("a command that is understood");
    let recovers = |task: &OnHost| matches!(task, OnHost::Recover(_));
    assert!(
        matches!(&cli.task, Some(Task::OnHost(task)) if recovers(task)),
        "{command}"
    );
    let before = says("Before").expect("an order");
    assert_eq!(before, "kubelet.service");
    assert_eq!(says("After"), Some("dbus.service NetworkManager.service"));
}
