//! The wire shape of a plan: what `status.plan` looks like.
//!
//! The shape is the original's, with what a plan must remember besides: its causes, its target, and
//! when each task has to be done. A plan is read whole or not at all: half a plan would do half its
//! work, so a task of an unknown type makes the plan unreadable, and of the status field that holds it
//! only the plan's name is known. How plans are made is for the crate `plan`.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::KubeSchema;
use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use crate::node_status::NodePhase;
use crate::task::{PlanKind, TaskType};
use crate::tolerant;
use crate::vocabulary::vocabulary;

vocabulary! {
    /// How far a plan is.
    pub enum PlanPhase {
        /// Being carried out.
        Active => "Active",
        /// Done.
        Complete => "Complete",
        /// Given up.
        Failed => "Failed",
    }
}

vocabulary! {
    /// How far a task is.
    pub enum TaskStatus {
        /// Not begun.
        Pending => "Pending",
        /// Begun; looked after until it ends.
        Running => "Running",
        /// Done.
        Complete => "Complete",
        /// Given up.
        Failed => "Failed",
    }
}

/// An ordered list of tasks, the target they serve, and why.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskPlan {
    /// Identity of the plan.
    pub id: String,

    /// How far the plan is.
    pub phase: PlanPhase,

    /// What the plan is for; the metric label `plan_type`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub kind: Option<PlanKind>,

    /// Why the plan was made: the names of the differences it removes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,

    /// What the plan works towards. A plan whose target is no longer the spec's is dropped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub target: Option<Map<String, Value>>,

    /// Generation of the spec the plan was made for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,

    /// When the plan was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Time>,

    /// The tasks, in order.
    pub tasks: Vec<PlannedTask>,

    /// Phase of the node when the plan is complete.
    // Tolerant, unlike the rest: the original may have left an empty string.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    #[schemars(with = "Option<String>")]
    pub target_phase: Option<NodePhase>,

    /// Phase of the node when the plan has failed. Absent: it stays as it is.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    #[schemars(with = "Option<String>")]
    pub failed_phase: Option<NodePhase>,

    /// Which task failed, counted from zero.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_task_index: Option<i32>,

    /// How the task failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_task_detail: Option<FailedTask>,
}

impl TaskPlan {
    /// What is kept of a plan that cannot be read: that there is one, and its name.
    fn unreadable(stored: &Value) -> Self {
        Self {
            id: stored["id"].as_str().unwrap_or("without a name").to_owned(),
            phase: PlanPhase::Active,
            kind: None,
            causes: Vec::new(),
            target: None,
            generation: None,
            started_at: None,
            tasks: Vec::new(),
            target_phase: None,
            failed_phase: None,
            failed_task_index: None,
            failed_task_detail: None,
        }
    }
}

/// A plan as some version of some operator wrote it. One that cannot be read whole is not absent:
/// whoever finds it shall be able to say so, and to take it away.
pub(crate) fn stored<'de, D>(deserializer: D) -> Result<Option<TaskPlan>, D::Error>
where
    D: Deserializer<'de>,
{
    let stored = Value::deserialize(deserializer)?;
    if stored.is_null() {
        return Ok(None);
    }
    let unreadable = TaskPlan::unreadable(&stored);
    Ok(Some(serde_json::from_value(stored).unwrap_or(unreadable)))
}

/// One task of a plan.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedTask {
    /// What is to be done.
    // Open in the schema: a list of names in the CRD would have to be upgraded before any operator.
    #[serde(rename = "type")]
    #[schemars(with = "String")]
    pub type_: TaskType,

    /// Identity of the effect; the same facts give the same id.
    pub id: String,

    /// Which of the node's pods the task is about, where it is the bootstrap Job's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<String>,

    /// The number the task is submitted under, from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<i32>,

    /// How far the task is.
    pub status: TaskStatus,

    /// What the task was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "anything")]
    pub params: Option<Value>,

    /// When the task was begun.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_at: Option<Time>,

    /// When the task has to be done; past it the node is stalled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,

    /// When the task is tried again, after it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Time>,

    /// What the task waits for, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_on: Option<String>,

    /// Why the task failed, or failed last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,

    /// How often the task may be tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<i32>,

    /// How often the task was tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_count: Option<i32>,
}

/// How a task failed.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedTask {
    /// What was to be done.
    #[serde(rename = "type")]
    #[schemars(with = "String")]
    pub type_: TaskType,

    /// Identity of the effect.
    pub id: String,

    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,

    /// How often it was tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_count: Option<i32>,

    /// How often it might have been tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<i32>,
}

/// What is kept of the last plan that failed, after the plan itself is gone.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedPlan {
    /// Identity of the plan.
    pub id: String,

    /// What the plan was for.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    #[schemars(with = "Option<String>")]
    pub kind: Option<PlanKind>,

    /// Why the plan had been made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub causes: Vec<String>,

    /// The task that failed, and how.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub task: Option<FailedTask>,

    /// What the plan worked towards. A spec that asks for something else is not held up by it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub target: Option<Map<String, Value>>,

    /// Whether the task waited past its deadline, rather than being refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overdue: bool,

    /// Generation of the spec the plan served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<i64>,

    /// When it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_at: Option<Time>,
}

/// Schema of an object with any content.
pub(crate) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": "object", "x-kubernetes-preserve-unknown-fields": true })
}

/// Schema of a value of any type.
fn anything(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "x-kubernetes-preserve-unknown-fields": true })
}
