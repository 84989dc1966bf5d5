//! What becomes of tasks that a sidecar left running: a pure decision.
//!
//! A hold outweighs a release. Holds that were stranded are carried out first, before anything else,
//! and a release that is not newer than the newest hold is not taken up, whatever became of that
//! hold. Where it cannot be said when the last hold was, every release counts as older.

use jiff::Timestamp;
use keelson_wire::{Task, TaskResult, TaskType};

/// Why a release is not taken up.
pub const SUPERSEDED: &str = "superseded by hold";
/// Why a task nobody knows is not taken up.
pub const NO_HANDLER: &str = "no handler registered for task type";

/// When the gate was last told to close.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It never was.
    Never,
    /// Then, whatever came of it.
    At(Timestamp),
    /// The store does not say.
    Unknown,
}

impl Hold {
    /// Whether the hold outweighs a release of this time.
    pub fn outweighs(self, release: Timestamp) -> bool {
        match self {
            Self::Never => false,
            Self::At(hold) => hold >= release,
            Self::Unknown => true,
        }
    }
}

/// One thing to do about a task that was left running.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Take it up again: the same run of the same submission.
    Resume(TaskResult),
    /// Let it fail.
    Fail {
        /// The task.
        task: TaskResult,
        /// Why.
        why: &'static str,
    },
}

/// Holds among the tasks left running; they come first.
pub fn holds(rows: &[TaskResult]) -> Vec<TaskResult> {
    let is_hold = |row: &&TaskResult| row.type_ == TaskType::MarkNotReady.as_str();
    rows.iter().filter(is_hold).cloned().collect()
}

/// What is to be done about tasks left running, when the holds among them are done.
pub fn recover(rows: Vec<TaskResult>, hold: Hold) -> Vec<Step> {
    let step = |task: TaskResult| match Task::type_of(&task.type_) {
        None => Step::Fail {
            task,
            why: NO_HANDLER,
        },
        Some(TaskType::MarkReady) if hold.outweighs(task.submitted_at) => Step::Fail {
            task,
            why: SUPERSEDED,
        },
        Some(_) => Step::Resume(task),
    };
    rows.into_iter().map(step).collect()
}
