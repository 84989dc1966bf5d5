//! The node's process: finding it, telling it to end, and seeing it gone.
//!
//! Sidecar and node share a process namespace and a user, so the node is seen in `/proc` and may be
//! signalled. Which process is the node is a pure question ([`seen`]). A process that was found is
//! held by a pidfd: it stays that process, whatever its number is given to later, and its end is an
//! event instead of a number that is asked for again and again. A process that has ended and that
//! nobody has collected yet is gone: it holds no file and no port.

pub mod seen;

pub use seen::{Kin, Seen, judge};

use crate::home::Home;
use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, PidfdFlags, Signal, getuid, pidfd_open, pidfd_send_signal};
use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Why the node's process cannot be found or ended.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The list of processes.
    #[error("{} cannot be read: {source}", path.display())]
    Unlisted {
        /// What was to be read.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Numbers in `/proc` mean other processes than they mean to the kernel when we use them.
    #[error("{} belongs to another process namespace than the sidecar: nothing is signalled", path.display())]
    Foreign {
        /// Where processes are listed.
        path: PathBuf,
    },
    /// A process cannot be held.
    #[error("process {pid} cannot be held by a pidfd: {source}")]
    Unheld {
        /// Its number.
        pid: i32,
        /// What the system says.
        source: io::Error,
    },
    /// A process of somebody else.
    #[error(
        "process {pid} may not be signalled by user {user}: run sidecar and seid as the same user"
    )]
    Denied {
        /// Its number.
        pid: i32,
        /// Who we are.
        user: u32,
    },
    /// A process that cannot be signalled for another reason.
    #[error("process {pid} cannot be signalled: {source}")]
    Unsent {
        /// Its number.
        pid: i32,
        /// What the system says.
        source: io::Error,
    },
    /// A process that does not end.
    #[error("process {pid} has not ended within {} s after {last}", waited.as_secs())]
    Stubborn {
        /// Its number.
        pid: i32,
        /// The last signal it was sent.
        last: &'static str,
        /// How long it had.
        waited: Duration,
    },
}

/// How long a killed process may take to be gone: the kernel has to give back what it holds.
const BURIAL: Duration = Duration::from_secs(30);
/// How long a thread waits for a process at once. Whoever waits may stop waiting, and its thread
/// should not stay behind for long.
const AT_ONCE: Duration = Duration::from_millis(500);

/// What becomes of a process that does not end by itself in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Insist {
    /// It is left alone, and the caller is told.
    Never,
    /// It is killed.
    Kill,
}

/// Processes, as far as the node of one home is concerned.
#[derive(Clone, Debug)]
pub struct Processes {
    proc: PathBuf,
    homes: Vec<PathBuf>,
}

/// What was found.
#[derive(Debug, Default)]
pub struct Found {
    /// Processes of the node: one, as a rule.
    pub nodes: Vec<Node>,
    /// Nodes of other homes, by number.
    pub others: Vec<(i32, PathBuf)>,
}

/// A process of the node, held.
#[derive(Debug)]
pub struct Node {
    /// Its number when it was found.
    pub pid: i32,
    /// When it was started, where that can be told.
    pub started: Option<Timestamp>,
    held: Arc<OwnedFd>,
}

impl Processes {
    /// Processes of the node whose home this is.
    pub fn of(home: &Home) -> Self {
        Self::listed_in(Path::new("/proc"), home)
    }

    /// The same, where they are listed elsewhere.
    pub fn listed_in(proc: &Path, home: &Home) -> Self {
        let told = std::path::absolute(home.path()).unwrap_or_else(|_| home.path().to_owned());
        let homes = match told.canonicalize() {
            Ok(real) if real != told => vec![told, real],
            _ => vec![told],
        };
        Self {
            proc: proc.to_owned(),
            homes,
        }
    }

    /// Finds the node. Reads many small files; not for a thread that serves.
    pub fn find(&self) -> Result<Found, Trouble> {
        self.check_namespace()?;
        let unlisted = |source| Trouble::Unlisted {
            path: self.proc.clone(),
            source,
        };
        let mut found = Found::default();
        for entry in fs::read_dir(&self.proc).map_err(unlisted)? {
            let name = entry.map_err(unlisted)?.file_name();
            let Some(pid) = name.to_str().and_then(|it| it.parse::<i32>().ok()) else {
                continue;
            };
            match self.look(pid) {
                Kin::Node => self.hold(pid, &mut found)?,
                Kin::Other(home) => found.others.push((pid, home)),
                Kin::Stranger => {}
            }
        }
        Ok(found)
    }

    /// Where `/proc` is another namespace's, its numbers are not ours.
    fn check_namespace(&self) -> Result<(), Trouble> {
        let path = self.proc.join("self/status");
        let status = fs::read_to_string(&path).map_err(|source| Trouble::Unlisted {
            path: path.clone(),
            source,
        })?;
        match seen::is_nested(&status) {
            true => Err(Trouble::Foreign {
                path: self.proc.clone(),
            }),
            false => Ok(()),
        }
    }

    fn look(&self, pid: i32) -> Kin {
        // Whatever goes away while it is looked at is no node.
        Seen::read(&self.proc.join(pid.to_string()))
            .map_or(Kin::Stranger, |seen| judge(&seen, &self.homes))
    }

    /// When a process was started, by the clock that counts since the machine was.
    fn started(&self, pid: i32) -> Option<Timestamp> {
        let stat = fs::read_to_string(self.proc.join(pid.to_string()).join("stat")).ok()?;
        let uptime = fs::read_to_string(self.proc.join("uptime")).ok()?;
        let age = seen::age(&stat, &uptime, clock_ticks_per_second())?;
        Timestamp::now().checked_sub(age).ok()
    }

    /// Holds a process that looks like the node, and looks again: if it is still the node and still
    /// there, then it is the process that is held, for its number cannot have been given away.
    fn hold(&self, pid: i32, found: &mut Found) -> Result<(), Trouble> {
        let Some(number) = Pid::from_raw(pid) else {
            return Ok(());
        };
        let held = match pidfd_open(number, PidfdFlags::empty()) {
            Ok(held) => held,
            Err(Errno::SRCH) => return Ok(()),
            Err(source) => {
                let source = source.into();
                return Err(Trouble::Unheld { pid, source });
            }
        };
        let held = Arc::new(held);
        let started = self.started(pid);
        let node = Node { pid, started, held };
        if self.look(pid) == Kin::Node && !node.is_gone() {
            found.nodes.push(node);
        }
        Ok(())
    }
}

impl Node {
    /// Whether it has ended.
    pub fn is_gone(&self) -> bool {
        has_ended(&self.held, Duration::ZERO)
    }

    /// Tells it to end, and waits until it has.
    pub async fn end(self, grace: Duration, insist: Insist) -> Result<(), Trouble> {
        self.send(Signal::TERM)?;
        if self.ends(grace).await {
            return Ok(());
        }
        if insist == Insist::Never {
            return Err(self.stubborn("SIGTERM", grace));
        }
        self.send(Signal::KILL)?;
        match self.ends(BURIAL).await {
            true => Ok(()),
            false => Err(self.stubborn("SIGKILL", BURIAL)),
        }
    }

    /// Sends a signal; one that has ended needs none.
    fn send(&self, signal: Signal) -> Result<(), Trouble> {
        let pid = self.pid;
        match pidfd_send_signal(&self.held, signal) {
            Ok(()) | Err(Errno::SRCH) => Ok(()),
            Err(Errno::PERM) => Err(Trouble::Denied {
                pid,
                user: getuid().as_raw(),
            }),
            Err(source) => Err(Trouble::Unsent {
                pid,
                source: source.into(),
            }),
        }
    }

    /// Waits for its end, for so long; says whether it came.
    async fn ends(&self, within: Duration) -> bool {
        let deadline = Instant::now() + within;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let held = Arc::clone(&self.held);
            let waiting = move || has_ended(&held, left.min(AT_ONCE));
            let ended = tokio::task::spawn_blocking(waiting).await.unwrap_or(false);
            if ended || left.is_zero() {
                return ended;
            }
        }
    }

    fn stubborn(&self, last: &'static str, waited: Duration) -> Trouble {
        let pid = self.pid;
        Trouble::Stubborn { pid, last, waited }
    }
}

/// Waits for the end of a process on the calling thread: a pidfd can be read from when its process
/// has ended, and not before.
fn has_ended(held: &OwnedFd, within: Duration) -> bool {
    let mut asked = [PollFd::new(held, PollFlags::IN)];
    let within = Timespec::try_from(within).unwrap_or_default();
    matches!(poll(&mut asked, Some(&within)), Ok(1))
}
