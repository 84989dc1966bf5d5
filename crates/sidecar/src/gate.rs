//! The start gate: seid's container waits at `/v0/healthz` until it is open.
//!
//! The gate itself is a flag of this process. Beside it there is a record on the volume that says
//! what was approved ([`record`]), so that a sidecar that comes back opens the gate by itself, with
//! nobody to ask. `mark-ready` opens the gate and writes the record; `mark-not-ready` takes the
//! record away and closes the gate.
//!
//! Other tasks change what was approved. There are two kinds, see [`crate::engine::policy::Effect`]:
//!
//! * What *sets a node up* (a snapshot, a genesis, a configuration written anew, wiped data) closes
//!   the gate and takes the record away before it writes: nothing may start in between.
//! * What *changes a node that runs* (a patch, peers) is for its next start. The gate stays as it is,
//!   because the process behind it runs. The record names both configurations while the files are
//!   being replaced and the new one alone afterwards: a sidecar killed in between finds the old files
//!   or the new ones approved, and a mixed pair not, until the task was taken up and has finished it.
//!   A configuration that does not pass the checks is not carried over: the record goes.
//!
//! Either kind leaves everything alone where it would write what is already there.

pub mod record;

pub use record::{Evidence, Facts, PodKind, Reason, Record, approved};

use crate::configuration;
use crate::disk;
use crate::home::Home;
use jiff::Timestamp;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Why the gate could not be moved.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// A file.
    #[error("{0}")]
    Disk(#[from] disk::Trouble),
    /// The store.
    #[error("{0}")]
    Store(#[from] crate::store::StoreError),
    /// A hold came first.
    #[error("a hold came first")]
    Cancelled,
}

/// The gate.
#[derive(Debug)]
pub struct Gate {
    home: Home,
    facts: Option<Facts>,
    /// Read without waiting for whoever moves the gate: a slow disk must not keep seid's container,
    /// or a probe, from an answer.
    open: AtomicBool,
    turn: Mutex<State>,
}

/// What only whose turn it is may look at.
#[derive(Debug, Default)]
struct State {
    /// The record names a configuration that a task was writing when its sidecar died; when the task
    /// has been taken up and has written it, the gate may open.
    half_written: bool,
}

impl Gate {
    /// A closed gate.
    pub fn new(home: Home, facts: Option<Facts>) -> Self {
        Self {
            home,
            facts,
            open: AtomicBool::new(false),
            turn: Mutex::default(),
        }
    }

    /// Whether seid may start.
    pub fn is_open(&self) -> bool {
        self.open.load(Ordering::SeqCst)
    }

    fn turn(&self) -> MutexGuard<'_, State> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, open: bool) {
        self.open.store(open, Ordering::SeqCst);
    }

    /// Opens the gate, if what was approved before is what is there now.
    pub fn restore(&self, evidence: &Evidence) -> Result<(), Reason> {
        let mut state = self.turn();
        let record = self.load()?;
        let hash = self.hash().map_err(Reason::unreadable)?;
        let verdict = approved(record.as_ref(), self.facts.as_ref(), &hash, evidence);
        state.half_written = matches!(verdict, Err(Reason::OtherConfiguration))
            && record.as_ref().is_some_and(|record| record.next.is_some());
        verdict?;
        self.set(true);
        Ok(())
    }

    /// Opens the gate and records what it was opened for. A hold that came first is heeded.
    pub fn approve(&self, at: Timestamp, cancelled: impl Fn() -> bool) -> Result<(), GateError> {
        let mut state = self.turn();
        if cancelled() {
            return Err(GateError::Cancelled);
        }
        if let Some(facts) = &self.facts {
            let record = Record::new(facts, self.hash()?, at);
            self.save(&record)?;
        }
        state.half_written = false;
        self.set(true);
        Ok(())
    }

    /// Takes the record away, forgets every release, and closes the gate. If forgetting fails, the
    /// gate of this process stays as it is and the caller is told; the record is gone all the same.
    pub fn hold(
        &self,
        forget_releases: impl FnOnce() -> Result<(), GateError>,
    ) -> Result<(), GateError> {
        let mut state = self.turn();
        disk::remove(&self.home.approval())?;
        forget_releases()?;
        state.half_written = false;
        self.set(false);
        Ok(())
    }

    /// Takes the record away and closes the gate, before something sets the node up.
    pub fn close(&self) -> Result<(), GateError> {
        let mut state = self.turn();
        state.half_written = false;
        self.set(false);
        disk::remove(&self.home.approval())?;
        Ok(())
    }

    /// Replaces the configuration (`before` and `after` are hashes of it) and carries the approval
    /// over, where there is one that `before` has.
    pub fn carry(
        &self,
        before: &str,
        after: &str,
        sound: bool,
        write: impl FnOnce() -> Result<(), disk::Trouble>,
    ) -> Result<(), GateError> {
        let mut state = self.turn();
        let carried = match (self.load().ok().flatten(), &self.facts) {
            (Some(record), Some(facts)) if sound && record.is_for(facts) => {
                record.carried(before, after)
            }
            _ => None,
        };
        match &carried {
            Some(record) => self.save(record)?,
            None => disk::remove(&self.home.approval())?,
        }
        write()?;
        if let Some(record) = carried {
            self.save(&record.settled(after))?;
            if state.half_written {
                self.set(true);
            }
        }
        state.half_written = false;
        Ok(())
    }

    fn hash(&self) -> Result<String, disk::Trouble> {
        Ok(keelson_seid_config::fingerprint(&configuration::read(
            &self.home,
        )?))
    }

    fn load(&self) -> Result<Option<Record>, Reason> {
        let text = disk::read(&self.home.approval()).map_err(Reason::unreadable)?;
        text.map(|text| Record::parse(&text)).transpose()
    }

    fn save(&self, record: &Record) -> Result<(), disk::Trouble> {
        disk::replace(&self.home.approval(), record.text().as_bytes(), 0o644)
    }
}
