//! The program itself, started as a pod would start it: files in a folder of its own, ports nobody
//! else has, and a log that never blocks it.

use keelson_testbed::{Cluster, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// Long enough for anything that happens at once, on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(10);

/// The sidecar's policy, without a namespace.
pub(crate) const CONFIG: &str =
    "authorization:\n  resourceAttributes:\n    apiGroup: sei.io\n    resource: seinodetasks\n";

/// A port nobody has, from below those the system hands out: nobody else gets it before the program
/// does.
pub(crate) fn free() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 20_000 + u16::try_from(std::process::id() % 500).expect("small") * 20;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        if let Ok(socket) = TcpListener::bind(("127.0.0.1", port)) {
            return socket.local_addr().expect("an address");
        }
    }
}

/// A running proxy.
pub(crate) struct Proxy {
    pub(crate) child: Child,
    pub(crate) folder: PathBuf,
    pub(crate) requests: SocketAddr,
    pub(crate) health: SocketAddr,
    started: Instant,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(20).collect();
            eprintln!("the last lines of the proxy, newest first:\n{tail:#?}");
        }
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

impl Proxy {
    /// Starts the program before an upstream, with this kubeconfig and configuration.
    pub(crate) fn start(test: &str, kubeconfig: &str, config: &str, upstream: SocketAddr) -> Self {
        Self::with(test, kubeconfig, config, upstream, &[])
    }

    /// The same, with more flags.
    pub(crate) fn with(
        test: &str,
        kubeconfig: &str,
        config: &str,
        upstream: SocketAddr,
        more: &[String],
    ) -> Self {
        Self::trusting(test, kubeconfig, config, upstream, more, None)
    }

    /// The same, on a host whose own authorities are in this file.
    pub(crate) fn trusting(
        test: &str,
        kubeconfig: &str,
        config: &str,
        upstream: SocketAddr,
        more: &[String],
        host_bundle: Option<PathBuf>,
    ) -> Self {
        let folder = folder(test);
        std::fs::write(folder.join("kubeconfig"), kubeconfig).expect("a file");
        std::fs::write(folder.join("config.yaml"), config).expect("a file");
        let log = File::create(folder.join("log")).expect("a file");
        let (requests, health) = (free(), free());
        let started = Instant::now();
        let child = Command::new(env!("CARGO_BIN_EXE_keelson-proxy"))
            .arg(format!("--listen-address={requests}"))
            .arg(format!("--health-listen-address={health}"))
            .arg(format!("--upstream=http://{upstream}"))
            .arg(format!(
                "--kubeconfig={}",
                folder.join("kubeconfig").display()
            ))
            .arg(format!(
                "--config-file={}",
                folder.join("config.yaml").display()
            ))
            .args([
                "--ignore-paths=/v0/healthz",
                "--strict-config",
                "--auth-header-fields-enabled",
            ])
            .args(more)
            .envs(host_bundle.map(|file| ("SSL_CERT_FILE", file)))
            .stderr(log)
            .spawn()
            .expect("the program");
        Self {
            child,
            folder,
            requests,
            health,
            started,
        }
    }

    /// Waits until it is healthy, and says how long that took.
    pub(crate) async fn healthy(&self) -> Duration {
        until("the proxy", SOON, async || {
            match get(self.health, "/healthz", "") {
                Some(said) if said.ends_with("ok") => Ok(()),
                said => Err(format!("{said:?}")),
            }
        })
        .await
        .expect("a healthy proxy");
        self.started.elapsed()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).expect("a signal");
    }

    /// Waits for its end.
    pub(crate) fn end(&mut self) -> ExitStatus {
        self.child.wait().expect("its end")
    }

    /// Waits until it has said this.
    pub(crate) async fn says(&self, words: &str) {
        until(words, SOON, async || match self.log() {
            said if said.contains(words) => Ok(()),
            said => Err(said),
        })
        .await
        .expect("the words");
    }

    /// What a scrape says.
    pub(crate) fn metrics(&self) -> String {
        get(self.health, "/metrics", "").expect("an answer")
    }

    /// How often it has asked the API server, whatever came of it.
    pub(crate) fn calls(&self, api: &str) -> u64 {
        let metrics = self.metrics();
        let series = format!("keelson_proxy_apiserver_requests_total{{api=\"{api}\"");
        let counts = metrics.lines().filter(|line| line.starts_with(&series));
        let numbers = counts.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok());
        numbers.sum()
    }

    /// What it has said so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }

    /// The most memory it has ever held, in KiB.
    pub(crate) fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()));
        let status = status.expect("a process that runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.and_then(|it| it.parse().ok()).expect("a number")
    }
}

/// One request on a connection of its own; the whole answer.
pub(crate) fn get(address: SocketAddr, path: &str, headers: &str) -> Option<String> {
    ask(address, "GET", path, headers)
}

/// The same with another method.
pub(crate) fn ask(address: SocketAddr, method: &str, path: &str, headers: &str) -> Option<String> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(SOON)).ok()?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n{headers}\r\n"
    )
    .ok()?;
    let mut said = String::new();
    stream.read_to_string(&mut said).ok()?;
    Some(said)
}

/// A folder of this test.
pub(crate) fn folder(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("keelson-proxy-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    folder
}

/// A kubeconfig for a server that is not there.
pub(crate) fn nowhere(cluster: &Cluster) -> String {
    let text = cluster.kubeconfig();
    let at = text.find("https://127.0.0.1:").expect("a server");
    let end = at + text[at..].find('"').expect("its end");
    format!("{}https://127.0.0.1:1{}", &text[..at], &text[end..])
}
