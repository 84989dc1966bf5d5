//! What a task is given to work with, and what it gives back.
//!
//! A task knows nothing of the engine: it reports progress, looks whether it is to stop, and ends with
//! a result or a [`Trouble`]. Whether a trouble is worth another try is part of it, because only the
//! task knows.

use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// What came of a task: what it brings back, if anything.
pub type Done = Result<Option<Value>, Trouble>;

/// Why a task failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{task}: {what}{}", hint.map(|hint| format!(" [hint: {hint}]")).unwrap_or_default())]
pub struct Trouble {
    /// The task's type.
    pub task: &'static str,
    /// What was being done, in a word or two.
    pub operation: &'static str,
    /// What is wrong, where.
    pub what: String,
    /// What to do about it.
    pub hint: Option<&'static str>,
    /// Whether trying again may help.
    pub retryable: bool,
}

impl Trouble {
    /// What is wrong today is wrong tomorrow, too.
    pub fn lasting(task: &'static str, operation: &'static str, what: impl Into<String>) -> Self {
        Self {
            task,
            operation,
            what: what.into(),
            hint: None,
            retryable: false,
        }
    }

    /// What may be better at another time.
    pub fn passing(task: &'static str, operation: &'static str, what: impl Into<String>) -> Self {
        Self {
            retryable: true,
            ..Self::lasting(task, operation, what)
        }
    }

    /// What is not done any more, because somebody said so.
    pub fn stopped(task: &'static str) -> Self {
        Self::passing(task, "stop", "it was told to stop")
    }

    /// The same with what to do about it.
    pub fn hinting(self, hint: &'static str) -> Self {
        Self {
            hint: Some(hint),
            ..self
        }
    }
}

/// One execution of a task.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Cancelled when the task is deleted or the sidecar ends.
    pub cancel: CancellationToken,
    /// How far it is.
    pub progress: Progress,
}

impl Run {
    /// Does work that can be dropped at any point, until it is to stop.
    pub async fn until_stopped<T>(
        &self,
        task: &'static str,
        work: impl Future<Output = T>,
    ) -> Result<T, Trouble> {
        let done = self.cancel.run_until_cancelled(work).await;
        done.ok_or_else(|| Trouble::stopped(task))
    }
}

/// How far a long task is; shown in the task's result while it runs, in metrics and in the log.
#[derive(Clone, Debug, Default)]
pub struct Progress(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    amount: Amount,
    seen: Option<Value>,
    /// When the round began, where a task has several.
    since: Option<Instant>,
    /// What came of the round before.
    last: Option<Value>,
}

/// Bytes done, and of how many where that is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Bytes done.
    pub bytes: u64,
    /// Bytes to do.
    pub total: Option<u64>,
}

impl Progress {
    /// Says how many bytes there are.
    pub fn expect(&self, total: u64) {
        self.with(|state| state.amount.total = Some(total));
    }

    /// Says that so many bytes more are done.
    pub fn advance(&self, bytes: u64) {
        self.with(|state| state.amount.bytes += bytes);
    }

    /// How far it is now.
    pub fn amount(&self) -> Amount {
        self.with(|state| state.amount)
    }

    /// Says what is seen of that which is waited for, where it is nothing that is counted in bytes.
    pub fn see(&self, seen: Value) {
        self.with(|state| state.seen = Some(seen));
    }

    /// What was seen last.
    pub fn seen(&self) -> Option<Value> {
        self.with(|state| state.seen.clone())
    }

    /// Says that a round begins, and with it the count.
    pub fn begin(&self) {
        self.with(|state| {
            state.amount = Amount::default();
            state.since = Some(Instant::now());
        });
    }

    /// Says what came of a round; it is shown until the next one has ended.
    pub fn rest(&self, last: Value) {
        self.with(|state| {
            state.amount = Amount::default();
            state.last = Some(last);
        });
    }

    /// What came of the round before.
    pub fn last(&self) -> Option<Value> {
        self.with(|state| state.last.clone())
    }

    /// How long it is counted: since the round began, or else since the task did.
    pub fn elapsed(&self, task: Instant) -> Duration {
        self.with(|state| state.since.unwrap_or(task).elapsed())
    }

    fn with<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
