//! Submitting a task: the request as it is sent, and how it is read.

use std::fmt;

use keelson_api::task::TaskType;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::Object;
use crate::shown::Names;
use crate::task::Task;

/// The body of `POST /v0/tasks`, as it is sent.
#[derive(Clone, PartialEq, Serialize)]
pub struct TaskRequest {
    /// The id the caller gives the task; without one the sidecar draws one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The task's type.
    #[serde(rename = "type")]
    pub type_: TaskType,
    /// What the task is given.
    #[serde(skip_serializing_if = "Object::is_empty")]
    pub params: Object,
}

impl TaskRequest {
    /// The request that submits this task.
    pub fn new(id: Option<String>, task: &Task) -> Self {
        Self {
            id,
            type_: task.type_(),
            params: task.params(),
        }
    }
}

impl fmt::Debug for TaskRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskRequest")
            .field("id", &self.id)
            .field("type", &self.type_)
            .field("params", &Names(&self.params))
            .finish()
    }
}

/// A request that is accepted. Its parameters are read when the task begins, because the original
/// accepts a task whose parameters make no sense and lets it fail.
#[derive(Clone, PartialEq)]
pub struct Submission {
    /// The id, to the letter; it is the key under which the task is kept.
    pub id: Option<String>,
    /// The task's type.
    pub type_: TaskType,
    /// What the task is given, as sent.
    pub params: Object,
}

impl fmt::Debug for Submission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Submission")
            .field("id", &self.id)
            .field("type", &self.type_)
            .field("params", &Names(&self.params))
            .finish()
    }
}

/// Why a request is refused: the text of the answer 400.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Not JSON, or JSON of another shape.
    #[error("invalid request body")]
    InvalidBody,
    /// No type.
    #[error("type is required")]
    TypeMissing,
    /// A type no sidecar understands.
    #[error("unknown task type: {0}")]
    UnknownType(String),
    /// An id that is none.
    #[error("task ID must be a valid UUID: {0:?}")]
    BadId(String),
}

impl Submission {
    /// Reads a body. Only its first JSON value counts; fields nobody knows are ignored, and `null` is
    /// the same as absent.
    pub fn read(body: &[u8]) -> Result<Self, Refusal> {
        let mut values = serde_json::Deserializer::from_slice(body).into_iter();
        let mut body = match values.next() {
            Some(Ok(Value::Object(body))) => body,
            Some(Ok(Value::Null)) => Object::new(),
            _ => return Err(Refusal::InvalidBody),
        };
        let id = text(&mut body, "id")?;
        let name = text(&mut body, "type")?;
        let params = match body.remove("params") {
            None | Some(Value::Null) => Object::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return Err(Refusal::InvalidBody),
        };
        if name.is_empty() {
            return Err(Refusal::TypeMissing);
        }
        if !id.is_empty() && Uuid::parse_str(&id).is_err() {
            return Err(Refusal::BadId(id));
        }
        let type_ = Task::type_of(&name).ok_or(Refusal::UnknownType(name))?;
        Ok(Self {
            id: (!id.is_empty()).then_some(id),
            type_,
            params,
        })
    }
}

fn text(body: &mut Object, name: &str) -> Result<String, Refusal> {
    match body.remove(name) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text),
        Some(_) => Err(Refusal::InvalidBody),
    }
}
