//! Tasks as the sidecar remembers them, and what some of them bring back.

use std::fmt;

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Object;
use crate::lenient::nullable;
use crate::shown::{Names, Present};

/// A task, how far it is and what came of it.
#[derive(Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskResult {
    /// The task's id, as it was submitted.
    #[schemars(extend("format" = "uuid"))]
    pub id: String,

    /// The task's type. It may be one that only the other side knows.
    #[serde(rename = "type")]
    pub type_: String,

    /// How far the task is.
    pub status: TaskStatus,

    /// How often the task was begun; a failed task that is submitted again begins anew.
    #[serde(default = "first_run")]
    #[schemars(range(min = 1))]
    pub run: u32,

    /// What the task was given.
    #[serde(
        default,
        deserialize_with = "nullable",
        skip_serializing_if = "Object::is_empty"
    )]
    pub params: Object,

    /// What the task brought back. A failed task may have one, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,

    /// Why the task failed.
    #[serde(
        default,
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub error: String,

    /// Who submitted the task, where the proxy said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted_by: Option<String>,

    /// When the task was first submitted.
    #[schemars(schema_with = "time")]
    pub submitted_at: Timestamp,

    /// When the task completed or failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "time")]
    pub completed_at: Option<Timestamp>,
}

fn first_run() -> u32 {
    1
}

fn time(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "type": "string", "format": "date-time" })
}

impl fmt::Debug for TaskResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskResult")
            .field("id", &self.id)
            .field("type", &self.type_)
            .field("status", &self.status)
            .field("run", &self.run)
            .field("params", &Names(&self.params))
            .field("result", &Present(&self.result))
            .field("error", &self.error)
            .field("submitted_by", &self.submitted_by)
            .field("submitted_at", &self.submitted_at)
            .field("completed_at", &self.completed_at)
            .finish()
    }
}

/// How far a task is. There is no other state: a task that is cancelled is gone, or runs again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaskStatus {
    /// It has begun.
    Running,
    /// It is done.
    Completed,
    /// It could not be done.
    Failed,
}

impl TaskStatus {
    /// The word on the wire, in the store and in metric labels; stable.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Failed => "failed",
        }
    }

    /// Whether nothing more will come of it.
    pub const fn is_terminal(self) -> bool {
        !matches!(self, Self::Running)
    }
}

/// What `reset-data` brings back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResetDataResult {
    /// How many bytes were removed; -1 where they could not be counted.
    pub wiped_bytes: i64,
}

/// What `snapshot-upload-once` brings back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotUploadResult {
    /// What was done.
    pub outcome: UploadOutcome,

    /// Why nothing was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noop_reason: Option<NoopReason>,

    /// The snapshot's height.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub height: Option<i64>,

    /// The object's key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// What became of an upload; also a metric label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UploadOutcome {
    /// A snapshot was uploaded.
    Uploaded,
    /// There was nothing to upload.
    Noop,
    /// It failed.
    Error,
}

/// Why nothing was uploaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum NoopReason {
    /// The newest snapshot may be incomplete, and there is no other.
    #[serde(rename = "fewer-than-2-snapshots")]
    FewerThanTwoSnapshots,
    /// The one to upload was uploaded before.
    #[serde(rename = "already-uploaded")]
    AlreadyUploaded,
}

/// The result of a failed task that knows whether trying again may help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Whether trying again may help.
    pub retryable: bool,
    /// What was being done.
    pub operation: String,
}
