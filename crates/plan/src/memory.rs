//! What is remembered of plans that are gone: how the last one failed, how often in a row, and which
//! names of effects are spent.
//!
//! The pause before the next plan grows with the failures. An edit lifts it: whoever corrects a spec
//! does not wait for the mistake's sake.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use keelson_api::task::PlanKind;

use crate::drift::Drift;
use crate::target::Target;
use crate::task::Step;

const FIRST_PAUSE: SignedDuration = SignedDuration::from_secs(10);
const LONGEST_PAUSE: SignedDuration = SignedDuration::from_mins(10);

/// How a plan failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What the plan was for.
    pub kind: PlanKind,
    /// Why it had been made.
    pub causes: BTreeSet<Drift>,
    /// What it worked towards.
    pub target: Target,
    /// The step that failed.
    pub step: Step,
    /// Why, in a sentence.
    pub error: String,
    /// Whether the step waited past its deadline, rather than being refused.
    pub overdue: bool,
    /// When.
    pub at: Timestamp,
}

/// What is remembered of plans that are gone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// How the last plan failed, if none succeeded since.
    pub failure: Option<Failure>,
    /// How many failed since one succeeded.
    pub failures: u32,
    /// The last number under which a step was submitted and came to an end.
    pub spent: BTreeMap<Step, u32>,
}

impl Memory {
    /// Until when no plan for this target is begun.
    pub fn pause(&self, want: &Target) -> Option<(Timestamp, &Failure)> {
        let failure = self
            .failure
            .as_ref()
            .filter(|failure| self.failures > 0 && failure.target == *want)?;
        Some((
            failure.at + pause(self.failures, FIRST_PAUSE, LONGEST_PAUSE),
            failure,
        ))
    }

    /// Forgets the pause but not the failure, because a person asked to try again now.
    pub fn lift(&mut self) {
        self.failures = 0;
    }

    /// The number a step is to be submitted under, from one.
    pub(crate) fn attempt(&self, step: Step) -> u32 {
        self.spent.get(&step).map_or(1, |last| last + 1)
    }

    pub(crate) fn spend(&mut self, step: Step, attempt: u32) {
        if step.task.is_submitted() {
            let last = self.spent.entry(step).or_default();
            *last = attempt.max(*last);
        }
    }

    pub(crate) fn failed(&mut self, failure: Failure) {
        self.failures += 1;
        self.failure = Some(failure);
    }

    pub(crate) fn succeeded(&mut self) {
        self.failures = 0;
        self.failure = None;
    }
}

/// Twice as long each time, up to a limit.
pub(crate) fn pause(times: u32, first: SignedDuration, longest: SignedDuration) -> SignedDuration {
    let doublings = times.saturating_sub(1).min(16);
    first
        .checked_mul(1 << doublings)
        .map_or(longest, |pause| pause.min(longest))
}
