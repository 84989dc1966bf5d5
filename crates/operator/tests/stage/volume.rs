//! What a played sidecar keeps on its volume: its tasks, what they have written, and the approval of
//! the node's start. All of it outlives the pod and goes with the claim.

use std::collections::BTreeMap;

use jiff::Timestamp;
use keelson_wire::{Object, Submission, Task, TaskResult, TaskStatus, TaskType, id};

use super::pod::Facts;
use super::script::End;

/// What only one task may have at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lock {
    Data,
    Configuration,
    Process,
    Upload,
}

/// What a task means for the approval of the node's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Nothing,
    /// The approval goes on with the change in it.
    Carries,
    /// The approval ends before anything is written.
    Closes,
}

/// What a task has for itself while it runs.
pub(crate) fn locks(type_: TaskType) -> &'static [Lock] {
    match type_ {
        TaskType::SnapshotRestore => &[Lock::Data],
        TaskType::ResetData => &[Lock::Data, Lock::Process],
        TaskType::ConfigureGenesis
        | TaskType::ConfigureStateSync
        | TaskType::ConfigApply
        | TaskType::ConfigPatch
        | TaskType::DiscoverPeers
        | TaskType::ConfigValidate => &[Lock::Configuration],
        TaskType::MarkReady => &[Lock::Data, Lock::Configuration],
        TaskType::StopSeid | TaskType::RestartSeid => &[Lock::Process],
        TaskType::SnapshotUploadOnce => &[Lock::Upload],
        _ => &[],
    }
}

/// What a task means for the approval, where it writes something that is not there yet.
pub(crate) fn effect(type_: TaskType, params: &Object) -> Effect {
    match type_ {
        TaskType::SnapshotRestore
        | TaskType::ResetData
        | TaskType::ConfigureGenesis
        | TaskType::ConfigureStateSync => Effect::Closes,
        TaskType::ConfigApply if params.get("incremental") == Some(&true.into()) => Effect::Carries,
        TaskType::ConfigApply => Effect::Closes,
        TaskType::ConfigPatch | TaskType::DiscoverPeers => Effect::Carries,
        _ => Effect::Nothing,
    }
}

/// A task that is kept.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) type_: TaskType,
    pub(crate) result: TaskResult,
    /// Whether somebody is at work on it; otherwise it waits for a lock, or was interrupted.
    pub(crate) at_work: bool,
}

/// What was approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) facts: Facts,
    pub(crate) configuration: String,
}

/// What becomes of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Start,
    Same,
    Conflict(String),
}

/// The volume.
#[derive(Debug, Default)]
pub(crate) struct Volume {
    /// In the order they were first submitted.
    pub(crate) tasks: Vec<Kept>,
    pub(crate) record: Option<Record>,
    /// What the tasks that write have last written here, by type.
    written: BTreeMap<TaskType, String>,
}

impl Volume {
    pub(crate) fn task(&mut self, id: &str) -> Option<&mut Kept> {
        self.tasks.iter_mut().find(|it| it.result.id == id)
    }

    /// What becomes of a submission under this id.
    pub(crate) fn judge(&self, id: &str, submission: &Submission) -> Verdict {
        let Some(kept) = self.tasks.iter().find(|it| it.result.id == id) else {
            return Verdict::Start;
        };
        if kept.type_ != submission.type_ {
            let (known, asked) = (kept.type_, submission.type_);
            return Verdict::Conflict(format!("task {id} is of type {known}, not {asked}"));
        }
        if kept.result.status == TaskStatus::Failed {
            return Verdict::Start;
        }
        if meaning(kept.type_, &kept.result.params) != meaning(kept.type_, &submission.params) {
            return Verdict::Conflict(format!("task {id} was submitted with other params"));
        }
        Verdict::Same
    }

    /// Keeps a task as running, for the first time or once more.
    pub(crate) fn keep(&mut self, id: &str, submission: &Submission, by: Option<String>) {
        let now = Timestamp::now();
        if let Some(kept) = self.task(id) {
            kept.result.run += 1;
            kept.result.status = TaskStatus::Running;
            kept.result.params = submission.params.clone();
            kept.result.error.clear();
            kept.result.completed_at = None;
            return;
        }
        self.tasks.push(Kept {
            type_: submission.type_,
            at_work: false,
            result: TaskResult {
                id: id.to_owned(),
                type_: submission.type_.to_string(),
                status: TaskStatus::Running,
                run: 1,
                params: submission.params.clone(),
                result: None,
                error: String::new(),
                submitted_by: by,
                submitted_at: now,
                completed_at: None,
            },
        });
    }

    /// Whether a task would find what it needs for itself taken.
    fn must_wait(&self, type_: TaskType) -> bool {
        let at_work = self.tasks.iter().filter(|it| it.at_work);
        let mut taken = at_work.flat_map(|it| locks(it.type_));
        taken.any(|lock| locks(type_).contains(lock))
    }

    /// The first task that waits and need not.
    pub(crate) fn next(&self) -> Option<String> {
        let mut waiting = self.tasks.iter().filter(|it| {
            it.result.status == TaskStatus::Running && !it.at_work && !self.must_wait(it.type_)
        });
        waiting.next().map(|it| it.result.id.clone())
    }

    /// Whether another task than this holds the data folder, or waits for it.
    pub(crate) fn data_is_taken(&self, id: &str) -> bool {
        self.tasks.iter().any(|it| {
            it.result.id != id && it.result.status == TaskStatus::Running && is_data(it.type_)
        })
    }

    /// Whether a task writes what is not there yet.
    pub(crate) fn changes(&self, type_: TaskType, params: &Object) -> bool {
        type_ == TaskType::ResetData || self.written.get(&type_) != Some(&meaning(type_, params))
    }

    /// Hash of the configuration, or as good as one.
    pub(crate) fn configuration(&self) -> String {
        let of_files = self
            .written
            .iter()
            .filter(|(type_, _)| locks(**type_) == [Lock::Configuration]);
        of_files
            .map(|(type_, what)| format!("{type_}={what};"))
            .collect()
    }

    /// What a task wrote is there now, and the approval goes on with it or does not.
    pub(crate) fn write(&mut self, type_: TaskType, params: &Object) {
        let before = self.configuration();
        match (type_, effect(type_, params)) {
            (_, Effect::Nothing) => return,
            (TaskType::ResetData, _) => drop(self.written.remove(&TaskType::SnapshotRestore)),
            // Written anew: what was merged into the files before is gone.
            (TaskType::ConfigApply, Effect::Closes) => {
                self.written.remove(&TaskType::ConfigPatch);
                self.written.insert(type_, meaning(type_, params));
            }
            _ => drop(self.written.insert(type_, meaning(type_, params))),
        }
        let after = self.configuration();
        if let Some(record) = &mut self.record
            && record.configuration == before
        {
            record.configuration = after;
        }
    }

    /// Whether what was approved before is what is there now.
    pub(crate) fn approves(&self, facts: Option<&Facts>) -> bool {
        let half_done = self.tasks.iter().any(|it| {
            it.result.status == TaskStatus::Running
                && effect(it.type_, &it.result.params) == Effect::Closes
        });
        let configuration = self.configuration();
        match (&self.record, facts) {
            (Some(record), Some(facts)) => {
                !half_done && record.facts == *facts && record.configuration == configuration
            }
            _ => false,
        }
    }

    /// Forgets every release, so that the same id may open the gate again.
    pub(crate) fn forget_releases(&mut self) {
        self.tasks.retain(|it| it.type_ != TaskType::MarkReady);
    }

    /// Writes down how a task ended.
    pub(crate) fn end(&mut self, id: &str, end: &End) {
        let Some(kept) = self.task(id) else { return };
        kept.at_work = false;
        kept.result.completed_at = Some(Timestamp::now());
        match end {
            End::Failed(error) => {
                kept.result.status = TaskStatus::Failed;
                kept.result.error.clone_from(error);
            }
            End::Completed | End::Never => kept.result.status = TaskStatus::Completed,
        }
    }
}

/// Whether a task has to do with the data folder.
pub(crate) fn is_data(type_: TaskType) -> bool {
    matches!(type_, TaskType::SnapshotRestore | TaskType::ResetData)
}

/// Equal for parameters that mean the same.
fn meaning(type_: TaskType, params: &Object) -> String {
    match Task::decode(type_, params) {
        Some(Ok(task)) => id::params_hash(&task),
        _ => format!("{params:?}"),
    }
}
