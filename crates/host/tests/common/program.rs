//! The program as a process of its own, with a folder of its own and ports of the system's choice.

use keelson_testbed::{Authority, until};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Nothing a process does by itself takes longer, however busy the machine.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// The memory a process that ships may take, in KiB.
pub(crate) const PROMISED: u64 = 15 << 10;

/// The program as it ships, where one is given to be measured: one built for tests is several times
/// its size.
pub(crate) fn shipped() -> Option<OsString> {
    std::env::var_os("KEELSON_HOST_PROGRAM")
}

/// A folder with a certificate, before a program is started in it.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    /// An empty one.
    pub(crate) fn new() -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("keelson-host-{}-{count}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    /// One with a certificate of this authority.
    pub(crate) fn certified(authority: &Authority) -> Self {
        let folder = Self::new();
        folder.certify(authority);
        folder
    }

    /// Puts a new certificate of this authority into it.
    pub(crate) fn certify(&self, authority: &Authority) {
        self.certify_as(authority, "127.0.0.1");
    }

    /// The same, good for this name too.
    pub(crate) fn certify_as(&self, authority: &Authority, name: &str) {
        let pair = authority.server(&["localhost", name]).expect("a pair");
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let fresh = format!("pair-{}", COUNT.fetch_add(1, Ordering::Relaxed));
        std::fs::create_dir(self.path(&fresh)).expect("a folder");
        self.write(&format!("{fresh}/tls.key"), &pair.key);
        self.write(&format!("{fresh}/tls.crt"), &pair.certificate);
        // Swapped as one, as a kubelet does.
        let link = self.path("next-link");
        std::os::unix::fs::symlink(&fresh, &link).expect("a link");
        std::fs::rename(link, self.path("certs")).expect("a link");
    }

    /// Writes a file as a whole.
    pub(crate) fn write(&self, name: &str, content: &str) {
        let beside = self.0.join("next");
        std::fs::write(&beside, content).expect("a file");
        std::fs::rename(&beside, self.0.join(name)).expect("a file");
    }

    /// The profile's place.
    pub(crate) fn profile(&self, content: &str) {
        self.write("profile.json", content);
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The command that starts the program here; files are read every second.
    pub(crate) fn command(&self) -> Command {
        let ours = env!("CARGO_BIN_EXE_keelson-host").into();
        let mut command = Command::new(shipped().unwrap_or(ours));
        command
            .env_clear()
            .arg("--cert-dir")
            .arg(self.path("certs"))
            .arg("--tls-profile-file")
            .arg(self.path("profile.json"))
            .args([
                "--tls-reload-seconds=1",
                "--webhook-bind-address=127.0.0.1:0",
                "--metrics-bind-address=127.0.0.1:0",
                "--health-probe-bind-address=127.0.0.1:0",
            ]);
        command
    }

    /// Starts the program here with these words.
    pub(crate) fn start(self, words: &[&str]) -> Program {
        let mut command = self.command();
        command.args(words);
        self.run(command)
    }

    /// The same, asking the API server that a kubeconfig names.
    pub(crate) fn start_at(self, kubeconfig: &str, words: &[&str]) -> Program {
        self.write("kubeconfig", kubeconfig);
        let mut command = self.command();
        command
            .arg("--kubeconfig")
            .arg(self.path("kubeconfig"))
            .args(words);
        self.run(command)
    }

    /// Runs a command of [`Self::command`].
    pub(crate) fn run(self, mut command: Command) -> Program {
        let log = File::create(self.path("log")).expect("a file");
        let started = Instant::now();
        let child = command.stderr(log).spawn().expect("the program");
        Program {
            child,
            folder: self,
            started,
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The program, running.
pub(crate) struct Program {
    pub(crate) child: Child,
    pub(crate) folder: Folder,
    pub(crate) started: Instant,
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(20).collect();
            eprintln!("the last lines of the program, newest first:\n{tail:#?}");
        }
    }
}

impl Program {
    /// The addresses it listens on: the role's, then health's.
    fn addresses(&self) -> Vec<SocketAddr> {
        let log = self.log();
        let lines = log
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        lines
            .filter(|line: &Value| line["message"] == "listening")
            .filter_map(|line| line["address"].as_str()?.parse().ok())
            .collect()
    }

    /// Where its role answers.
    pub(crate) fn address(&self) -> SocketAddr {
        self.addresses()[0]
    }

    /// Waits until it says it is healthy; how long after its start that was.
    pub(crate) async fn healthy(&self) -> Duration {
        // Looked at more often than other things, because this one is timed.
        while self.started.elapsed() < SOON {
            if matches!(self.health("/healthz"), Some((200, _))) {
                return self.started.elapsed();
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("it is not healthy, and the log is {}", self.log());
    }

    /// A page of the health port: its status and its body.
    pub(crate) fn health(&self, path: &str) -> Option<(u16, String)> {
        let address = *self.addresses().get(1)?;
        let mut stream = TcpStream::connect(address).ok()?;
        stream.set_read_timeout(Some(SOON)).ok()?;
        write!(
            stream,
            "GET {path} HTTP/1.1\r\nHost: pod\r\nConnection: close\r\n\r\n"
        )
        .ok()?;
        let mut said = String::new();
        stream.read_to_string(&mut said).ok()?;
        let status = said.split(' ').nth(1)?.parse().ok()?;
        let (_, body) = said.split_once("\r\n\r\n")?;
        Some((status, body.to_owned()))
    }

    /// What it says about its profile.
    pub(crate) fn tls(&self) -> Value {
        let (_, body) = self.health("/tls").expect("an answer");
        serde_json::from_str(&body).expect("JSON")
    }

    /// Waits until what it says about its profile is so.
    pub(crate) async fn tls_is(&self, what: &str, so: impl Fn(&Value) -> bool) -> Value {
        let look = async || match self.tls() {
            told if so(&told) => Ok(told),
            told => Err(told.to_string()),
        };
        until(what, SOON, look).await.expect("a report")
    }

    /// The value of a series on its health port.
    pub(crate) fn own_metric(&self, name: &str) -> Option<String> {
        let (_, page) = self.health("/metrics")?;
        value(&page, name)
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).expect("a signal");
    }

    /// Whether it has not ended.
    pub(crate) fn runs(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }

    /// What it has said so far.
    pub(crate) fn log(&self) -> String {
        read(&self.folder.path("log"))
    }

    /// The memory it holds now, in KiB.
    pub(crate) fn resident(&self) -> u64 {
        let status = read(Path::new(&format!("/proc/{}/status", self.child.id())));
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let number = line.and_then(|line| line.split_whitespace().next());
        number.and_then(|it| it.parse().ok()).expect("a number")
    }
}

/// The value of a series on a page, by the name and labels it has there.
pub(crate) fn value(page: &str, series: &str) -> Option<String> {
    let lines = page.lines();
    let mut found = lines.filter_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    found.next().map(str::to_owned)
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}
