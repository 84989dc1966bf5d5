//! The program in a process of its own, and what its pages say.
#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::time::timeout;

/// How long a process may take to start, to answer or to end, on a busy machine.
const SOON: Duration = Duration::from_secs(60);

/// Everything the program has to be told.
pub(crate) const VARIABLES: &[(&str, &str)] = &[
    ("POD_NAME", "operator"),
    ("SEI_COSMOS_EXPORTER_IMAGE", "registry.example/exporter:1"),
    ("SEI_GATEWAY_DOMAIN", "example.com"),
    ("SEI_GATEWAY_NAME", "gateway"),
    ("SEI_GATEWAY_NAMESPACE", "gateway"),
    ("SEI_GENESIS_BUCKET", "genesis"),
    ("SEI_GENESIS_REGION", "us-east-2"),
    (
        "SEI_KUBE_RBAC_PROXY_IMAGE",
        "registry.example/keelson-proxy:1",
    ),
    ("SEI_NODEPOOL_ARCHIVE", "sei-archive"),
    ("SEI_NODEPOOL_NAME", "sei-node"),
    ("SEI_RESOURCE_CPU_ARCHIVE", "48"),
    ("SEI_RESOURCE_CPU_DEFAULT", "4"),
    ("SEI_RESOURCE_MEM_ARCHIVE", "448Gi"),
    ("SEI_RESOURCE_MEM_DEFAULT", "32Gi"),
    ("SEI_RESULT_EXPORT_BUCKET", "results"),
    ("SEI_RESULT_EXPORT_PREFIX", "results/"),
    ("SEI_RESULT_EXPORT_REGION", "us-east-2"),
    ("SEI_SERVICE_ACCOUNT", "seid-node"),
    ("SEI_SIDECAR_IMAGE", "registry.example/keelson-sidecar:1"),
    ("SEI_SNAPSHOT_BUCKET", "snapshots"),
    ("SEI_SNAPSHOT_REGION", "us-east-2"),
    ("SEI_STORAGE_CLASS_ARCHIVE", "played"),
    ("SEI_STORAGE_CLASS_DEFAULT", "played"),
    ("SEI_STORAGE_CLASS_PERF", "played"),
    ("SEI_STORAGE_SIZE_ARCHIVE", "40Ti"),
    ("SEI_STORAGE_SIZE_DEFAULT", "2000Gi"),
    ("SEI_TOLERATION_KEY", "sei.io/workload"),
];

/// The program, without any variable of this process.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_keelson-operator"));
    command.env_clear().kill_on_drop(true);
    command
}

/// Where the program finds its API server.
pub(crate) struct Way {
    file: PathBuf,
}

impl Drop for Way {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

impl Way {
    /// By this kubeconfig.
    pub(crate) fn by(kubeconfig: &str) -> Self {
        let name = format!("keelson-{}.kubeconfig", uuid::Uuid::new_v4());
        let file = std::env::temp_dir().join(name);
        std::fs::write(&file, kubeconfig).expect("a file");
        Self { file }
    }

    /// The same as whoever has this token.
    pub(crate) fn with_token(kubeconfig: &str, token: &str) -> Self {
        let mut config: Value = serde_saphyr::from_str(kubeconfig).expect("a kubeconfig");
        config["users"][0]["user"] = json!({ "token": token });
        // JSON is YAML.
        Self::by(&config.to_string())
    }
}

/// The program, running. It is killed when it is dropped.
pub(crate) struct Program {
    child: Child,
    said: watch::Receiver<Vec<String>>,
}

impl Program {
    /// Starts it.
    pub(crate) fn run(mut command: Command, way: &Way, more: &[&str]) -> Self {
        command
            .env("KUBECONFIG", &way.file)
            .args(["--metrics-bind-address", "127.0.0.1:0"])
            .args(["--health-probe-bind-address", "127.0.0.1:0"])
            .args(more)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program");
        let lines = child.stderr.take().expect("its words");
        let (tell, said) = watch::channel(Vec::new());
        tokio::spawn(async move {
            let mut lines = BufReader::new(lines).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                tell.send_modify(|said| said.push(line));
            }
        });
        Self { child, said }
    }

    /// Kills it, wherever it is.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.expect("a kill");
    }

    /// Asks it to stop, and waits until it has.
    pub(crate) async fn stop(mut self) -> ExitStatus {
        let id = self.child.id().expect("a process that runs").to_string();
        let asked = Command::new("kill").args(["-TERM", &id]).status().await;
        assert!(asked.expect("a signal").success());
        let ended = timeout(SOON, self.child.wait()).await;
        ended.expect("an end in time").expect("an end")
    }

    /// Where its metrics and its probes are served.
    pub(crate) async fn addresses(&self) -> [SocketAddr; 2] {
        let mut said = self.said.clone();
        let found = |lines: &[String]| -> Vec<SocketAddr> {
            let lines = lines
                .iter()
                .filter(|line| line.contains("pages are served"));
            let read = |line: &String| {
                let line: Value = serde_json::from_str(line).ok()?;
                line["address"].as_str()?.parse().ok()
            };
            lines.filter_map(read).collect()
        };
        let both = said.wait_for(|lines| found(lines).len() == 2);
        let both = timeout(SOON, both).await.expect("addresses in time");
        let both = found(&both.expect("a program that speaks"));
        both.try_into().expect("two addresses")
    }
}

/// A page, with its status.
pub(crate) async fn page(at: SocketAddr, path: &str) -> (u16, String) {
    let ask = async {
        let mut stream = TcpStream::connect(at).await?;
        let request = format!("GET {path} HTTP/1.1\r\nhost: operator\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = timeout(SOON, ask).await.expect("an answer in time");
    let answer = answer.expect("an answer");
    let status = answer.get(9..12).and_then(|it| it.parse().ok());
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body);
    (
        status.expect("a status"),
        body.unwrap_or_default().to_owned(),
    )
}

/// Asks for a page until this holds of it.
pub(crate) async fn until_page(
    at: SocketAddr,
    path: &str,
    holds: impl Fn(u16, &str) -> bool,
) -> String {
    let mut last = (0, String::new());
    let asking = async {
        loop {
            last = page(at, path).await;
            if holds(last.0, &last.1) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    let asked = timeout(SOON, asking).await;
    assert!(asked.is_ok(), "{path} says {last:?}");
    last.1
}
