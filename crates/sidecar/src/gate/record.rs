//! What was approved, as it stands on the volume, and whether it still holds: a pure decision.

use crate::engine::recover::Hold;
use jiff::Timestamp;
use keelson_wire::TaskType;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What is true of this pod, as the operator tells it. All of it, or the gate never opens by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The uid of the SeiNode.
    pub node_uid: String,
    /// What the pod is for.
    pub pod_kind: PodKind,
    /// What the start of the node depends on: its image, command, intent and keys.
    pub start_fingerprint: String,
}

/// What a pod is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PodKind {
    /// To be the node.
    Node,
    /// To bring a node's volume to a height, and end.
    Bootstrap,
}

impl FromStr for PodKind {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        match text {
            "node" => Ok(Self::Node),
            "bootstrap" => Ok(Self::Bootstrap),
            _ => Err(()),
        }
    }
}

impl fmt::Display for PodKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Node => "node",
            Self::Bootstrap => "bootstrap",
        })
    }
}

/// What was approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    node_uid: String,
    pod_kind: PodKind,
    start_fingerprint: String,
    /// Hash of the configuration files.
    configuration: String,
    /// Hash of the files that are about to replace them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) next: Option<String>,
    /// When the release was submitted.
    approved_at: Timestamp,
}

impl Record {
    /// What is approved now.
    pub fn new(facts: &Facts, configuration: String, at: Timestamp) -> Self {
        Self {
            node_uid: facts.node_uid.clone(),
            pod_kind: facts.pod_kind,
            start_fingerprint: facts.start_fingerprint.clone(),
            configuration,
            next: None,
            approved_at: at,
        }
    }

    /// Reads a record.
    pub fn parse(text: &str) -> Result<Self, Reason> {
        serde_json::from_str(text).map_err(|error| Reason::Broken(error.to_string()))
    }

    /// The record as it is written.
    pub fn text(&self) -> String {
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    pub(super) fn is_for(&self, facts: &Facts) -> bool {
        self.mismatch(facts).is_none()
    }

    fn mismatch(&self, facts: &Facts) -> Option<Reason> {
        if self.node_uid != facts.node_uid {
            Some(Reason::OtherNode)
        } else if self.pod_kind != facts.pod_kind {
            Some(Reason::OtherPod(self.pod_kind))
        } else if self.start_fingerprint != facts.start_fingerprint {
            Some(Reason::OtherStart)
        } else {
            None
        }
    }

    fn covers(&self, configuration: &str) -> bool {
        self.configuration == configuration || self.next.as_deref() == Some(configuration)
    }

    /// The record while one configuration replaces the other. Nothing, if it approves neither the
    /// one nor that it becomes the other.
    pub fn carried(&self, before: &str, after: &str) -> Option<Self> {
        let mut carried = self.clone();
        if self.covers(before) {
            before.clone_into(&mut carried.configuration);
        } else if self.next.as_deref() != Some(after) {
            return None;
        }
        carried.next = Some(after.to_owned());
        Some(carried)
    }

    /// The record when the new configuration is in place.
    pub fn settled(&self, configuration: &str) -> Self {
        Self {
            configuration: configuration.to_owned(),
            next: None,
            ..self.clone()
        }
    }
}

/// What the store says that speaks against an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// When the gate was last told to close.
    pub held_since: Hold,
    /// A task that sets the node up and was left unfinished.
    pub unfinished: Option<TaskType>,
}

impl Evidence {
    /// Nothing speaks against it.
    pub const NONE: Self = Self {
        held_since: Hold::Never,
        unfinished: None,
    };
}

/// Why the gate does not open by itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// Nothing was approved, or it was revoked.
    #[error("nothing is approved on this volume")]
    NoRecord,
    /// The record cannot be read as one.
    #[error("the approval on the volume cannot be read: {0}")]
    Broken(String),
    /// A file cannot be read.
    #[error("{0}")]
    Unreadable(String),
    /// The pod does not say what it is.
    #[error(
        "the pod does not say what it is: KEELSON_NODE_UID, KEELSON_POD_KIND and \
         KEELSON_START_FINGERPRINT are needed"
    )]
    MissingFacts,
    /// The volume was another node's.
    #[error("the approval is another SeiNode's")]
    OtherNode,
    /// It was a pod of the other kind.
    #[error("the approval is that of a {0} pod")]
    OtherPod(PodKind),
    /// The node would start differently.
    #[error("the approval is for another image, command, intent or key")]
    OtherStart,
    /// The configuration files are other ones.
    #[error("the configuration files are not those that were approved")]
    OtherConfiguration,
    /// The gate was told to close since.
    #[error("the gate was told to close since")]
    Held,
    /// The node is half set up.
    #[error("a task of type {0} has not finished")]
    Unfinished(TaskType),
}

impl Reason {
    pub(super) fn unreadable(trouble: crate::disk::Trouble) -> Self {
        Self::Unreadable(trouble.to_string())
    }
}

/// Whether what was approved is what is there now. Everything must match.
pub fn approved(
    record: Option<&Record>,
    facts: Option<&Facts>,
    configuration: &str,
    evidence: &Evidence,
) -> Result<(), Reason> {
    let record = record.ok_or(Reason::NoRecord)?;
    let facts = facts.ok_or(Reason::MissingFacts)?;
    if let Some(mismatch) = record.mismatch(facts) {
        return Err(mismatch);
    }
    if evidence.held_since.outweighs(record.approved_at) {
        return Err(Reason::Held);
    }
    if let Some(type_) = evidence.unfinished {
        return Err(Reason::Unfinished(type_));
    }
    if !record.covers(configuration) {
        return Err(Reason::OtherConfiguration);
    }
    Ok(())
}
