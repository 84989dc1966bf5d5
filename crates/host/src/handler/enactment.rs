//! What is told of a policy on this host: how it stands, as conditions, and how often it was tried.
//!
//! A [`Standing`] is one row of the table of conditions, in the original's words, so that whatever
//! reads them keeps working. An edit of the policy begins anew: the conditions of the last generation
//! say nothing about the next, and its attempts are not held against it. Writing is for others.

use std::fmt;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use keelson_api::condition::{HostCondition, Truth};
use keelson_api::enactment::NodeNetworkConfigurationEnactmentStatus as Status;
use keelson_api::host_condition::{EnactmentCondition, EnactmentReason};

/// How a policy stands on a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its state is being applied.
    Progressing,
    /// It is to be applied, and something is in the way that is not the policy's.
    Waiting {
        /// What.
        why: String,
    },
    /// It failed and is tried again.
    Retrying {
        /// The host's node.
        node: String,
        /// Which attempt comes next, from one.
        attempt: u32,
        /// How many there are.
        of: u32,
        /// Why it failed.
        error: String,
    },
    /// It failed for good.
    Failed(Failure),
    /// The host is as the policy asks.
    Configured,
    /// It waits for its turn.
    Pending,
    /// It was given up before it began.
    Aborted {
        /// The enactment.
        name: String,
        /// Why.
        why: String,
    },
}

/// How a policy failed for good.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The state to apply could not be worked out.
    Rendering(String),
    /// It could not be applied, or had to be undone.
    Applying {
        /// The host's node.
        node: String,
        /// Why.
        error: String,
    },
    /// It may not be applied: it is not valid, or brings what is not allowed.
    Refused(String),
    /// Another policy is there for the same interfaces.
    Conflict {
        /// The other policy.
        policy: String,
        /// What they disagree about.
        about: String,
    },
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rendering(error) => write!(
                f,
                "failure generating desiredState and capturedStates: {error}"
            ),
            Self::Applying { node, error } => write!(
                f,
                "error reconciling NodeNetworkConfigurationPolicy on node {node} at desired state \
                 apply: {error}"
            ),
            Self::Refused(why) => write!(f, "{why}"),
            Self::Conflict { policy, about } => {
                write!(f, "conflicts with policy {policy}: {about}")
            }
        }
    }
}

/// A row of the table: what each condition says in the order of their declaration, why, and the
/// message of those that have one.
struct Row {
    truths: [Truth; 5],
    reason: EnactmentReason,
    /// The original gives this condition another reason where something failed.
    aborted: EnactmentReason,
    message: String,
    told: &'static [EnactmentCondition],
}

impl Standing {
    fn row(&self) -> Row {
        use EnactmentCondition as Told;
        use EnactmentReason as Why;
        use Truth::{False, True, Unknown};
        let row = |truths, reason, message: String, told| Row {
            truths,
            reason,
            aborted: reason,
            message,
            told,
        };
        //                  Available, Failing, Progressing, Pending, Aborted
        match self {
            Self::Progressing => row(
                [Unknown, Unknown, True, False, False],
                Why::ConfigurationProgressing,
                "Applying desired state".to_owned(),
                &[Told::Progressing],
            ),
            Self::Waiting { why } => row(
                [Unknown, Unknown, True, False, False],
                Why::ConfigurationProgressing,
                why.clone(),
                &[Told::Progressing],
            ),
            Self::Retrying {
                node,
                attempt,
                of,
                error,
            } => Row {
                aborted: Why::SuccessfullyConfigured,
                ..row(
                    [False, True, True, False, False],
                    Why::Retrying,
                    format!(
                        "failed to reconcile NodeNetworkConfigurationPolicy on node {node}. \
                         Retrying {attempt}/{of}: {error}"
                    ),
                    &[Told::Failing, Told::Progressing],
                )
            },
            Self::Failed(failure) => Row {
                aborted: Why::SuccessfullyConfigured,
                ..row(
                    [False, True, False, False, False],
                    match failure {
                        Failure::Conflict { .. } => Why::PolicyConflict,
                        _ => Why::FailedToConfigure,
                    },
                    failure.to_string(),
                    &[Told::Failing],
                )
            },
            Self::Configured => row(
                [True, False, False, False, False],
                Why::SuccessfullyConfigured,
                "successfully reconciled".to_owned(),
                &[Told::Available],
            ),
            Self::Pending => row(
                [False, False, False, True, False],
                Why::MaxUnavailableLimitReached,
                "Waiting for progressing nodes to finish".to_owned(),
                &[Told::Pending, Told::Progressing],
            ),
            Self::Aborted { name, why } => row(
                [False, False, False, False, True],
                Why::ConfigurationAborted,
                format!("reconciliation of enactment {name:?} has aborted: {why}"),
                &[Told::Aborted],
            ),
        }
    }

    /// The conditions that say so, as of now.
    pub fn conditions(&self, now: Timestamp) -> Vec<HostCondition> {
        let row = self.row();
        let each = EnactmentCondition::ALL.iter().zip(row.truths);
        each.map(|(&kind, truth)| {
            let reason = match kind {
                EnactmentCondition::Aborted => row.aborted,
                _ => row.reason,
            };
            let message = row.told.contains(&kind).then(|| row.message.clone());
            HostCondition::new(kind, truth, Some(reason), message, Time(now))
        })
        .collect()
    }

    /// Puts it among the conditions there are. Heartbeats move; a time of transition moves only with
    /// its status.
    pub fn set(&self, conditions: &mut Vec<HostCondition>, now: Timestamp) {
        for condition in self.conditions(now) {
            condition.set(conditions);
        }
    }

    /// Whether the conditions say so already, so that nothing has to be written.
    pub fn is_told(&self, conditions: &[HostCondition]) -> bool {
        let said = self.conditions(Timestamp::UNIX_EPOCH);
        said.iter().all(|new| {
            conditions.iter().any(|old| {
                (&old.type_, &old.status, &old.reason, &old.message)
                    == (&new.type_, &new.status, &new.reason, &new.message)
            })
        })
    }
}

/// The conditions of an enactment of which nothing is known yet.
pub fn unknown(now: Timestamp) -> Vec<HostCondition> {
    let each = EnactmentCondition::ALL.iter();
    each.map(|&kind| HostCondition::new(kind, Truth::Unknown, None, None, Time(now)))
        .collect()
}

/// Whether the host is as the policy asks.
pub fn is_available(conditions: &[HostCondition]) -> bool {
    holds(conditions, EnactmentCondition::Available)
}

/// Whether the policy is being applied, for the first time or again.
pub fn is_progressing(conditions: &[HostCondition]) -> bool {
    holds(conditions, EnactmentCondition::Progressing)
}

/// Whether the policy failed and is tried again.
pub fn is_retrying(conditions: &[HostCondition]) -> bool {
    is_progressing(conditions) && is_failing(conditions)
}

/// Whether the policy failed, for good or not.
pub fn is_failing(conditions: &[HostCondition]) -> bool {
    holds(conditions, EnactmentCondition::Failing)
}

/// Whether nothing more becomes of the policy by itself: it is enacted, failed or given up.
pub fn is_finished(conditions: &[HostCondition]) -> bool {
    use EnactmentCondition::{Aborted, Available, Failing};
    let ends = [Available, Failing, Aborted];
    !is_progressing(conditions) && ends.into_iter().any(|kind| holds(conditions, kind))
}

fn holds(conditions: &[HostCondition], kind: EnactmentCondition) -> bool {
    HostCondition::truth(conditions, kind) == Truth::True
}

/// How often a policy is tried, and with which pauses: the operator's settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Attempts for each generation of a policy.
    pub attempts: u32,
    /// The pause before the second attempt.
    pub first: SignedDuration,
    /// The longest pause.
    pub longest: SignedDuration,
}

/// What comes after a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum After {
    /// Another attempt.
    Attempt {
        /// Its number, from one.
        number: u32,
        /// How long to wait for it.
        pause: SignedDuration,
    },
    /// Nothing: there were as many as may be.
    Nothing,
}

impl Retries {
    /// Twice as long after each failure, up to the longest.
    fn pause(&self, failures: u32) -> SignedDuration {
        let doublings = failures.saturating_sub(1).min(16);
        self.first
            .checked_mul(1 << doublings)
            .map_or(self.longest, |pause| pause.min(self.longest))
    }
}

/// Turns an enactment to a generation of its policy. One it was about another generation begins anew.
pub fn begin(status: &mut Status, generation: i64, now: Timestamp) {
    if status.policy_generation != Some(generation) {
        status.policy_generation = Some(generation);
        status.conditions = unknown(now);
        status.retry_count.clear();
    }
}

/// How often a generation of the policy failed.
pub fn failures(status: &Status, generation: i64) -> u32 {
    let count = status.retry_count.get(&generation.to_string());
    count.and_then(|it| u32::try_from(*it).ok()).unwrap_or(0)
}

/// Whether a generation of the policy may be tried: there were not too many failures.
pub fn may_try(status: &Status, generation: i64, retries: &Retries) -> bool {
    failures(status, generation) < retries.attempts.max(1)
}

/// Counts a failure, and says what comes after it.
pub fn failed(status: &mut Status, generation: i64, retries: &Retries) -> After {
    let failures = failures(status, generation).saturating_add(1);
    let count = i32::try_from(failures).unwrap_or(i32::MAX);
    status.retry_count.insert(generation.to_string(), count);
    match may_try(status, generation, retries) {
        true => After::Attempt {
            number: failures.saturating_add(1),
            pause: retries.pause(failures),
        },
        false => After::Nothing,
    }
}
