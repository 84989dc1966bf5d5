//! What of a change is nmstate's own apply and what a handler adds to it, by the times in its log.

use jiff::Timestamp;
use std::ops::Add;
use std::time::Duration;

/// With this line a change begins.
const BEGUN: &str = "preparing a change for policy";

/// The time of a change, or of several; what was spent asking the probes is in neither part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// nmstate applies the state, as it would without a handler.
    pub(crate) apply: Duration,
    /// Before it: what it takes to go back is read and written down.
    pub(crate) before: Duration,
    /// After it: which checkpoint is ours, how far the change is, and the commit.
    pub(crate) after: Duration,
}

impl Parts {
    /// The parts of every change that was kept, of a log with debug lines.
    pub(crate) fn of(log: &str) -> Vec<Self> {
        let lines: Vec<&str> = log.lines().collect();
        let changes = lines.chunk_by(|_, next| !next.contains(BEGUN));
        changes.filter_map(Self::of_change).collect()
    }

    fn of_change(lines: &[&str]) -> Option<Self> {
        let at = |what: &str| {
            let line = lines.iter().find(|line| line.contains(what))?;
            line.split_whitespace().next()?.parse::<Timestamp>().ok()
        };
        let between = |from: &str, to: &str| Duration::try_from(at(to)? - at(from)?).ok();
        Some(Self {
            apply: between("applying policy", "state applied")?,
            before: between(BEGUN, "network read")? + between("baseline asked", "applying policy")?,
            after: between("state applied", "probing the host")?
                + between("probes asked", "resting")?,
        })
    }

    /// Everything but the apply.
    pub(crate) fn beside(self) -> Duration {
        self.before + self.after
    }

    /// What is added, of what the apply takes by itself.
    pub(crate) fn share(self) -> f64 {
        self.beside().as_secs_f64() / self.apply.as_secs_f64()
    }
}

impl Add for Parts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            apply: self.apply + other.apply,
            before: self.before + other.before,
            after: self.after + other.after,
        }
    }
}
