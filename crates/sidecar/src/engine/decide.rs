//! What becomes of a submission: a pure decision on what is known of its id.

use crate::store::Incoming;
use keelson_wire::{Object, Task, TaskResult, TaskStatus, TaskType, id};
use serde_json::Value;

/// What becomes of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is begun, for the so-manieth time.
    Start {
        /// Which run it is, from one.
        run: u32,
    },
    /// It runs or is completed; nothing is to be done.
    Same,
    /// The id names something else.
    Conflict(Conflict),
}

/// How an id names something else.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Conflict {
    /// A task of another type.
    #[error("task {id} is of type {known}, not {asked}: use another id")]
    Type {
        /// The id.
        id: String,
        /// The type of the task that has it.
        known: String,
        /// The type that was submitted.
        asked: TaskType,
    },
    /// A task with other parameters.
    #[error("task {id} was submitted with other params: use another id")]
    Params {
        /// The id.
        id: String,
    },
}

/// Decides on a submission. A task that failed is run again, with the parameters it now has: that is
/// how a caller tries again. One that is `running` though nobody is at work on it was lost on the way
/// (a deletion the store refused) and is taken up again.
pub fn submit(existing: Option<&TaskResult>, incoming: &Incoming, at_work: bool) -> Verdict {
    let Some(known) = existing else {
        return Verdict::Start { run: 1 };
    };
    if known.type_ != incoming.type_.as_str() {
        return Verdict::Conflict(Conflict::Type {
            id: known.id.clone(),
            known: known.type_.clone(),
            asked: incoming.type_,
        });
    }
    if known.status == TaskStatus::Failed {
        let run = known.run.saturating_add(1);
        return Verdict::Start { run };
    }
    if params_hash(incoming.type_, &known.params) != params_hash(incoming.type_, &incoming.params) {
        return Verdict::Conflict(Conflict::Params {
            id: known.id.clone(),
        });
    }
    match known.status {
        TaskStatus::Running if !at_work => Verdict::Start { run: known.run },
        _ => Verdict::Same,
    }
}

/// Equal for parameters that mean the same; those that mean nothing are compared as they stand.
fn params_hash(type_: TaskType, params: &Object) -> String {
    match Task::decode(type_, params) {
        Some(Ok(task)) => id::params_hash(&task),
        _ => {
            let mut params = Value::Object(params.clone());
            params.sort_all_objects();
            params.to_string()
        }
    }
}
