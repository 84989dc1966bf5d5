//! One change of the host's network, with everything it takes to finish or undo it.

use std::fmt;

use jiff::Timestamp;
use keelson_api::policy::State;
use serde::{Deserialize, Serialize};

use crate::handler::disk::Outlives;
use crate::handler::probe::Baseline;

/// How far a change has come, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Phase {
    /// Everything is written down; nothing was touched.
    Prepared,
    /// The state is being applied, or applying it failed.
    Applying,
    /// It is applied, and NetworkManager would undo it by itself.
    Applied,
    /// The host was seen to be reachable with it.
    Verified,
    /// NetworkManager would undo it no longer.
    Committed,
    /// It is being undone.
    RollingBack,
    /// Nothing is left to do.
    Closed,
}

impl Phase {
    /// Whether a change can come from here to there in one step.
    pub fn may_become(self, next: Self) -> bool {
        use Phase::{Applied, Applying, Closed, Committed, Prepared, RollingBack, Verified};
        match next {
            Prepared => false,
            Applying => self == Prepared,
            Applied => self == Applying,
            Verified => self == Applied,
            Committed => self == Verified,
            RollingBack => matches!(self, Applying | Applied | Verified),
            Closed => self != Closed,
        }
    }

    /// What a word of having come here is to outlive. Where it need not outlive the host, what stands
    /// before it leads to the same end there: nothing was touched, or the checkpoint is gone, or the new
    /// state is there to be seen.
    pub fn outlives(self) -> Outlives {
        match self {
            Self::Applying | Self::Verified | Self::RollingBack => Outlives::Host,
            Self::Prepared | Self::Applied | Self::Committed | Self::Closed => Outlives::Process,
        }
    }
}

/// How a change ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum End {
    /// Nothing was touched.
    NotBegun,
    /// The host is in the new state.
    Kept,
    /// The host is in the old state.
    Undone,
}

/// Which policy a change is for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// Its uid.
    pub uid: String,
    /// Its name.
    pub name: String,
    /// Its generation.
    pub generation: i64,
}

/// A checkpoint as NetworkManager has it. Times are milliseconds of the clock that counts from boot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    /// Its path on the bus. Counted anew when NetworkManager starts anew.
    pub path: String,
    /// When it was made.
    pub created_ms: u64,
    /// When NetworkManager rolls back to it by itself, if ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

impl Checkpoint {
    /// Whether it is the same one. Its deadline moves; a path comes again.
    pub fn is(&self, other: &Self) -> bool {
        (&self.path, self.created_ms) == (&other.path, other.created_ms)
    }
}

/// A connection profile as NetworkManager has it, secrets included.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// Its uuid.
    pub uuid: String,
    /// Its settings.
    pub settings: State,
    /// The device it is active on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active: Option<String>,
    /// Whether it is in memory alone, and gone after a reboot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_memory: bool,
}

impl fmt::Debug for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The rest has keys in it.
        f.debug_struct("Profile")
            .field("uuid", &self.uuid)
            .finish_non_exhaustive()
    }
}

/// One change of the host's network.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entry {
    /// How far it has come.
    pub phase: Phase,
    /// How it ended, once it is closed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end: Option<End>,
    /// Why it is undone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// When it was begun, which tells it from all others of this host.
    pub began: Timestamp,
    /// The boot it was begun in: what NetworkManager remembers ends with it.
    pub boot: String,
    /// The policy it is for.
    pub policy: Policy,
    /// The state to be applied, captures filled in.
    pub desired: State,
    /// The host's state right before.
    pub before: State,
    /// The state that leads back from the one to the other.
    pub revert: State,
    /// Every connection profile right before: neither a checkpoint nor a revert brings all of them back.
    pub profiles: Vec<Profile>,
    /// What passed before.
    pub baseline: Baseline,
    /// The checkpoint it can be rolled back to, once NetworkManager said which that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<Checkpoint>,
}

/// How far a change has come since it was written down whole.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Mark {
    phase: Phase,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<End>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    why: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checkpoint: Option<Checkpoint>,
}

impl fmt::Debug for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // States and profiles have keys in them.
        f.debug_struct("Entry")
            .field("phase", &self.phase)
            .field("end", &self.end)
            .field("began", &self.began)
            .field("boot", &self.boot)
            .field("policy", &self.policy)
            .field("checkpoint", &self.checkpoint)
            .finish_non_exhaustive()
    }
}

impl Entry {
    /// What of it a step changes.
    pub(super) fn mark(&self) -> Mark {
        Mark {
            phase: self.phase,
            end: self.end,
            why: self.why.clone(),
            checkpoint: self.checkpoint.clone(),
        }
    }

    /// The entry as far as a mark says.
    pub(super) fn marked(self, mark: Mark) -> Self {
        let Mark {
            phase,
            end,
            why,
            checkpoint,
        } = mark;
        Self {
            phase,
            end,
            why,
            checkpoint,
            ..self
        }
    }

    /// The entry one step on.
    #[must_use]
    pub fn at(&self, phase: Phase) -> Self {
        Self {
            phase,
            ..self.clone()
        }
    }

    /// The entry once it is applied, with the checkpoint NetworkManager made for it.
    #[must_use]
    pub fn applied(&self, checkpoint: Checkpoint) -> Self {
        Self {
            checkpoint: Some(checkpoint),
            ..self.at(Phase::Applied)
        }
    }

    /// The entry once it is to be undone, with the first reason there was.
    #[must_use]
    pub fn because(&self, why: String) -> Self {
        let why = self.why.clone().or(Some(why));
        Self {
            why,
            ..self.clone()
        }
    }

    /// The entry with nothing left to do.
    #[must_use]
    pub fn closed(&self, end: End) -> Self {
        Self {
            end: Some(end),
            ..self.at(Phase::Closed)
        }
    }
}
