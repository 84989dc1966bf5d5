//! Who is on stage: the sidecar with a home of its own, the S3 server, and the room they have.

use crate::archives::CHAIN;
use crate::caller::Caller;
use anyhow::Context;
use keelson_bench::checkout::released;
use keelson_bench::program::{self, Program, free_ports};
use keelson_testbed::{Peer, peer};
use nix::unistd::syncfs;
use std::fs::{self, File};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

const ACCESS_KEY: &str = "AKIAKEELSONBENCH";
const SECRET_KEY: &str = "a-secret-of-the-bench";
pub(crate) const REGION: &str = "eu-central-1";

/// A folder beside what is kept, empty at first and gone at the end. One bench has it at a time, so
/// what a killed one left is nobody's.
#[derive(Debug)]
pub(crate) struct Scratch {
    pub(crate) folder: PathBuf,
    _alone: File,
}

impl Scratch {
    pub(crate) fn take(kept: &Path) -> anyhow::Result<Self> {
        fs::create_dir_all(kept).with_context(|| format!("{} is not made", kept.display()))?;
        let lock = kept.join("lock");
        let alone = File::create(&lock)?;
        let held = alone.try_lock();
        held.with_context(|| format!("{}: another bench runs", lock.display()))?;
        let folder = kept.join("scratch");
        let scratch = Self {
            folder,
            _alone: alone,
        };
        scratch.clear()?;
        Ok(scratch)
    }

    /// Empties it and waits until the disk has nothing to do: what one run left is not for the next
    /// to pay.
    pub(crate) fn clear(&self) -> anyhow::Result<()> {
        if self.folder.exists() {
            fs::remove_dir_all(&self.folder)
                .with_context(|| format!("{} is not removed", self.folder.display()))?;
        }
        fs::create_dir_all(&self.folder)?;
        syncfs(File::open(&self.folder)?)?;
        Ok(())
    }

    /// A folder in it.
    pub(crate) fn folder(&self, name: &str) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join(name);
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The S3 server.
#[derive(Debug)]
pub(crate) struct Gateway {
    _program: Program,
    pub(crate) port: u16,
}

impl Gateway {
    /// Serves the folders below one as buckets.
    pub(crate) fn start(buckets: &Path, log: &Path) -> anyhow::Result<Self> {
        let [port] = free_ports()?;
        let address = format!("127.0.0.1:{port}");
        let words = [
            peer(Peer::Versitygw)?.into(),
            "--quiet".into(),
            "--keep-alive".into(),
            "--region".into(),
            REGION.into(),
            "--port".into(),
            address.into(),
            "posix".into(),
            buckets.as_os_str().to_owned(),
        ];
        let mut command = program::command(&words, log)?;
        command
            .env("ROOT_ACCESS_KEY", ACCESS_KEY)
            .env("ROOT_SECRET_KEY", SECRET_KEY);
        let mut program = Program::start("versitygw", &mut command, log)?;
        program.until("listen", || {
            TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok()
        })?;
        Ok(Self {
            _program: program,
            port,
        })
    }
}

/// What curl reads so that the secret is on no command line.
pub(crate) fn curl_user() -> String {
    format!("user = \"{ACCESS_KEY}:{SECRET_KEY}\"\n")
}

/// How a sidecar is started: the same home and port every time.
#[derive(Debug)]
pub(crate) struct Seat {
    pub(crate) home: PathBuf,
    pub(crate) port: u16,
    /// The bucket of snapshots.
    bucket: String,
    /// Where buckets are asked for, if not in a folder.
    endpoint: Option<u16>,
}

/// A sidecar that serves. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Sidecar {
    pub(crate) program: Program,
    /// From its start to its first answer.
    pub(crate) serving_after: Duration,
}

impl Seat {
    pub(crate) fn new(
        home: PathBuf,
        bucket: String,
        endpoint: Option<u16>,
    ) -> anyhow::Result<Self> {
        let [port] = free_ports()?;
        Ok(Self {
            home,
            port,
            bucket,
            endpoint,
        })
    }

    /// Starts the sidecar and waits until it answers.
    pub(crate) fn start(&self) -> anyhow::Result<Sidecar> {
        let log = self.home.with_extension("log");
        let words = [released("keelson-sidecar")?.into(), "serve".into()];
        let mut command = program::command(&words, &log)?;
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("SEI_CHAIN_ID", CHAIN)
            .env("SEI_HOME", &self.home)
            .env("SEI_SIDECAR_PORT", self.port.to_string())
            .env("KEELSON_SIDECAR_BIND", "127.0.0.1")
            .env("SEI_GENESIS_BUCKET", "genesis")
            .env("SEI_GENESIS_REGION", REGION)
            .env("SEI_SNAPSHOT_BUCKET", &self.bucket)
            .env("SEI_SNAPSHOT_REGION", REGION)
            .env("AWS_ACCESS_KEY_ID", ACCESS_KEY)
            .env("AWS_SECRET_ACCESS_KEY", SECRET_KEY);
        if let Some(port) = self.endpoint {
            command.env(
                "SEI_OBJECT_STORE_ENDPOINT",
                format!("http://127.0.0.1:{port}"),
            );
        }
        let mut program = Program::start("keelson-sidecar", &mut command, &log)?;
        program.until("answer", || {
            Caller::connect(self.port).ok()?.get("/v0/status").ok()
        })?;
        let serving_after = program.started.elapsed();
        Ok(Sidecar {
            program,
            serving_after,
        })
    }
}
