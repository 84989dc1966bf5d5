//! What the engine knows of each type of task: one table.

use keelson_wire::TaskType;
use std::time::Duration;

/// What only one task may have at a time. Taken in this order, so that no two wait for each other;
/// the data folder first, because its tasks take longest and whoever waits for it should hold nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lock {
    /// The data folder.
    Data,
    /// The configuration files.
    Configuration,
    /// The process of seid.
    Process,
    /// Uploads of snapshots.
    Upload,
}

/// How long a task may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// So long.
    After(Duration),
    /// As long as the settings allow an upload.
    Upload,
    /// As long as it is not deleted: its caller knows what it waits for.
    Never,
}

/// How tasks share the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Never waits for others: the gate must be closed at once.
    Gate,
    /// Does work; a few at a time.
    Work,
    /// Mostly waits; many at a time.
    Watch,
}

/// What a task means for the approval of the node's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Nothing, or it says so itself (the gate's own tasks).
    None,
    /// What was approved goes on being approved with the change in it: the node runs and the change
    /// is for its next start.
    Carries,
    /// The node is being set up: nothing may start before it is approved again.
    Closes,
}

/// What the engine knows of a type of task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What it has for itself while it runs, in the order of [`Lock`].
    pub locks: &'static [Lock],
    /// How long it may take, once it has its locks.
    pub deadline: Deadline,
    /// How it shares the machine.
    pub class: Class,
    /// What it means for the approval.
    pub effect: Effect,
}

const fn minutes(minutes: u64) -> Deadline {
    Deadline::After(Duration::from_secs(minutes * 60))
}

const fn row(locks: &'static [Lock], deadline: Deadline, class: Class, effect: Effect) -> Policy {
    Policy {
        locks,
        deadline,
        class,
        effect,
    }
}

/// The table.
#[rustfmt::skip]
pub const fn of(type_: TaskType) -> Policy {
    use Class::{Gate, Watch, Work};
    use Effect::{Carries, Closes, None};
    use Lock::{Configuration, Data, Process, Upload};
    match type_ {
        TaskType::SnapshotRestore => row(&[Data], minutes(24 * 60), Work, Closes),
        TaskType::ResetData => row(&[Data, Process], minutes(60), Work, Closes),
        TaskType::ConfigureGenesis => row(&[Configuration], minutes(30), Work, Closes),
        TaskType::ConfigureStateSync => row(&[Configuration], minutes(10), Work, Closes),
        // Written anew it closes, changed incrementally it carries: the task decides.
        TaskType::ConfigApply => row(&[Configuration], minutes(2), Work, Carries),
        TaskType::ConfigPatch => row(&[Configuration], minutes(2), Work, Carries),
        TaskType::DiscoverPeers => row(&[Configuration], minutes(10), Work, Carries),
        TaskType::ConfigValidate => row(&[Configuration], minutes(2), Work, None),
        // A release waits until nobody writes what it approves; a hold waits for nobody.
        TaskType::MarkReady => row(&[Data, Configuration], minutes(2), Gate, None),
        TaskType::MarkNotReady => row(&[], minutes(2), Gate, None),
        TaskType::StopSeid => row(&[Process], minutes(5), Work, None),
        TaskType::RestartSeid => row(&[Process], minutes(60), Work, None),
        TaskType::SnapshotUploadOnce => row(&[Upload], Deadline::Upload, Work, None),
        // These end when their caller wants them to, and must not keep others from the process
        // or from uploads: they take the lock only when they act.
        TaskType::SnapshotUpload => row(&[], Deadline::Never, Watch, None),
        TaskType::AwaitCondition => row(&[], Deadline::Never, Watch, None),
        // Not the sidecar's: submissions of these are refused before anyone asks.
        _ => row(&[], minutes(1), Work, None),
    }
}
