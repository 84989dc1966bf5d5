//! Nodes of a real chain: the `seid` of the testbed as a process, with a home and an address of its
//! own.
//!
//! Every node has an address below 127.0.0.0/8 for itself, so that all of them have the ports nodes
//! have. Whatever becomes of the tests, their nodes end with them and their homes go: a guard waits
//! for the end of this process.

use keelson_testbed::{Peer, peer};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

/// Long enough for a node to start and to make a few blocks on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);
pub(crate) const P2P: u16 = 26656;
pub(crate) const RPC: u16 = 26657;

/// The program, built when it is not there yet.
pub(crate) fn program() -> &'static Path {
    static FILE: OnceLock<PathBuf> = OnceLock::new();
    FILE.get_or_init(|| peer(Peer::Seid).expect("seid"))
}

/// What ends the nodes and removes their homes when this process has ended, in whatever way.
struct Guard {
    /// Nodes join its group: so all can be named, whichever there are.
    sleeper: Child,
    folder: PathBuf,
    /// It reads from a pipe that the system closes at the latest.
    _watcher: Child,
}

fn guard() -> &'static Guard {
    static GUARD: OnceLock<Guard> = OnceLock::new();
    GUARD.get_or_init(|| {
        let name = format!("keelson-chain-{}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        let quiet = |command: &mut Command| {
            let command = command.process_group(0).stdout(Stdio::null());
            let child = command.stderr(Stdio::null()).spawn();
            child.expect("a process")
        };
        let sleeper = quiet(Command::new("sleep").arg("infinity").stdin(Stdio::null()));
        let script = "read -r _; kill -KILL -$1; rm -rf \"$0\"";
        let mut watcher = Command::new("sh");
        watcher.args(["-c", script]).arg(&folder);
        watcher.arg(sleeper.id().to_string()).stdin(Stdio::piped());
        Guard {
            sleeper,
            folder,
            _watcher: quiet(&mut watcher),
        }
    })
}

/// A node, running or not.
pub(crate) struct Node {
    pub(crate) home: PathBuf,
    pub(crate) address: Ipv4Addr,
    child: Option<Child>,
}

impl Drop for Node {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!(
                "the last lines of {}:\n{}",
                self.home.display(),
                self.tail()
            );
        }
        self.kill();
        if self.home.starts_with(&guard().folder) {
            let _ = std::fs::remove_dir_all(&self.home);
        }
    }
}

impl Node {
    /// A node with new keys, and nobody's genesis yet.
    pub(crate) fn init(name: &str, chain: &str) -> Self {
        Self::init_at(guard().folder.join(name), chain)
    }

    /// The same in a home that is somebody else's to remove.
    pub(crate) fn init_at(home: PathBuf, chain: &str) -> Self {
        static NEXT: AtomicU8 = AtomicU8::new(1);
        let process = std::process::id();
        let octet = |number: u32| u8::try_from(number).expect("an octet");
        let address = Ipv4Addr::new(
            127,
            octet(64 + (process >> 8) % 128),
            octet(process % 256),
            NEXT.fetch_add(1, Ordering::Relaxed),
        );
        std::fs::create_dir_all(&home).expect("a home");
        let node = Self {
            home,
            address,
            child: None,
        };
        node.run(&["init", "node", "--chain-id", chain, "--overwrite"]);
        node.adapt();
        node
    }

    /// The one validator of a new chain that makes five blocks a second.
    pub(crate) fn validator(name: &str, chain: &str) -> Self {
        let node = Self::init(name, chain);
        let test = ["--keyring-backend", "test"];
        node.run(&[&["keys", "add", "val"][..], &test].concat());
        let address = node.run(&[&["keys", "show", "val", "-a"][..], &test].concat());
        node.run(&["add-genesis-account", address.trim(), "1000000000000usei"]);
        let gentx = ["gentx", "val", "500000000000usei", "--chain-id", chain];
        node.run(&[&gentx[..], &test].concat());
        node.run(&["collect-gentxs"]);
        node.edit("config.toml", "timeout_commit", "\"200ms\"");
        node
    }

    /// A node that follows another.
    pub(crate) fn follower(name: &str, chain: &str, other: &Self) -> Self {
        let node = Self::init(name, chain);
        node.adopt(other);
        let peer = format!("\"{}\"", other.peer());
        node.edit("config.toml", "persistent_peers", &peer);
        node
    }

    /// Takes over another node's genesis.
    pub(crate) fn adopt(&self, other: &Self) {
        let genesis = "config/genesis.json";
        std::fs::copy(other.home.join(genesis), self.home.join(genesis)).expect("a genesis");
    }

    /// What lets nodes of one machine be each other's peers.
    fn adapt(&self) {
        self.edit("config.toml", "addr_book_strict", "false");
        self.edit("config.toml", "allow_duplicate_ip", "true");
    }

    /// Gives a key of a configuration file another value, wherever it stands.
    pub(crate) fn edit(&self, file: &str, key: &str, value: &str) {
        let path = self.home.join("config").join(file);
        let text = std::fs::read_to_string(&path).expect("a file");
        let begin = format!("{key} = ");
        assert!(
            text.lines().any(|line| line.starts_with(&begin)),
            "{file} has no {key}"
        );
        let lines = text.lines().map(|line| match line.starts_with(&begin) {
            true => format!("{begin}{value}\n"),
            false => format!("{line}\n"),
        });
        std::fs::write(&path, lines.collect::<String>()).expect("a file");
    }

    /// Runs a command of the program to its end, and brings back what it printed.
    pub(crate) fn run(&self, args: &[&str]) -> String {
        let output = Command::new(program())
            .args(args)
            .arg("--home")
            .arg(&self.home)
            .stdin(Stdio::null())
            .output()
            .expect("seid");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let problem = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "seid {args:?}: {said}{problem}");
        said
    }

    /// Starts it without waiting for it.
    pub(crate) fn spawn(&mut self, flags: &[&str]) {
        assert!(self.child.is_none(), "it runs already");
        let log: File = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log_path())
            .expect("a log");
        let child = Command::new(program())
            .arg("start")
            .arg("--home")
            .arg(&self.home)
            .arg(format!("--p2p.laddr=tcp://{}:{P2P}", self.address))
            .arg(format!("--rpc.laddr=tcp://{}:{RPC}", self.address))
            .args(["--rpc.pprof_laddr=", "--grpc.enable=false"])
            .args(["--api.enable=false", "--log_no_color"])
            .args(flags)
            .process_group(guard().sleeper.id().cast_signed())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn();
        self.child = Some(child.expect("seid"));
    }

    /// Starts it and waits until its RPC answers.
    pub(crate) fn start(&mut self, flags: &[&str]) {
        self.spawn(flags);
        self.sees("an answer", |node| node.height());
    }

    /// Looks until something is seen of a node that runs.
    pub(crate) fn sees<T>(&mut self, what: &str, look: impl Fn(&Self) -> Option<T>) -> T {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(seen) = look(self) {
                return seen;
            }
            let child = self.child.as_mut().expect("a node that runs");
            let ended = child.try_wait().expect("a child");
            assert!(ended.is_none(), "it ended with {ended:?}: {}", self.tail());
            let late = Instant::now() > deadline;
            assert!(
                !late,
                "{what} was not seen within {PATIENCE:?}: {}",
                self.tail()
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits for a block.
    pub(crate) fn reaches(&mut self, height: u64) -> u64 {
        let what = format!("block {height}");
        self.sees(&what, |node| node.height().filter(|it| *it >= height))
    }

    pub(crate) fn pid(&self) -> Pid {
        Pid::from_raw(
            self.child
                .as_ref()
                .expect("a node that runs")
                .id()
                .cast_signed(),
        )
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(self.pid(), signal).expect("a signal");
    }

    /// Asks it to end, and waits until it has.
    pub(crate) fn stop(&mut self) -> ExitStatus {
        self.signal(Signal::SIGTERM);
        self.ended()
    }

    /// Waits for its end.
    pub(crate) fn ended(&mut self) -> ExitStatus {
        let deadline = Instant::now() + PATIENCE;
        let mut child = self.child.take().expect("a node that runs");
        loop {
            if let Some(status) = child.try_wait().expect("a child") {
                return status;
            }
            if Instant::now() > deadline {
                let _ = child.kill();
                let _ = child.wait();
                panic!("it did not end within {PATIENCE:?}: {}", self.tail());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// What a power cut does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    /// Where its RPC is, as a URL.
    pub(crate) fn rpc(&self) -> String {
        format!("http://{}", self.witness())
    }

    /// Where its RPC is, as `host:port`.
    pub(crate) fn witness(&self) -> String {
        format!("{}:{RPC}", self.address)
    }

    /// What it is as somebody's peer.
    pub(crate) fn peer(&self) -> String {
        format!("{}@{}:{P2P}", self.id(), self.address)
    }

    pub(crate) fn id(&self) -> String {
        self.run(&["tendermint", "show-node-id"]).trim().to_owned()
    }

    /// What it answers to a GET, where it does.
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        let mut stream = TcpStream::connect((self.address, RPC)).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .ok()?;
        write!(stream, "GET {path} HTTP/1.0\r\nHost: node\r\n\r\n").ok()?;
        let mut said = String::new();
        stream.read_to_string(&mut said).ok()?;
        let (head, body) = said.split_once("\r\n\r\n")?;
        let ok = head.split(' ').nth(1) == Some("200");
        ok.then(|| serde_json::from_str(body).ok()).flatten()
    }

    /// Its last block; nothing where it does not answer.
    pub(crate) fn height(&self) -> Option<u64> {
        let said = self.get("/status")?;
        // With an envelope, where it was told to use one.
        let status = said.get("result").unwrap_or(&said);
        let height = status["sync_info"]["latest_block_height"].as_str()?;
        height.parse().ok()
    }

    fn log_path(&self) -> PathBuf {
        self.home.join("seid.log")
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    fn tail(&self) -> String {
        let log = self.log();
        let mut lines: Vec<&str> = log.lines().rev().take(15).collect();
        lines.reverse();
        lines.join("\n")
    }
}
