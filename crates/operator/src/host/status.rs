//! What an NMState's status says: a function of what was found and of what stood there before.
//!
//! The three conditions of the original, with its reasons, and two about the TLS profile. A profile
//! that cannot be carried out never makes the workloads unavailable: they run. Writing it is for the
//! controller, and only where something other than the time differs.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use keelson_api::NMState;
use keelson_api::condition::{HostCondition, Truth};
use keelson_api::host_condition::{NmstateCondition, NmstateReason};
use keelson_cluster::Key;

use super::profile::{Decision, Outcome};

/// Everything the status is made from.
#[derive(Clone, Debug, Default)]
pub struct Report<'a> {
    /// What could not be read, decided or written, one sentence each.
    pub failures: Vec<String>,
    /// Workloads that are not settled, one sentence each.
    pub unsettled: Vec<String>,
    /// The profile in force.
    pub profile: Option<&'a Decision>,
    /// Pods that have not loaded it yet, one sentence each.
    pub loading: Vec<String>,
    /// What else a person should know.
    pub notes: Vec<String>,
}

/// The oldest of the NMStates, which is the one that counts; of two made in the same second the one
/// whose name comes first.
pub fn oldest<'a>(all: impl IntoIterator<Item = &'a NMState>) -> Option<&'a NMState> {
    let age = |it: &NMState| {
        let made = it.metadata.creation_timestamp.as_ref();
        (made.map(|made| made.0), it.metadata.name.clone())
    };
    all.into_iter()
        .filter(|it| it.metadata.deletion_timestamp.is_none())
        .min_by_key(|it| age(it))
}

/// Why a Deployment is not settled, if it is not.
pub fn deployment(object: &Deployment) -> Option<String> {
    let status = object.status.clone().unwrap_or_default();
    let why = unsettled(&Pods {
        generation: object.metadata.generation,
        observed: status.observed_generation,
        wanted: object.spec.as_ref().and_then(|it| it.replicas).unwrap_or(1),
        updated: status.updated_replicas,
        available: status.available_replicas,
        missing: status.unavailable_replicas,
    })?;
    let name = object.metadata.name.as_deref().unwrap_or_default();
    Some(format!("Deployment {name}: {why}"))
}

/// Why a DaemonSet is not settled, if it is not.
pub fn daemon_set(object: &DaemonSet) -> Option<String> {
    let status = object.status.clone().unwrap_or_default();
    let why = unsettled(&Pods {
        generation: object.metadata.generation,
        observed: status.observed_generation,
        wanted: status.desired_number_scheduled,
        updated: status.updated_number_scheduled,
        available: status.number_available,
        missing: status.number_unavailable,
    })?;
    let name = object.metadata.name.as_deref().unwrap_or_default();
    Some(format!("DaemonSet {name}: {why}"))
}

/// What a workload says of its pods.
struct Pods {
    generation: Option<i64>,
    observed: Option<i64>,
    wanted: i32,
    updated: Option<i32>,
    available: Option<i32>,
    missing: Option<i32>,
}

fn unsettled(pods: &Pods) -> Option<String> {
    let (wanted, updated) = (pods.wanted, pods.updated.unwrap_or_default());
    let missing = pods.missing.unwrap_or_default();
    if pods.observed.unwrap_or_default() < pods.generation.unwrap_or_default() {
        Some("its change was not taken up yet".to_owned())
    } else if missing > 0 {
        Some(format!("{missing} of its pods are not available"))
    } else if wanted > 0 && pods.available.unwrap_or_default() == 0 {
        Some("none of its pods is available".to_owned())
    } else if updated < wanted {
        Some(format!("{updated} of {wanted} pods are of its last change"))
    } else {
        None
    }
}

/// The conditions of an NMState that counts.
pub fn conditions(
    report: &Report<'_>,
    before: &[HostCondition],
    now: Timestamp,
) -> Vec<HostCondition> {
    let known = before
        .iter()
        .any(|it| it.type_ == NmstateCondition::ForeignOperatorPresent.as_str());
    let before = match known {
        true => foreign(None, before, now),
        false => before.to_vec(),
    };
    let mut said = Said::new(&before, now);
    workloads(report, &mut said);
    if let Some(decision) = report.profile {
        profile(decision, &report.loading, &mut said);
    }
    said.conditions
}

/// The conditions of an NMState that does not count, because there is an older one.
pub fn superseded(by: &str, before: &[HostCondition], now: Timestamp) -> Vec<HostCondition> {
    use NmstateCondition::{Available, Degraded, Progressing};
    let message = format!(
        "the NMState {by} is older and is the one that counts: delete this one, or that one"
    );
    let mut said = Said::new(before, now);
    for (condition, truth) in [
        (Available, Truth::False),
        (Progressing, Truth::False),
        (Degraded, Truth::True),
    ] {
        said.add(
            condition,
            truth,
            NmstateReason::NotTheOldest,
            message.clone(),
        );
    }
    // What was said about a profile while it counted holds no longer.
    said.conditions.retain(|it| {
        let names = [Available, Progressing, Degraded].map(NmstateCondition::as_str);
        names.contains(&it.type_.as_str())
    });
    said.conditions
}

/// The conditions of an NMState while the original's operator runs: nothing else is written, so what
/// stood there before stays.
pub fn foreign(
    original: Option<&Key>,
    before: &[HostCondition],
    now: Timestamp,
) -> Vec<HostCondition> {
    use NmstateReason::{ForeignOperatorAbsent, ForeignOperatorFound};
    let mut said = Said::new(before, now);
    let (truth, reason, message) = match original {
        Some(original) => (
            Truth::True,
            ForeignOperatorFound,
            format!(
                "the Deployment {original} of kubernetes-nmstate's operator runs, so nothing is \
                 written: scale it down to 0, or delete it"
            ),
        ),
        None => (Truth::False, ForeignOperatorAbsent, String::new()),
    };
    said.add(
        NmstateCondition::ForeignOperatorPresent,
        truth,
        reason,
        message,
    );
    said.conditions
}

/// Whether two lists of conditions say the same, whenever they were written.
pub fn same(one: &[HostCondition], other: &[HostCondition]) -> bool {
    let timeless = |it: &HostCondition| HostCondition {
        last_heartbeat_time: None,
        ..it.clone()
    };
    one.len() == other.len()
        && one
            .iter()
            .zip(other)
            .all(|(one, other)| timeless(one) == timeless(other))
}

fn workloads(report: &Report<'_>, said: &mut Said) {
    use NmstateCondition::{Available, Degraded, Progressing};
    use NmstateReason::{Deploying, InternalError, SuccessfullyDeployed};
    if !report.failures.is_empty() {
        let message = report.failures.join("\n");
        said.add(Progressing, Truth::False, InternalError, String::new());
        said.add(Available, Truth::False, InternalError, String::new());
        said.add(Degraded, Truth::True, InternalError, message);
        return;
    }
    let failing = report.profile.and_then(failing);
    let notes = report.notes.join("\n");
    if report.unsettled.is_empty() {
        said.add(
            Progressing,
            Truth::False,
            SuccessfullyDeployed,
            String::new(),
        );
        said.add(Available, Truth::True, SuccessfullyDeployed, notes);
        match failing {
            Some((reason, message)) => said.add(Degraded, Truth::True, reason, message),
            None => said.add(Degraded, Truth::False, SuccessfullyDeployed, String::new()),
        }
        return;
    }
    said.add(
        Progressing,
        Truth::True,
        Deploying,
        report.unsettled.join("\n"),
    );
    said.add(Available, Truth::False, Deploying, notes);
    match failing {
        Some((reason, message)) => said.add(Degraded, Truth::True, reason, message),
        None => said.add(Degraded, Truth::False, Deploying, String::new()),
    }
}

/// What is wrong with the profile so that the whole is degraded.
fn failing(decision: &Decision) -> Option<(NmstateReason, String)> {
    match &decision.outcome {
        Outcome::Unusable(why) => Some((NmstateReason::TlsProfileUnusable, why.clone())),
        Outcome::Partly(said) if decision.strict => {
            Some((NmstateReason::TlsProfileNotFullyHonored, said.clone()))
        }
        _ => None,
    }
}

fn profile(decision: &Decision, loading: &[String], said: &mut Said) {
    use NmstateCondition::{TlsProfileNotFullyHonored, TlsProfileUnusable};
    use NmstateReason::{InternalError, TlsProfileHonored, TlsProfileLoading};
    let with_notes = |message: &str| {
        let notes = decision.notes.iter().map(String::as_str);
        let parts: Vec<&str> = std::iter::once(message).chain(notes).collect();
        parts
            .into_iter()
            .filter(|it| !it.is_empty())
            .collect::<Vec<_>>()
            .join("; ")
    };
    let (partly, reason, message) = match &decision.outcome {
        Outcome::Partly(dropped) => (
            Truth::True,
            NmstateReason::TlsProfileNotFullyHonored,
            std::iter::once(with_notes(dropped))
                .chain(loading.iter().cloned())
                .collect::<Vec<_>>()
                .join("\n"),
        ),
        _ if !loading.is_empty() => (Truth::Unknown, TlsProfileLoading, loading.join("\n")),
        _ => (Truth::False, TlsProfileHonored, with_notes("")),
    };
    said.add(TlsProfileNotFullyHonored, partly, reason, message);
    let stays = "the profile that was in force stays";
    let (unusable, reason, message) = match &decision.outcome {
        Outcome::Unusable(why) => (
            Truth::True,
            NmstateReason::TlsProfileUnusable,
            format!("{why}; {stays}"),
        ),
        Outcome::Unread(why) => (Truth::Unknown, InternalError, format!("{why}; {stays}")),
        _ => (Truth::False, TlsProfileHonored, String::new()),
    };
    said.add(TlsProfileUnusable, unusable, reason, message);
}

/// Conditions as they are put together.
struct Said {
    conditions: Vec<HostCondition>,
    now: Time,
}

impl Said {
    fn new(before: &[HostCondition], now: Timestamp) -> Self {
        Self {
            conditions: before.to_vec(),
            now: Time(now),
        }
    }

    fn add(
        &mut self,
        condition: NmstateCondition,
        truth: Truth,
        reason: NmstateReason,
        message: String,
    ) {
        let message = (!message.is_empty()).then_some(message);
        HostCondition::new(condition, truth, Some(reason), message, self.now.clone())
            .set(&mut self.conditions);
    }
}
