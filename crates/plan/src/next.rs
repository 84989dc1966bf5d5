//! What to do now: the one decision a reconcile takes.
//!
//! A function of the plan that was written down, what is remembered, what the spec asks for and what
//! was seen. It changes nothing; the caller does what it says and tells the plan what came of it.
//! A caller may go through several steps before it writes the plan down again, but writes it before it
//! submits a step to a sidecar: a plan that is replaced calls off only what it knows to be its turn.

use jiff::Timestamp;

use crate::memory::{Failure, Memory};
use crate::observed::Observed;
use crate::plan::{Plan, Progress};
use crate::target::Target;
use crate::task::Step;

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing: the world is as the spec asks.
    Settled,
    /// Write this plan down, in place of the one there is, and ask again. It runs no sooner.
    Begin(Box<Plan>),
    /// Attempt this step of the plan, and record what came of it.
    Run {
        /// What is to be done.
        step: Step,
        /// The number it is submitted under.
        attempt: u32,
    },
    /// The step failed; try again then.
    Wait {
        /// Which step.
        step: Step,
        /// When.
        until: Timestamp,
    },
    /// The plan no longer serves the spec: call off what its sidecar may be at, see it end, note it
    /// with [`Plan::cancelled`] and ask again.
    Cancel {
        /// Which step.
        step: Step,
        /// The number it was submitted under.
        attempt: u32,
    },
    /// The last plan for this target failed; begin none until then.
    Pause {
        /// When.
        until: Timestamp,
        /// How it failed.
        failure: Box<Failure>,
    },
}

/// What to do now. `plan` is the one that was written down and is not over.
pub fn next(
    plan: Option<&Plan>,
    memory: &Memory,
    (want, generation): (&Target, i64),
    have: &Observed,
    now: Timestamp,
) -> Next {
    match plan {
        Some(plan) if plan.serves(want) => go_on(plan, now),
        Some(plan) => supersede(plan, memory, (want, generation), have, now),
        None => begin(memory, (want, generation), have, now),
    }
}

fn go_on(plan: &Plan, now: Timestamp) -> Next {
    // A plan whose steps are all done is over, and so is not given.
    let Some(entry) = plan.current() else {
        return Next::Settled;
    };
    match entry.not_before {
        Some(until) if now < until => Next::Wait {
            step: entry.step,
            until,
        },
        _ => Next::Run {
            step: entry.step,
            attempt: entry.attempt,
        },
    }
}

fn supersede(
    plan: &Plan,
    memory: &Memory,
    want: (&Target, i64),
    have: &Observed,
    now: Timestamp,
) -> Next {
    let successor = begin(memory, want, have, now);
    let shared = |step| matches!(&successor, Next::Begin(other) if plan.shares(other, step));
    match plan.current() {
        // It may have been submitted even if nothing of it was written down.
        Some(entry)
            if entry.step.task.is_submitted()
                && entry.progress == Progress::Open
                && !shared(entry.step) =>
        {
            Next::Cancel {
                step: entry.step,
                attempt: entry.attempt,
            }
        }
        _ => successor,
    }
}

fn begin(
    memory: &Memory,
    (want, generation): (&Target, i64),
    have: &Observed,
    now: Timestamp,
) -> Next {
    let Some(plan) = Plan::new(want, have, generation, memory) else {
        return Next::Settled;
    };
    match memory.pause(want) {
        Some((until, failure)) if now < until => Next::Pause {
            until,
            failure: Box::new(failure.clone()),
        },
        _ => Next::Begin(Box::new(plan)),
    }
}
