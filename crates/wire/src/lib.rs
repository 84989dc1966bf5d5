//! The sidecar's API as types: what operator and command line send, what the sidecar answers, and the
//! tasks with their parameters.
//!
//! Names, spellings and optional fields are those of the original, so that either side may be
//! replaced alone. Three rules hold for all types here:
//!
//! * *What is new is optional.* A field nobody knows is ignored, and `null` is the same as absent.
//! * *Nothing serializes as `null`.*
//! * *Values of parameters and results are never in `Debug`*: an override or a patch may hold a
//!   password. Their names are.
//!
//! No client, no server and no clock; how a task is carried out is the sidecar's.

mod answer;
pub mod id;
mod lenient;
mod openapi;
pub mod params;
mod request;
mod result;
pub mod route;
mod shown;
mod task;

pub use answer::BadAnswer;
pub use answer::{ErrorResponse, NodeIdResponse, Readiness, StatusResponse, TaskSubmitResponse};
pub use keelson_api::task::TaskType;
pub use openapi::document as openapi;
pub use request::{Refusal, Submission, TaskRequest};
pub use result::{Failure, NoopReason, ResetDataResult, SnapshotUploadResult, TaskResult};
pub use result::{TaskStatus, UploadOutcome};
pub use task::{BadParams, InvalidParams, Task};

/// A JSON object.
pub type Object = serde_json::Map<String, serde_json::Value>;
