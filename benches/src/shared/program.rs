//! A program that runs beside the bench and ends with it.

use crate::process;
use anyhow::Context;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a program may take until it serves, and until it ends.
pub const SOON: Duration = Duration::from_secs(20);

/// Ports nobody has.
pub fn free_ports<const N: usize>() -> anyhow::Result<[u16; N]> {
    let sockets = [(); N].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
    let mut ports = [0; N];
    for (port, socket) in ports.iter_mut().zip(sockets) {
        *port = socket.and_then(|it| it.local_addr())?.port();
    }
    Ok(ports)
}

/// A program that was started. Dropping it ends it.
#[derive(Debug)]
pub struct Program {
    name: String,
    log: PathBuf,
    child: Child,
    /// When it was started.
    pub started: Instant,
}

/// The program with its words, to be taken along by the thread that starts it: a bench that is killed
/// leaves nothing running. What it says goes to the log.
pub fn command(words: &[OsString], log: &Path) -> anyhow::Result<Command> {
    let (out, err) = (File::create(log)?, File::options().append(true).open(log)?);
    let mut command = Command::new("setpriv");
    command
        .args(["--pdeathsig", "TERM", "--"])
        .args(words)
        .stdin(Stdio::null())
        .stdout(out)
        .stderr(err);
    Ok(command)
}

impl Program {
    /// Starts it.
    pub fn start(name: &str, command: &mut Command, log: &Path) -> anyhow::Result<Self> {
        let started = Instant::now();
        let child = command
            .spawn()
            .with_context(|| format!("{name} could not be started"))?;
        Ok(Self {
            name: name.to_owned(),
            log: log.to_owned(),
            child,
            started,
        })
    }

    /// Looks until it does what is waited for. One that ends, or that takes too long, is an error with
    /// all it said.
    pub fn until<T>(
        &mut self,
        what: &str,
        mut look: impl FnMut() -> Option<T>,
    ) -> anyhow::Result<T> {
        loop {
            if let Some(seen) = look() {
                return Ok(seen);
            }
            let name = &self.name;
            if let Some(status) = self.child.try_wait()? {
                anyhow::bail!("{name} ended ({status}): {}", self.said());
            }
            anyhow::ensure!(
                self.started.elapsed() < SOON,
                "{name} does not {what} after {SOON:?}: {}",
                self.said()
            );
            std::thread::sleep(Duration::from_micros(100));
        }
    }

    fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// User and system time of it and its children so far.
    pub fn cpu_time(&self) -> anyhow::Result<Duration> {
        process::cpu_time(self.pid())
    }

    /// Resident bytes of it and its children.
    pub fn resident(&self) -> anyhow::Result<u64> {
        process::resident(self.pid())
    }

    /// What a power cut does.
    pub fn kill(&mut self) -> anyhow::Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        if !matches!(self.child.try_wait(), Ok(None)) {
            return;
        }
        // nginx tells its worker only when it is asked to end, not when it is killed.
        let _ = kill(Pid::from_raw(self.pid().cast_signed()), Signal::SIGTERM);
        let until = Instant::now() + SOON;
        while Instant::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
