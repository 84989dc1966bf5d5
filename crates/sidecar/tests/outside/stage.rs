//! The program on a port and a home of its own, and how to talk to it.

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, chown};
use serde_json::{Value, json};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

pub(crate) const SOON: Duration = Duration::from_secs(30);
pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_keelson-sidecar");

/// A port nobody has, from below those the system hands out: nobody else gets it before the program
/// does.
pub(crate) fn free() -> u16 {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + u16::try_from(std::process::id() % 90).expect("small") * 100;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}

/// Looks until something is seen.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + SOON;
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(
            Instant::now() < deadline,
            "{what} was not seen within {SOON:?}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// What the program answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().expect("an error").to_owned()
    }

    pub(crate) fn header(&self, name: &str) -> Option<String> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    }
}

/// Everything that comes until the other end closes.
pub(crate) fn read_all(stream: &mut TcpStream) -> Option<Reply> {
    let mut bytes = Vec::new();
    // A reset after the answer leaves the answer.
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes);
    let (head, body) = text.split_once("\r\n\r\n")?;
    Some(Reply {
        status: head.split(' ').nth(1)?.parse().ok()?,
        head: head.to_owned(),
        body: body.to_owned(),
    })
}

fn connect(port: u16) -> Option<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.set_read_timeout(Some(SOON)).ok()?;
    Some(stream)
}

/// One request on a connection of its own; nothing where nobody answers.
pub(crate) fn ask(port: u16, method: &str, path: &str, headers: &str, body: &str) -> Option<Reply> {
    let mut stream = connect(port)?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: node\r\nConnection: close\r\n\
         Content-Length: {}\r\n{headers}\r\n{body}",
        body.len()
    )
    .ok()?;
    read_all(&mut stream)
}

/// A home, a port, and the program when it runs.
pub(crate) struct Sidecar {
    pub(crate) home: PathBuf,
    pub(crate) port: u16,
    pub(crate) variables: Vec<(String, String)>,
    /// Who runs it, if not whoever runs the tests.
    pub(crate) user: Option<u32>,
    child: Option<Child>,
}

impl Drop for Sidecar {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.home);
        let _ = std::fs::remove_file(self.log_path());
        let _ = std::fs::remove_file(self.program_path());
    }
}

impl Sidecar {
    /// A home with nothing running.
    pub(crate) fn idle(test: &str) -> Self {
        let name = format!("keelson-sidecar-{test}-{}", std::process::id());
        let home = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&home);
        std::fs::create_dir_all(&home).expect("a folder");
        Self {
            home,
            port: free(),
            variables: Vec::new(),
            user: None,
            child: None,
        }
    }

    pub(crate) fn start(test: &str) -> Self {
        let mut sidecar = Self::idle(test);
        sidecar.run();
        sidecar
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.variables.retain(|(it, _)| it != name);
        self.variables.push((name.into(), value.into()));
        self
    }

    pub(crate) fn with_all<T: AsRef<str>>(
        self,
        variables: impl IntoIterator<Item = (T, T)>,
    ) -> Self {
        let each = variables.into_iter();
        each.fold(self, |it, (name, value)| {
            it.with(name.as_ref(), value.as_ref())
        })
    }

    /// What a pod says of itself.
    pub(crate) fn with_facts(self, uid: &str, kind: &str, start: &str) -> Self {
        self.with_all([
            ("KEELSON_NODE_UID", uid),
            ("KEELSON_POD_KIND", kind),
            ("KEELSON_START_FINGERPRINT", start),
        ])
    }

    pub(crate) fn log_path(&self) -> PathBuf {
        self.home.with_extension("log")
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// The program with a home and a port, and none of our own environment.
    pub(crate) fn command(&self, program: &str) -> Command {
        let log: File = OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.log_path())
            .expect("a log");
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs(["SEI_CHAIN_ID", "SEI_GENESIS_BUCKET", "SEI_GENESIS_REGION"].map(|it| (it, "x")))
            .envs(["SEI_SNAPSHOT_BUCKET", "SEI_SNAPSHOT_REGION"].map(|it| (it, "x")))
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("SEI_HOME", &self.home)
            .env("SEI_SIDECAR_PORT", self.port.to_string())
            .env("KEELSON_SIDECAR_BIND", "127.0.0.1")
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        command
    }

    /// Starts the program without waiting for it.
    pub(crate) fn spawn(&mut self) {
        let mut command = match self.user {
            None => self.command(PROGRAM),
            Some(user) => self.command_of(user),
        };
        let child = command.arg("serve").spawn();
        self.child = Some(child.expect("the program"));
    }

    /// The program as another user runs it, from where that user may read it.
    fn command_of(&self, user: u32) -> Command {
        chown(&self.home, Some(user.into()), Some(user.into())).expect("root");
        let program = self.program_path();
        // Copied by a process of its own: a file that anyone here still has open for writing cannot
        // be run.
        let copied = Command::new("cp").arg(PROGRAM).arg(&program).status();
        assert!(copied.expect("cp").success());
        let mut command = self.command(&program.to_string_lossy());
        command.uid(user).gid(user);
        command
    }

    fn program_path(&self) -> PathBuf {
        self.home.with_extension("program")
    }

    /// Starts the program and waits until it answers.
    pub(crate) fn run(&mut self) {
        self.spawn();
        until("an answer", || {
            let child = self.child.as_mut().expect("a child");
            let ended = child.try_wait().expect("a child");
            assert!(ended.is_none(), "{ended:?}: {}", self.log());
            self.try_call("GET", "/v0/healthz", "", "")
        });
    }

    /// Runs the program to its end; whether it ended well, and what it said.
    pub(crate) fn refuses(&mut self) -> String {
        self.spawn();
        let status = self.exit();
        assert!(!status.success(), "{}", self.log());
        self.log()
    }

    pub(crate) fn exit(&mut self) -> ExitStatus {
        let mut child = self.child.take().expect("a child");
        until("the end of the program", || {
            child.try_wait().expect("a child")
        })
    }

    pub(crate) fn is_dead(&mut self) -> bool {
        let child = self.child.as_mut().expect("a child");
        child.try_wait().expect("a child").is_some()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let child = self.child.as_ref().expect("a child");
        kill(Pid::from_raw(child.id().cast_signed()), signal).expect("a signal");
    }

    /// What a power cut does.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub(crate) fn restart(&mut self) {
        self.kill();
        self.run();
    }

    pub(crate) fn connect(&self) -> Option<TcpStream> {
        connect(self.port)
    }

    pub(crate) fn try_call(
        &self,
        method: &str,
        path: &str,
        headers: &str,
        body: &str,
    ) -> Option<Reply> {
        ask(self.port, method, path, headers, body)
    }

    pub(crate) fn call(&self, method: &str, path: &str, headers: &str, body: &str) -> Reply {
        let reply = self.try_call(method, path, headers, body);
        reply.unwrap_or_else(|| panic!("no answer to {method} {path}: {}", self.log()))
    }

    pub(crate) fn get(&self, path: &str) -> Reply {
        self.call("GET", path, "", "")
    }

    pub(crate) fn post(&self, body: &Value) -> Reply {
        self.call("POST", "/v0/tasks", "", &body.to_string())
    }

    /// Submits a task, waits for its end, and brings it back.
    pub(crate) fn perform(&self, type_: &str, params: Value) -> Value {
        let reply = self.post(&json!({"type": type_, "params": params}));
        assert_eq!(reply.status, 201, "{reply:?}");
        let id = reply.json()["id"].as_str().expect("an id").to_owned();
        self.ended(&id)
    }

    pub(crate) fn ended(&self, id: &str) -> Value {
        until("the task's end", || {
            let reply = self.get(&format!("/v0/tasks/{id}"));
            let task = (reply.status == 200).then(|| reply.json())?;
            (task["status"] != "running").then_some(task)
        })
    }

    pub(crate) fn completes(&self, type_: &str, params: Value) {
        let task = self.perform(type_, params);
        assert_eq!(task["status"], "completed", "{task}");
    }

    pub(crate) fn is_open(&self) -> bool {
        match self.get("/v0/healthz").status {
            200 => true,
            503 => false,
            other => panic!("{other}"),
        }
    }
}
