//! Small answers of the API.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The answer to anything that is refused or fails.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ErrorResponse {
    /// What is wrong.
    pub error: String,
}

/// The answer of `/v0/status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusResponse {
    /// Whether the node is still being set up.
    pub status: Readiness,
}

/// Whether the gate before seid is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Readiness {
    /// Not yet: seid waits.
    Initializing,
    /// Open: seid may start.
    Ready,
}

/// The answer of `/v0/node-id`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeIdResponse {
    /// The node's identity among peers: 40 lower-case hexadecimal digits.
    #[schemars(regex(pattern = "^[0-9a-f]{40}$"))]
    pub node_id: String,
}

/// The answer to a task that was accepted, whether it is new, runs already or is run again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TaskSubmitResponse {
    /// The task's id.
    #[schemars(extend("format" = "uuid"))]
    pub id: String,
}

/// An answer that cannot be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadAnswer {
    /// The id is no id, or the one of nothing.
    #[error("the sidecar answered with the task id {0:?}, which names no task: is it a sidecar?")]
    NoTaskId(String),
}

impl TaskSubmitResponse {
    /// The id, if it is one.
    pub fn task_id(&self) -> Result<&str, BadAnswer> {
        match Uuid::parse_str(&self.id) {
            Ok(id) if !id.is_nil() => Ok(&self.id),
            _ => Err(BadAnswer::NoTaskId(self.id.clone())),
        }
    }
}
