//! The two programs under comparison, and one of them running.

use crate::upstream::Upstream;
use crate::wire::Door;
use keelson_testbed::faults::FaultProxy;
use keelson_testbed::{Peer, peer, until};
use rustls::ClientConfig;
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(20);

/// Which program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    KubeRbacProxy,
    Keelson,
}

impl Subject {
    pub(crate) fn program(self) -> PathBuf {
        match self {
            Self::Keelson => env!("CARGO_BIN_EXE_keelson-proxy").into(),
            Self::KubeRbacProxy => peer(Peer::KubeRbacProxy).expect("kube-rbac-proxy"),
        }
    }
}

/// A port nobody has, from below those the system hands out.
pub(crate) fn free() -> SocketAddr {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let first = 10_000 + u16::try_from(std::process::id() % 48).expect("small") * 200;
    loop {
        let port = first + NEXT.fetch_add(1, Ordering::Relaxed);
        if let Ok(socket) = TcpListener::bind(("127.0.0.1", port)) {
            return socket.local_addr().expect("an address");
        }
    }
}

/// A folder of a process' own, removed with it.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("keelson-parity-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    /// Writes a file and says where it is.
    pub(crate) fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("a file");
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a subject is started with, beside its flags.
pub(crate) struct Surroundings {
    /// The API server, or what stands for it, behind a proxy of this subject's own.
    pub(crate) faults: FaultProxy,
    pub(crate) upstream: Upstream,
    pub(crate) config: Option<String>,
    /// Certificate and key to serve, and a client that trusts them: the listener is then TLS.
    pub(crate) tls: Option<(String, String, Arc<ClientConfig>)>,
}

/// A subject that has been started.
pub(crate) struct Running {
    pub(crate) subject: Subject,
    pub(crate) door: Door,
    pub(crate) faults: FaultProxy,
    pub(crate) upstream: Upstream,
    pub(crate) folder: Folder,
    pub(crate) child: Child,
}

impl Running {
    /// Starts a subject and waits until it listens.
    pub(crate) async fn start(subject: Subject, around: Surroundings, flags: &[String]) -> Self {
        let mut running = Self::launch(subject, around, flags);
        running.listening(running.door.address).await;
        running
    }

    /// Starts a subject that may as well refuse to.
    pub(crate) fn launch(subject: Subject, around: Surroundings, flags: &[String]) -> Self {
        let folder = Folder::new();
        let address = free();
        let mut words = vec![
            format!("--upstream=http://{}", around.upstream.address),
            format!(
                "--kubeconfig={}",
                folder.file("kubeconfig", &around.faults.kubeconfig())
            ),
        ];
        if let Some(config) = &around.config {
            words.push(format!(
                "--config-file={}",
                folder.file("config.yaml", config)
            ));
        }
        let tls = around.tls.map(|(certificate, key, client)| {
            let certificate = folder.file("tls.crt", &certificate);
            let key = folder.file("tls.key", &key);
            words.push(format!("--tls-cert-file={certificate}"));
            words.push(format!("--tls-private-key-file={key}"));
            client
        });
        words.push(match tls {
            Some(_) => format!("--secure-listen-address={address}"),
            None => format!("--insecure-listen-address={address}"),
        });
        // A flag that is given twice has its last value.
        let upstream = format!("http://{}", around.upstream.address);
        words.extend(flags.iter().map(|it| it.replace("{upstream}", &upstream)));
        let log = File::create(folder.0.join("log")).expect("a log");
        let child = Command::new(subject.program())
            .args(words)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a log"))
            .stderr(log)
            .spawn()
            .expect("the program");
        Self {
            subject,
            door: Door { address, tls },
            faults: around.faults,
            upstream: around.upstream,
            folder,
            child,
        }
    }

    /// Waits until something listens there, while the program lives.
    pub(crate) async fn listening(&mut self, address: SocketAddr) {
        let (child, log) = (&mut self.child, self.folder.0.join("log"));
        let what = format!("{:?} on {address}", self.subject);
        let waited = until(&what, SOON, async || {
            if let Ok(Some(status)) = child.try_wait() {
                let said = std::fs::read_to_string(&log).unwrap_or_default();
                panic!("{what} ended with {status}:\n{said}");
            }
            let connected = tokio::net::TcpStream::connect(address).await;
            connected.map(drop).map_err(|error| error.to_string())
        });
        waited.await.expect("a subject that listens");
    }

    /// Waits for its end.
    pub(crate) async fn ended(&mut self) -> ExitStatus {
        let child = &mut self.child;
        let waited = until("the end of the program", SOON, async || {
            match child.try_wait() {
                Ok(Some(status)) => Ok(status),
                other => Err(format!("{other:?}")),
            }
        });
        waited.await.expect("an end")
    }

    pub(crate) fn lives(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// What it wrote.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.folder.0.join("log")).unwrap_or_default()
    }

    /// How often the API server was asked: about tokens, about access.
    pub(crate) fn reviews(&self) -> (usize, usize) {
        let calls = self.faults.calls();
        let count = |resource| calls.iter().filter(|it| it.resource == resource).count();
        (count("tokenreviews"), count("subjectaccessreviews"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- {:?} ---\n{}", self.subject, self.log());
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
