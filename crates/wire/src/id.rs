//! Ids of tasks: an effect is named by the facts that require it.
//!
//! Whoever plans twice for the same need gets the same id, and the sidecar answers that it is already
//! done. What does not matter to an effect is no part of its name: a snapshot that was restored stays
//! restored when the pod is replaced, a gate that was opened does not stay open.

use std::fmt::Write;

use keelson_api::task::TaskType;
use serde_json::Value;
use sha2::{Digest, Sha256};
use uuid::{Uuid, uuid};

use crate::Object;
use crate::task::Task;

/// The namespace of all names; the original's.
pub const NAMESPACE: Uuid = uuid!("b7e89c3a-4f12-4d8b-9a6e-1c2d3e4f5a6b");

/// What is true of a node when a task is needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts<'a> {
    /// The uid of the SeiNode.
    pub node_uid: &'a str,
    /// The generation of its spec.
    pub generation: i64,
    /// The uid of the pod the sidecar runs in.
    pub pod_uid: &'a str,
    /// Which attempt it is, from one: a failed attempt is tried again under a new id.
    pub attempt: u32,
}

/// What an effect lasts for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// For as long as the node's volume exists.
    Data,
    /// Until the spec changes.
    Configuration,
    /// Until the spec changes or the pod is replaced.
    Gate,
}

impl Scope {
    /// What the effect of a task lasts for.
    pub const fn of(task: &Task) -> Self {
        match task {
            Task::SnapshotRestore(_)
            | Task::ResetData
            | Task::SnapshotUpload
            | Task::SnapshotUploadOnce => Self::Data,
            Task::ConfigureGenesis(_)
            | Task::ConfigApply(_)
            | Task::ConfigPatch(_)
            | Task::ConfigValidate
            | Task::DiscoverPeers(_)
            | Task::ConfigureStateSync(_) => Self::Configuration,
            // Stopping, restarting and waiting are about the process in this very pod.
            Task::MarkReady
            | Task::MarkNotReady
            | Task::StopSeid
            | Task::RestartSeid
            | Task::AwaitCondition(_) => Self::Gate,
        }
    }
}

/// The id of a task that these facts require.
pub fn of_facts(task: &Task, facts: &Facts<'_>) -> Uuid {
    of_effect(task.type_(), &task.params(), Scope::of(task), facts)
}

/// The id of an effect that these facts require, whether or not it is a task of [`Task`].
pub fn of_effect(type_: TaskType, params: &Object, scope: Scope, facts: &Facts<'_>) -> Uuid {
    let hash = hash(params);
    let mut name = format!("{type_}/{}/{hash}/{}", facts.node_uid, facts.attempt);
    // Writing to a string cannot fail.
    if scope != Scope::Data {
        let _ = write!(name, "/{}", facts.generation);
    }
    if scope == Scope::Gate {
        let _ = write!(name, "/{}", facts.pod_uid);
    }
    Uuid::new_v5(&NAMESPACE, name.as_bytes())
}

/// The id the original gives to a task of one of its plans.
pub fn of_plan(plan: &str, type_: TaskType, index: usize) -> Uuid {
    Uuid::new_v5(&NAMESPACE, format!("{plan}/{type_}/{index}").as_bytes())
}

/// SHA-256 of a task's parameters in lower-case hexadecimal; in which order they were written does
/// not matter.
pub fn params_hash(task: &Task) -> String {
    hash(&task.params())
}

fn hash(params: &Object) -> String {
    let sorted = sorted(Value::Object(params.clone())).to_string();
    let digest = Sha256::digest(sorted.as_bytes());
    digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.into_iter().collect();
            fields.sort_by(|(a, _), (b, _)| a.cmp(b));
            let sorted = fields
                .into_iter()
                .map(|(name, field)| (name, sorted(field)));
            Value::Object(sorted.collect())
        }
        Value::Array(entries) => entries.into_iter().map(sorted).collect(),
        value => value,
    }
}
