//! When a look writes before it acts, and when the next look is. Pure.

use std::time::Duration;

use jiff::Timestamp;
use keelson_plan::{Entry, Outcome, Progress, Task, Waiting};

use crate::node::effects;
use crate::node::record::Written;

/// Whether a step is the first for a sidecar that may take long, which is written down before it is
/// submitted: a plan that is replaced calls off only what it knows to be its turn.
pub(super) fn is_first_for_sidecar(stored: &Option<Written>, entry: &Entry) -> bool {
    let task = entry.step.task;
    if !task.is_submitted() || effects::is_about_pod(task) {
        return false;
    }
    let current = stored.as_ref().and_then(|stored| stored.plan.current());
    current.is_none_or(|current| {
        !current.step.task.is_submitted() || current.progress != Progress::Open
    })
}

/// Whether a step takes away what shows that the step before it is done, which is written down first:
/// once the bootstrap Job is gone, nothing else says that it was complete.
pub(super) fn is_end_of_bootstrap(stored: &Option<Written>, entry: &Entry) -> bool {
    let current = stored.as_ref().and_then(|stored| stored.plan.current());
    entry.step.task == Task::TeardownBootstrap
        && current.is_none_or(|current| current.step != entry.step)
}

/// When to look again. What is watched wakes us by itself, and is looked at now and then all the same.
/// `callable` is whether the sidecar of the step's pod could be called.
pub(super) fn look_again(outcome: &Outcome, entry: &Entry, callable: bool) -> Duration {
    let Outcome::Waiting { on } = outcome else {
        return Duration::from_secs(1);
    };
    match on {
        Waiting::SidecarTask { .. } => {
            // The longer it takes already, the longer it may take still.
            let begun = entry
                .deadline
                .map(|deadline| deadline - entry.step.task.deadline());
            let age = begun.map_or(0, |begun| Timestamp::now().duration_since(begun).as_secs());
            Duration::from_secs(u64::try_from(age / 10).unwrap_or(0).clamp(1, 15))
        }
        // That it runs is seen by the watch of pods.
        Waiting::Sidecar { .. } if !callable => Duration::from_secs(20),
        Waiting::Sidecar { .. } | Waiting::Proxy { .. } => Duration::from_secs(1),
        _ => Duration::from_secs(20),
    }
}

pub(super) fn remaining(until: Timestamp, now: Timestamp) -> Duration {
    let rest = until.duration_since(now);
    Duration::try_from(rest).unwrap_or(Duration::ZERO) + Duration::from_millis(10)
}
