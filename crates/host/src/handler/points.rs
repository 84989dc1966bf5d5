//! The points at which a test can stop a handler, by name: one before and one after everything that
//! leaves a trace on the host.
//!
//! A handler whose variable [`VARIABLE`] names a point stops there by SIGSTOP, as often as it comes by,
//! so that a test can kill it, or whoever it depends on, at exactly that moment. Where the variable is
//! not set, a point is nothing.

use nix::sys::signal::{Signal, raise};
use std::fmt;

/// The variable that names a point.
pub const VARIABLE: &str = "KEELSON_STOP_AT";

/// Something that leaves a trace on the host, or that takes long enough to die in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Everything is written down.
    NotePrepared,
    /// What comes is written down.
    NoteApplying,
    /// The state is applied.
    Apply,
    /// The checkpoint is written down.
    NoteApplied,
    /// The probes are asked.
    Probe,
    /// That the host is reachable is written down.
    NoteVerified,
    /// NetworkManager forgets the checkpoint.
    Commit,
    /// That it has is written down.
    NoteCommitted,
    /// That the change is being undone is written down.
    NoteRollingBack,
    /// NetworkManager goes back to the checkpoint.
    RollBack,
    /// The state that leads back is applied.
    Revert,
    /// Profiles are made those of before.
    RestoreProfiles,
    /// That nothing is left to do is written down.
    NoteClosed,
    /// What came of it is noted for its policy.
    Account,
}

impl Act {
    /// All of them, in the order of a change.
    pub const ALL: [Self; 14] = [
        Self::NotePrepared,
        Self::NoteApplying,
        Self::Apply,
        Self::NoteApplied,
        Self::Probe,
        Self::NoteVerified,
        Self::Commit,
        Self::NoteCommitted,
        Self::NoteRollingBack,
        Self::RollBack,
        Self::Revert,
        Self::RestoreProfiles,
        Self::NoteClosed,
        Self::Account,
    ];

    const fn name(self) -> &'static str {
        match self {
            Self::NotePrepared => "note-prepared",
            Self::NoteApplying => "note-applying",
            Self::Apply => "apply",
            Self::NoteApplied => "note-applied",
            Self::Probe => "probe",
            Self::NoteVerified => "note-verified",
            Self::Commit => "commit",
            Self::NoteCommitted => "note-committed",
            Self::NoteRollingBack => "note-rolling-back",
            Self::RollBack => "roll-back",
            Self::Revert => "revert",
            Self::RestoreProfiles => "restore-profiles",
            Self::NoteClosed => "note-closed",
            Self::Account => "account",
        }
    }
}

/// Before or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    /// Right before.
    Before(Act),
    /// Right after.
    After(Act),
}

impl Point {
    /// Every point, in the order of a change.
    pub fn all() -> impl Iterator<Item = Self> {
        let acts = Act::ALL.into_iter();
        acts.flat_map(|act| [Self::Before(act), Self::After(act)])
    }

    /// Stops here if this is the point that is named.
    pub fn pass(self) {
        let named = std::env::var(VARIABLE);
        if named.is_ok_and(|name| name == self.to_string()) {
            tracing::warn!(point = %self, "stopped, as {VARIABLE} says");
            // Whoever set the variable continues or ends us.
            let _ = raise(Signal::SIGSTOP);
        }
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Before(act) => write!(f, "before-{}", act.name()),
            Self::After(act) => write!(f, "after-{}", act.name()),
        }
    }
}

/// Does something that has a point before and after it.
pub async fn around<T>(act: Act, work: impl Future<Output = T>) -> T {
    Point::Before(act).pass();
    let done = work.await;
    Point::After(act).pass();
    done
}
