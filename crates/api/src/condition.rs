//! Conditions: how they are made and how they are set.
//!
//! `sei.io` uses the condition of the Kubernetes API; `nmstate.io` has a shape of its own, older
//! than that. Which types and reasons there are stands in the files of the kinds they belong to; a
//! condition's type decides which reasons it may have. Nobody here knows the time: the caller says
//! when.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::tolerant;
use crate::vocabulary::vocabulary;

vocabulary! {
    /// Whether a condition holds.
    pub enum Truth {
        /// It holds.
        True => "True",
        /// It does not.
        False => "False",
        /// Not known.
        Unknown => "Unknown",
    }
}

/// A vocabulary of condition types, and the vocabulary of reasons that goes with it.
pub trait ConditionType: Copy {
    /// Reasons a condition of this vocabulary may have.
    type Reason: Reason;

    /// The type as it stands in the object.
    fn name(self) -> &'static str;
}

/// A vocabulary of reasons.
pub trait Reason: Copy {
    /// The reason as it stands in the object.
    fn name(self) -> &'static str;
}

/// Ties a vocabulary of types to one of reasons.
macro_rules! reasons {
    ($kind:ty => $reason:ty) => {
        impl $crate::condition::ConditionType for $kind {
            type Reason = $reason;

            fn name(self) -> &'static str {
                self.as_str()
            }
        }

        impl $crate::condition::Reason for $reason {
            fn name(self) -> &'static str {
                self.as_str()
            }
        }
    };
}

pub(crate) use reasons;

/// A condition of `sei.io`, observed for a generation of the spec.
pub fn condition<T: ConditionType>(
    kind: T,
    truth: Truth,
    reason: T::Reason,
    message: impl Into<String>,
    generation: Option<i64>,
    at: Time,
) -> Condition {
    Condition {
        type_: kind.name().to_owned(),
        status: truth.as_str().to_owned(),
        reason: reason.name().to_owned(),
        message: message.into(),
        observed_generation: generation,
        last_transition_time: at,
    }
}

/// Puts a condition among the others. The time of transition moves only if the status does.
pub fn set(conditions: &mut Vec<Condition>, mut new: Condition) {
    match conditions.iter_mut().find(|old| old.type_ == new.type_) {
        Some(old) => {
            if old.status == new.status {
                new.last_transition_time = old.last_transition_time.clone();
            }
            *old = new;
        }
        None => conditions.push(new),
    }
}

/// Whether the conditions say that this one holds; `Unknown` where they do not mention it.
pub fn truth<T: ConditionType>(conditions: &[Condition], kind: T) -> Truth {
    conditions
        .iter()
        .find(|condition| condition.type_ == kind.name())
        .and_then(|condition| condition.status.parse().ok())
        .unwrap_or(Truth::Unknown)
}

/// A condition of `nmstate.io`.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HostCondition {
    /// What the condition is about.
    #[serde(rename = "type")]
    pub type_: String,

    /// `True`, `False` or `Unknown`.
    pub status: String,

    /// Why, in one word.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub reason: Option<String>,

    /// Why, in a sentence.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub message: Option<String>,

    /// When the condition was last written.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub last_heartbeat_time: Option<Time>,

    /// When the status last changed.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub last_transition_time: Option<Time>,
}

impl HostCondition {
    /// A condition; one that is not known yet may have no reason.
    pub fn new<T: ConditionType>(
        kind: T,
        truth: Truth,
        reason: Option<T::Reason>,
        message: Option<String>,
        at: Time,
    ) -> Self {
        Self {
            type_: kind.name().to_owned(),
            status: truth.as_str().to_owned(),
            reason: reason.map(|reason| reason.name().to_owned()),
            message,
            last_heartbeat_time: Some(at.clone()),
            last_transition_time: Some(at),
        }
    }

    /// Puts the condition among the others. The heartbeat moves always, the time of transition only
    /// if the status does.
    pub fn set(mut self, conditions: &mut Vec<Self>) {
        match conditions.iter_mut().find(|old| old.type_ == self.type_) {
            Some(old) => {
                if old.status == self.status {
                    self.last_transition_time = old.last_transition_time.take();
                }
                *old = self;
            }
            None => conditions.push(self),
        }
    }

    /// Whether the conditions say that this one holds; `Unknown` where they do not mention it.
    pub fn truth<T: ConditionType>(conditions: &[Self], kind: T) -> Truth {
        conditions
            .iter()
            .find(|condition| condition.type_ == kind.name())
            .and_then(|condition| condition.status.parse().ok())
            .unwrap_or(Truth::Unknown)
    }
}
