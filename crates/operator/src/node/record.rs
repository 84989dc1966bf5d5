//! A plan and what is remembered of earlier ones, as they stand in a status.
//!
//! The shape is the original's, so that those who read plans go on reading them. A plan that cannot
//! be read whole is no plan: it is dropped and the node observed again. So is one of the original,
//! which says nothing of its target.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use keelson_api::node_status::{NodePhase, SeiNodeStatus};
use keelson_api::plan::{
    FailedPlan, FailedTask, PlanPhase, PlannedTask, TaskPlan, TaskStatus as WireStatus,
};
use keelson_api::task::{PlanKind, TaskType};
use keelson_plan::{
    Drift, Entry, Failure, Memory, Plan, Progress, Stage, Step, Target, Task as PlanTask,
};
use serde_json::{Map, Value};

/// A plan with its identity.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// Its identity.
    pub id: String,
    /// When it was made.
    pub started_at: Timestamp,
    /// The plan.
    pub plan: Plan,
}

/// Whether a status holds a plan, and whether it can be read.
#[derive(Clone, Debug, PartialEq)]
pub enum Stored {
    /// There is none, or it is over.
    None,
    /// There is one.
    Plan(Box<Written>),
    /// There is one that says too little or something unknown: the name of it.
    Unreadable(String),
}

/// The plan a status holds.
pub fn stored(status: &SeiNodeStatus) -> Stored {
    match &status.plan {
        Some(plan) if plan.phase == PlanPhase::Active => match read(plan) {
            Some(written) => Stored::Plan(Box::new(written)),
            None => Stored::Unreadable(plan.id.clone()),
        },
        _ => Stored::None,
    }
}

fn read(wire: &TaskPlan) -> Option<Written> {
    let target = wire.target.clone()?;
    Some(Written {
        id: wire.id.clone(),
        started_at: wire.started_at.as_ref()?.0,
        plan: Plan {
            kind: wire.kind?,
            target: serde_json::from_value(Value::Object(target)).ok()?,
            generation: wire.generation?,
            causes: causes(&wire.causes)?,
            parts: parts(&wire.causes),
            entries: wire.tasks.iter().map(entry).collect::<Option<_>>()?,
        },
    })
}

/// A cause that has parts is written once for each of them.
fn causes(names: &[String]) -> Option<BTreeSet<Drift>> {
    let causes = names.iter().filter_map(|name| name.split('/').next());
    causes.map(Drift::named).collect()
}

fn parts(names: &[String]) -> BTreeSet<String> {
    let parts = names.iter().filter_map(|name| name.split_once('/'));
    parts.map(|(_, part)| part.to_owned()).collect()
}

fn entry(task: &PlannedTask) -> Option<Entry> {
    let progress = match task.status {
        WireStatus::Pending | WireStatus::Running => Progress::Open,
        WireStatus::Complete => Progress::Done,
        WireStatus::Failed => Progress::Cancelled,
    };
    Some(Entry {
        step: step(task.type_, task.stage.as_deref())?,
        attempt: u32::try_from(task.attempt?).ok()?,
        progress,
        deadline: task.deadline.as_ref().map(|time| time.0),
        not_before: task.not_before.as_ref().map(|time| time.0),
        failures: task.retry_count.map_or(0, |count| count.max(0) as u32),
        waiting: None,
        error: task.error.clone(),
    })
}

/// Which step a name means. What makes pods ready comes before any pod does.
fn step(type_: TaskType, stage: Option<&str>) -> Option<Step> {
    let task = PlanTask::named(type_)?;
    let stage = match stage {
        Some(word) if Some(word) == Stage::Bootstrap.word() => Stage::Bootstrap,
        Some(_) => return None,
        None if prepares(task) => Stage::Prepare,
        None => Stage::Node,
    };
    Some(Step { stage, task })
}

fn prepares(task: PlanTask) -> bool {
    task <= PlanTask::ApplyNetworkPolicy
}

/// The plan as it is written, with the identity of each task's effect.
pub fn write(written: &Written, id_of: impl Fn(usize, &Entry) -> String) -> TaskPlan {
    let plan = &written.plan;
    let sets_up = plan.causes.contains(&Drift::Setup);
    let tasks = plan.entries.iter().enumerate();
    TaskPlan {
        id: written.id.clone(),
        phase: PlanPhase::Active,
        kind: Some(plan.kind),
        causes: names(&plan.causes, &plan.parts),
        target: object(&plan.target),
        generation: Some(plan.generation),
        started_at: Some(Time(written.started_at)),
        tasks: tasks
            .map(|(index, entry)| planned(entry, id_of(index, entry)))
            .collect(),
        target_phase: Some(NodePhase::Running),
        failed_phase: sets_up.then_some(NodePhase::Failed),
        failed_task_index: None,
        failed_task_detail: None,
    }
}

fn names(causes: &BTreeSet<Drift>, parts: &BTreeSet<String>) -> Vec<String> {
    let each = causes.iter().flat_map(|cause| match cause {
        Drift::Pod if !parts.is_empty() => {
            let parts = parts.iter();
            parts
                .map(|part| format!("{}/{part}", cause.as_str()))
                .collect()
        }
        _ => vec![cause.as_str().to_owned()],
    });
    each.collect()
}

fn object(target: &Target) -> Option<Map<String, Value>> {
    match serde_json::to_value(target) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}

fn planned(entry: &Entry, id: String) -> PlannedTask {
    let begun = entry.deadline.is_some();
    PlannedTask {
        type_: entry.step.task.type_(),
        id,
        stage: entry.step.stage.word().map(str::to_owned),
        attempt: i32::try_from(entry.attempt).ok(),
        status: match entry.progress {
            Progress::Open if begun => WireStatus::Running,
            Progress::Open => WireStatus::Pending,
            Progress::Done => WireStatus::Complete,
            Progress::Cancelled => WireStatus::Failed,
        },
        params: None,
        submitted_at: None,
        // What is done has no deadline to miss.
        deadline: entry
            .deadline
            .filter(|_| entry.progress == Progress::Open)
            .map(Time),
        not_before: entry.not_before.map(Time),
        waiting_on: entry.waiting.as_ref().map(ToString::to_string),
        error: entry.error.clone(),
        max_retries: None,
        retry_count: (entry.failures > 0).then(|| entry.failures.min(i32::MAX as u32) as i32),
    }
}

/// What a status remembers of plans that are gone.
pub fn memory(status: &SeiNodeStatus) -> Memory {
    let spent = status
        .attempts
        .iter()
        .filter_map(|(name, &attempt)| Some((named(name)?, u32::try_from(attempt).ok()?)));
    Memory {
        failure: status.last_failed_plan.as_ref().and_then(failure),
        failures: status
            .consecutive_failures
            .map_or(0, |count| count.max(0) as u32),
        spent: spent.collect(),
    }
}

fn failure(failed: &FailedPlan) -> Option<Failure> {
    let task = failed.task.as_ref()?;
    let target = failed.target.clone()?;
    Some(Failure {
        kind: failed.kind?,
        causes: causes(&failed.causes)?,
        target: serde_json::from_value(Value::Object(target)).ok()?,
        step: Step {
            stage: Stage::Node,
            task: PlanTask::named(task.type_)?,
        },
        error: task.error.clone().unwrap_or_default(),
        overdue: failed.overdue,
        at: failed.failed_at.as_ref()?.0,
    })
}

/// Puts what is remembered into a status.
pub fn remember(memory: &Memory, plan: Option<&Written>, status: &mut SeiNodeStatus) {
    let attempts = memory.spent.iter();
    status.attempts = attempts
        .filter_map(|(step, &attempt)| Some((name(*step), i32::try_from(attempt).ok()?)))
        .collect::<BTreeMap<_, _>>();
    status.consecutive_failures =
        (memory.failures > 0).then(|| memory.failures.min(i32::MAX as u32) as i32);
    status.last_failed_plan = memory.failure.as_ref().map(|failure| {
        let known = status.last_failed_plan.take();
        // The identity of the plan is the one thing a failure does not know of itself.
        let id = plan.map(|plan| plan.id.clone());
        let id = id.or(known.map(|known| known.id)).unwrap_or_default();
        failed(failure, id)
    });
}

fn failed(failure: &Failure, id: String) -> FailedPlan {
    FailedPlan {
        id: id.clone(),
        kind: Some(failure.kind),
        causes: names(&failure.causes, &BTreeSet::new()),
        target: object(&failure.target),
        overdue: failure.overdue,
        task: Some(FailedTask {
            type_: failure.step.task.type_(),
            id,
            error: Some(failure.error.clone()),
            retry_count: None,
            max_retries: None,
        }),
        generation: None,
        failed_at: Some(Time(failure.at)),
    }
}

fn name(step: Step) -> String {
    match step.stage.word() {
        Some(stage) => format!("{stage}/{}", step.task.type_()),
        None => step.task.type_().to_string(),
    }
}

fn named(name: &str) -> Option<Step> {
    let (stage, type_) = match name.split_once('/') {
        Some((stage, type_)) => (Some(stage), type_),
        None => (None, name),
    };
    step(type_.parse().ok()?, stage)
}

/// Why a plan is, for people.
pub fn reasons(plan: &Plan) -> String {
    let parts = || plan.parts.iter().map(String::as_str).collect::<Vec<_>>();
    let causes = plan.causes.iter().map(|cause| match cause {
        Drift::Pod if !plan.parts.is_empty() => {
            format!("{}: {}", cause.told(), parts().join(" and "))
        }
        _ => cause.told().to_owned(),
    });
    causes.collect::<Vec<_>>().join(", ")
}

/// What a plan of this kind is called in a sentence.
pub fn called(kind: PlanKind) -> &'static str {
    match kind {
        PlanKind::Init => "the first set-up",
        PlanKind::Bootstrap => "the set-up through a bootstrap Job",
        PlanKind::Genesis => "the genesis ceremony",
        PlanKind::NodeUpdate => "the update",
        PlanKind::TlsToggle => "the change of TLS",
        PlanKind::NodeUpdateTls => "the update with a change of TLS",
        PlanKind::MarkReadyReapply => "the approval",
        PlanKind::Rollout => "the rollout",
    }
}
