//! What to do about a change that was begun: the one decision, taken after an apply and after every
//! start, from the journal and from what is seen.
//!
//! The handler may have died anywhere, and NetworkManager or the host with it; the rules know no
//! difference. A change that was not verified is kept under no circumstances: while its checkpoint is
//! pending it is probed, and otherwise undone. From *Verified* on, the new state is kept if it is there
//! whole. Undoing ends only when the state and every connection profile are those from before.
//!
//! NetworkManager's checkpoints have no owner. Ours is the one the journal names, made at the time the
//! journal names, in this boot; any other one is foreign and is waited for, before anything is undone
//! and before a change is called done: neither it nor what lies under it is touched. One that was made
//! while we died in *Applying* is not known to be ours, so it is waited for, too; it ends by itself. Who
//! carries out a step on a checkpoint calls the NetworkManager it was seen at, by its unique name on the
//! bus: after another start the path may be somebody else's.
//!
//! Whether a state is that of before or the new one is for the caller to say, once NetworkManager has
//! finished starting.

use super::journal::{Checkpoint, End, Entry, Phase};

/// What the host's state is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// That of before the change.
    Before,
    /// The one asked for: applying it would change nothing.
    After,
    /// Neither.
    Neither,
}

/// What the probes say, see [`Baseline::judge`](super::probe::Baseline::judge).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The host is as reachable as it was.
    Passed,
    /// It is not.
    Failed,
}

/// What is seen of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The boot it is in.
    pub boot: String,
    /// Checkpoints that are pending, whoever made them.
    pub checkpoints: Vec<Checkpoint>,
    /// What its state is like.
    pub state: Likeness,
    /// Whether its connection profiles are exactly those in the journal.
    pub profiles_as_before: bool,
    /// What the probes say, if they were asked in this look.
    pub probes: Option<Verdict>,
}

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Ask the probes, and look again.
    Probe,
    /// Have NetworkManager forget this checkpoint of ours.
    Commit(Checkpoint),
    /// Have NetworkManager go back to this checkpoint of ours.
    RollBack(Checkpoint),
    /// Apply the state that leads back.
    Revert,
    /// Make the connection profiles those from before.
    RestoreProfiles,
    /// Note that the new state stays.
    Keep,
    /// Wait until this checkpoint, which is not ours, is gone.
    Wait(Checkpoint),
    /// Note that nothing is left to do.
    Close(End),
    /// Nothing.
    Rest,
}

impl Step {
    /// The phase that is in the journal before this is done. Without it nothing is committed or closed.
    /// Undoing goes on if it cannot be written: whatever stands there leads to undoing again.
    pub fn phase(&self) -> Option<Phase> {
        match self {
            Self::Commit(_) => Some(Phase::Verified),
            Self::RollBack(_) | Self::Revert | Self::RestoreProfiles => Some(Phase::RollingBack),
            Self::Keep => Some(Phase::Committed),
            Self::Close(_) => Some(Phase::Closed),
            Self::Probe | Self::Wait(_) | Self::Rest => None,
        }
    }

    /// Whether this is part of undoing.
    pub fn is_undoing(&self) -> bool {
        self.phase() == Some(Phase::RollingBack)
    }
}

/// What to do now about a change.
pub fn next(entry: &Entry, seen: &Seen) -> Step {
    let ours = ours(entry, seen);
    match (entry.phase, seen.state, ours) {
        (Phase::Closed, ..) => Step::Rest,
        (Phase::Prepared, ..) => Step::Close(End::NotBegun),
        (Phase::Committed, ..) => Step::Close(End::Kept),
        (Phase::Verified, Likeness::After, Some(ours)) => Step::Commit(ours.clone()),
        // A foreign one may have been made in the middle of our change, and lead back to there.
        (Phase::Verified, Likeness::After, None) => match seen.checkpoints.first() {
            Some(foreign) => Step::Wait(foreign.clone()),
            None => Step::Keep,
        },
        (Phase::Applied, Likeness::After, Some(ours)) => match seen.probes {
            None => Step::Probe,
            Some(Verdict::Passed) => Step::Commit(ours.clone()),
            Some(Verdict::Failed) => undo(Some(ours), seen),
        },
        (_, _, ours) => undo(ours, seen),
    }
}

/// Our checkpoint, if it is pending.
fn ours<'a>(entry: &Entry, seen: &'a Seen) -> Option<&'a Checkpoint> {
    let known = entry.checkpoint.as_ref()?;
    let mut pending = seen.checkpoints.iter();
    let pending = pending.find(|it| it.is(known))?;
    (entry.boot == seen.boot).then_some(pending)
}

/// The next step back. Rolling back to ours would undo a foreign one made since, and a foreign one
/// could undo our revert.
fn undo(ours: Option<&Checkpoint>, seen: &Seen) -> Step {
    let mut pending = seen.checkpoints.iter();
    let foreign = pending.find(|it| !ours.is_some_and(|ours| ours.is(it)));
    match (foreign, ours) {
        (Some(foreign), _) => Step::Wait(foreign.clone()),
        (None, Some(ours)) => Step::RollBack(ours.clone()),
        // Profiles bring devices back exactly as they were; the rest is what no profile has.
        (None, None) if !seen.profiles_as_before => Step::RestoreProfiles,
        (None, None) if seen.state != Likeness::Before => Step::Revert,
        (None, None) => Step::Close(End::Undone),
    }
}
