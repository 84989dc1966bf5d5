//! The conditions of a node.

mod changes;
mod provided;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use keelson_api::condition::{Truth, condition, set};
use keelson_api::node_condition::{NodeCondition as Type, NodeReason as Reason};
use keelson_api::node_status::{DataState, SeiNodeStatus};
use keelson_api::task::PlanKind;
use keelson_plan::{Plan, Tls};

use super::{Ended, Findings};
use crate::certificate::{Order, Unfit};
use crate::node::record::{called, reasons};
use crate::node::seen::SeenPod;
use crate::node::{applied, put_back, validate};

/// A condition without what all have in common.
type Said = (Truth, Reason, String);

/// Puts every condition into the status.
pub(super) fn write(status: &mut SeiNodeStatus, old: &SeiNodeStatus, found: &Findings<'_>) {
    let generation = found.node.metadata.generation;
    let stalled = stalled(found, old);
    let said = [
        (Type::Ready, ready(found)),
        (Type::Synced, synced(found)),
        (Type::Reconciling, reconciling(found, stalled.as_ref())),
        (Type::Stalled, stalled),
        (Type::SpecValid, spec_valid(found)),
        (Type::Paused, paused(found)),
        (Type::NodeUpdateInProgress, update(found, old)),
        (Type::TemplateOutdated, outdated(found)),
        (Type::PeersApplied, peers(found)),
        (Type::SidecarReady, sidecar(found)),
        (Type::SidecarTlsSecretReady, tls_secret(found)),
        (Type::ImportPvcReady, provided::import(found)),
        (Type::SigningKeyReady, provided::signing_key(found)),
        (Type::NodeKeyReady, provided::node_key(found)),
        (Type::OperatorKeyringReady, provided::keyring(found)),
    ];
    for (type_, said) in said {
        let new = match said {
            Some((truth, reason, message)) => {
                let at = Time(found.now);
                condition(type_, truth, reason, message, generation, at)
            }
            None => kept(old, type_, found, generation),
        };
        set(&mut status.conditions, new);
    }
}

/// What was known before, of today's generation; or that nothing is.
fn kept(
    old: &SeiNodeStatus,
    type_: Type,
    found: &Findings<'_>,
    generation: Option<i64>,
) -> Condition {
    let known = old.conditions.iter().find(|it| it.type_ == type_.as_str());
    match known {
        Some(known) => Condition {
            observed_generation: generation,
            ..known.clone()
        },
        None => condition(
            type_,
            Truth::Unknown,
            Reason::NotObserved,
            "this was not looked at yet",
            generation,
            Time(found.now),
        ),
    }
}

fn yes(reason: Reason, message: impl Into<String>) -> Option<Said> {
    Some((Truth::True, reason, message.into()))
}

fn no(reason: Reason, message: impl Into<String>) -> Option<Said> {
    Some((Truth::False, reason, message.into()))
}

fn pod<'a>(found: &'a Findings<'_>) -> Option<&'a SeenPod> {
    found.sight?.pod.as_deref()
}

fn ready(found: &Findings<'_>) -> Option<Said> {
    if found.node.metadata.deletion_timestamp.is_some() {
        return no(Reason::Terminating, "the node is being deleted");
    }
    let plan = found.plan.map(|it| &it.plan);
    match pod(found) {
        _ if found.applied.data != Some(DataState::Complete) => {
            no(Reason::Initializing, "the node is being set up")
        }
        Some(pod) if pod.ready && !pod.identity.leaving && !is_replaced(found, pod) => {
            yes(Reason::NodeReady, "the pod is ready and the node serves")
        }
        Some(SeenPod {
            stuck: Some((container, why)),
            ..
        }) => no(
            Reason::PodNotReady,
            format!("{container} cannot start: {why}"),
        ),
        _ if plan.is_some_and(Plan::rolls) => no(Reason::PodNotReady, "the pod is being replaced"),
        None => no(Reason::PodNotReady, "there is no pod"),
        Some(_) => no(Reason::PodNotReady, "the pod is not ready"),
    }
}

/// Whether the pod is about to be replaced, or the one before was and this one is not approved yet: who
/// asks right after an edit whether the node is ready is not told that it is.
fn is_replaced(found: &Findings<'_>, pod: &SeenPod) -> bool {
    let (Some(plan), Some(desired)) = (found.plan, found.desired) else {
        return false;
    };
    let seen = pod.made.seen_from(&desired.demand);
    plan.plan.is_about_to_replace(&seen) || plan.plan.has_replaced(&seen)
}

/// The pod is ready while the node keeps up with the chain; before it runs nothing is known.
fn synced(found: &Findings<'_>) -> Option<Said> {
    match pod(found) {
        Some(pod) if pod.ready => yes(Reason::CaughtUp, "the node follows the head of the chain"),
        Some(pod) if pod.process.runs => no(
            Reason::CatchingUp,
            "the node runs and does not follow the head of the chain yet",
        ),
        _ => Some((
            Truth::Unknown,
            Reason::NotObserved,
            "the node does not run, so nobody knows how far it is".to_owned(),
        )),
    }
}

/// Whether a plan gets on. Who asks only whether to wait longer is told no as long as the node is
/// stalled, whatever is tried meanwhile.
fn reconciling(found: &Findings<'_>, stalled: Option<&Said>) -> Option<Said> {
    let stalled = stalled.filter(|(truth, _, _)| *truth == Truth::True);
    match found.plan {
        Some(plan) if let Some((_, reason, _)) = stalled => no(*reason, doing(&plan.plan)),
        Some(plan) => yes(Reason::PlanActive, doing(&plan.plan)),
        None if found.refusal.is_some() => no(Reason::Settled, "the spec is refused"),
        None if found.memory.failure.is_some() => no(
            Reason::PlanFailed,
            "the last plan failed; another one is made after a pause",
        ),
        None => no(Reason::Settled, "no change is under way"),
    }
}

/// What a plan is at, in a sentence.
fn doing(plan: &Plan) -> String {
    let what = format!("{} is under way ({})", called(plan.kind), reasons(plan));
    match plan.current() {
        None => what,
        Some(entry) => match (&entry.waiting, &entry.error) {
            (Some(waiting), _) => format!("{what}, at {}: {waiting}", entry.step),
            (None, Some(error)) => {
                let step = entry.step.to_string();
                // Whoever failed says its name, and so does whoever asked it.
                let error = error.trim_start_matches(&format!("{step} failed: "));
                let error = error.trim_start_matches(&format!("{step}: "));
                format!("{what}, at {step}, which is tried again: {error}")
            }
            (None, None) => format!("{what}, at {}", entry.step),
        },
    }
}

fn stalled(found: &Findings<'_>, old: &SeiNodeStatus) -> Option<Said> {
    if let Some(refusal) = found.refusal {
        return yes(refusal.reason, refusal.message.clone());
    }
    if !found.put_back.is_empty() {
        return yes(Reason::ImageNotStarting, put_back::told(found.put_back));
    }
    if let Some(said) = not_starting(found, old) {
        return Some(said);
    }
    match &found.memory.failure {
        None => no(
            Reason::NotStalled,
            "nothing keeps the operator from going on",
        ),
        Some(failure) => {
            let reason = match failure.overdue {
                true => Reason::DeadlineExceeded,
                false => Reason::PlanFailed,
            };
            let times = match found.memory.failures {
                0 | 1 => String::new(),
                times => format!(" ({times} times in a row)"),
            };
            let what = called(failure.kind);
            yes(
                reason,
                format!(
                    "{what} failed at {}: {}{times}",
                    failure.step, failure.error
                ),
            )
        }
    }
}

/// A container of the pod that a plan waits for and that does not start: somebody has to see to it,
/// and the kubelet goes on trying. Once is not enough to say so.
fn not_starting(found: &Findings<'_>, old: &SeiNodeStatus) -> Option<Said> {
    let (plan, pod) = (&found.plan?.plan, pod(found)?);
    // What is put back in a moment mends itself.
    if put_back::stuck(plan, pod, old).is_some() {
        return None;
    }
    let (container, why) = pod.stuck.as_ref()?;
    let reason = Reason::ImageNotStarting;
    let said = old.conditions.iter().find(|it| {
        it.type_ == Type::Stalled.as_str() && it.reason == reason.as_str() && it.status == "True"
    });
    match (why.as_str(), said) {
        ("ErrImagePull", None) => None,
        // The kubelet says the one and the other in turn.
        ("ErrImagePull", Some(said)) => yes(reason, said.message.clone()),
        _ => yes(
            reason,
            format!("{container} cannot start: {why}; correct its image or what it is given"),
        ),
    }
}

fn spec_valid(found: &Findings<'_>) -> Option<Said> {
    if let Some(refusal) = found.refusal {
        return no(refusal.reason, refusal.message.clone());
    }
    if let Some(message) = validate::deprecated(found.node) {
        return yes(Reason::DeprecatedField, message);
    }
    let set_up_from = found.applied.source.as_ref();
    match set_up_from.is_some_and(|from| *from != applied::source(found.node)) {
        true => yes(
            Reason::UsedAtSetUp,
            "snapshot and genesisCeremony say where a node's first state comes from, and this node has its state: the change does nothing here; create a new SeiNode to begin from there",
        ),
        false => yes(Reason::Valid, "the spec can be carried out"),
    }
}

fn paused(found: &Findings<'_>) -> Option<Said> {
    match found.node.spec.paused {
        true => yes(
            Reason::PausedBySpec,
            "nothing is changed while spec.paused is true",
        ),
        false => no(Reason::NotPaused, "spec.paused is not true"),
    }
}

/// Whether a running node is being changed. Setting one up and approving one again is neither.
fn update(found: &Findings<'_>, old: &SeiNodeStatus) -> Option<Said> {
    let reason = |kind: PlanKind| match kind {
        PlanKind::NodeUpdate => Some(Reason::UpdateStarted),
        PlanKind::TlsToggle => Some(Reason::TlsToggleStarted),
        PlanKind::NodeUpdateTls => Some(Reason::UpdateAndTlsToggleStarted),
        _ => None,
    };
    if let Some(plan) = found.plan
        && let Some(reason) = reason(plan.plan.kind)
    {
        let known = old.conditions.iter();
        let known = known.into_iter().find(|it| {
            it.type_ == Type::NodeUpdateInProgress.as_str()
                && it.status == Truth::True.as_str()
                && it.reason == reason.as_str()
        });
        // What it was before is only known at the beginning.
        let same = old.plan.as_ref().is_some_and(|it| it.id == plan.id);
        return match known.filter(|_| same) {
            Some(known) => yes(reason, known.message.clone()),
            None => yes(reason, changes::told(&plan.plan, old)),
        };
    }
    match found.ended {
        Some(Ended::Complete(plan)) if reason(plan.plan.kind).is_some() => {
            no(Reason::UpdateComplete, "the last update is complete")
        }
        Some(Ended::Failed(plan)) if reason(plan.plan.kind).is_some() => {
            let error = found.memory.failure.as_ref().map(|it| it.error.clone());
            no(Reason::UpdateFailed, error.unwrap_or_default())
        }
        _ if old
            .conditions
            .iter()
            .any(|it| it.type_ == Type::NodeUpdateInProgress.as_str() && it.status == "False") =>
        {
            None
        }
        _ => no(
            Reason::NotApplicable,
            "the node was not updated since it was set up",
        ),
    }
}

fn outdated(found: &Findings<'_>) -> Option<Said> {
    found.sight?;
    match found.outdated {
        true => yes(
            Reason::OperatorUpgraded,
            "the pod was made by another version of the operator or platform; it is replaced with the next change that rolls",
        ),
        false => no(
            Reason::TemplateCurrent,
            "the pod is as this operator makes it",
        ),
    }
}

fn peers(found: &Findings<'_>) -> Option<Said> {
    let wanted = found.desired?.target.peers.as_ref();
    let applied = found.applied;
    match wanted {
        None => yes(Reason::PeersCurrent, "no peers are asked for"),
        Some(wanted) if applied.process_peers.as_ref() == Some(wanted) => yes(
            Reason::PeersCurrent,
            "the process runs with the peers it is to have",
        ),
        Some(wanted) if applied.peers.as_ref() == Some(wanted) => no(
            Reason::EffectiveAtNextStart,
            "the peers are written and take effect when the process next starts",
        ),
        Some(_) => no(Reason::PlanActive, "the peers are not written yet"),
    }
}

fn sidecar(found: &Findings<'_>) -> Option<Said> {
    let sight = found.sight?;
    match (sight.approved, pod(found)) {
        (Some(true), Some(_)) => yes(
            Reason::SidecarReady,
            "the sidecar answers and has approved the start of the process",
        ),
        (Some(false), Some(_)) => no(
            Reason::SidecarNotReady,
            "the sidecar answers and has not approved the start of the process",
        ),
        (None, _) | (_, None) => Some((
            Truth::Unknown,
            Reason::SidecarUnreachable,
            "the sidecar does not answer".to_owned(),
        )),
    }
}

fn tls_secret(found: &Findings<'_>) -> Option<Said> {
    let desired = found.desired?;
    if desired.target.tls.is_none() {
        return no(Reason::NotApplicable, "TLS is not asked for");
    }
    let sight = found.sight?;
    let issued = desired.target.tls.as_ref().is_some_and(Tls::is_issued);
    let order = sight.certificate.as_ref().map(|it| &it.order);
    match sight.secret.as_ref()? {
        Ok(held) => match &sight.spoken {
            crate::sidecar::Spoken::Tls(peer)
                if peer.leaf.fingerprint != held.fingerprint && found.plan.is_none() =>
            {
                yes(
                    Reason::CertificateNotLoaded,
                    "the new certificate is there and is not served yet",
                )
            }
            _ => yes(
                Reason::TlsSecretReady,
                "the Secret holds a certificate that fits",
            ),
        },
        Err(unfit) => match (unfit, order) {
            (Unfit::NotFound(_) | Unfit::OtherIssuer { .. }, Some(Order::Failed(why))) => {
                no(Reason::CertificateFailed, why.clone())
            }
            (Unfit::NotFound(_), _) if issued => no(Reason::CertificatePending, unfit.to_string()),
            (Unfit::Unavailable(_), _) => Some((Truth::Unknown, unfit.reason(), unfit.to_string())),
            _ => no(unfit.reason(), unfit.to_string()),
        },
    }
}
