//! What a status says, worked out from what was seen and done.
//!
//! Pure. Every condition is there from the first report on. What is not known keeps what was known:
//! a sidecar that does not answer takes nothing back.

mod conditions;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use keelson_api::SeiNode;
use keelson_api::names::Port;
use keelson_api::node_status::{
    Applied, CurrentSidecarTls, DataState, NodePhase, PutBack, SeiNodeStatus, SidecarTlsRequirement,
};
use keelson_plan::{Memory, Tls};
use keelson_render::names;

use super::desired::Desired;
use super::made::container;
use super::record::{self, Written};
use super::sight::Sight;
use super::validate::Refusal;
use crate::sidecar::Spoken;

/// How a plan ended in this reconcile.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    /// It is complete.
    Complete(Box<Written>),
    /// It failed.
    Failed(Box<Written>),
}

/// What was found out about a node.
pub struct Findings<'a> {
    /// The node.
    pub node: &'a SeiNode,
    /// What it asks for, unless that makes no sense.
    pub desired: Option<&'a Desired>,
    /// What was seen of it.
    pub sight: Option<&'a Sight>,
    /// What is on its volume.
    pub applied: &'a Applied,
    /// The plan that is being carried out.
    pub plan: Option<&'a Written>,
    /// How one ended.
    pub ended: Option<&'a Ended>,
    /// What is remembered of earlier ones.
    pub memory: &'a Memory,
    /// Why the spec is refused.
    pub refusal: Option<&'a Refusal>,
    /// Whether the pod is of an older operator's template.
    pub outdated: bool,
    /// Images that did not start and were put back.
    pub put_back: &'a [PutBack],
    /// The retry that was obeyed.
    pub retried: Option<String>,
    /// What time it is.
    pub now: Timestamp,
}

/// The status after this reconcile.
pub fn status(
    old: &SeiNodeStatus,
    found: &Findings<'_>,
    id_of: impl Fn(usize, &keelson_plan::Entry) -> String,
) -> SeiNodeStatus {
    let mut status = old.clone();
    status.observed_generation = found.node.metadata.generation;
    status.plan = found.plan.map(|plan| record::write(plan, id_of));
    let written = match found.ended {
        Some(Ended::Complete(plan) | Ended::Failed(plan)) => Some(plan.as_ref()),
        None => found.plan,
    };
    record::remember(found.memory, written, &mut status);
    status.retried = found.retried.clone();
    status.put_back = found.put_back.to_vec();
    status.applied = (*found.applied != Applied::default()).then(|| found.applied.clone());
    if let Some(desired) = found.desired {
        status.resolved_peers = desired.resolved_peers.clone();
    }
    if let Some(sight) = found.sight {
        status.sidecar_tls = requirement(found, sight);
        observe(&mut status, found, sight);
    }
    let phase = phase(found);
    if status.phase != Some(phase) {
        status.phase = Some(phase);
        status.phase_transition_time = Some(Time(found.now));
    }
    conditions::write(&mut status, old, found);
    status
}

/// Where in its life the node is.
fn phase(found: &Findings<'_>) -> NodePhase {
    if found.node.metadata.deletion_timestamp.is_some() {
        return NodePhase::Terminating;
    }
    if found.applied.data == Some(DataState::Complete) {
        return NodePhase::Running;
    }
    match (found.plan, &found.memory.failure) {
        (Some(_), _) => NodePhase::Initializing,
        (None, Some(_)) => NodePhase::Failed,
        (None, None) => NodePhase::Pending,
    }
}

/// What containers run and ports speak.
fn observe(status: &mut SeiNodeStatus, found: &Findings<'_>, sight: &Sight) {
    let Some(pod) = &sight.pod else { return };
    for (name, _, image) in pod.containers() {
        if pod.runs(name, found.now) {
            let current = match name {
                container::NODE => &mut status.current_image,
                container::SIDECAR => &mut status.current_sidecar_image,
                _ => &mut status.current_proxy_image,
            };
            *current = Some(image.to_owned());
        }
    }
    if sight.met.as_ref() != Some(&pod.identity.uid) {
        return;
    }
    let name = found.node.metadata.name.as_deref().unwrap_or_default();
    let namespace = found.node.metadata.namespace.as_deref().unwrap_or_default();
    let [_, host] = names::dns(name, namespace);
    let port = Port::Api.number();
    match &sight.spoken {
        Spoken::Plaintext => {
            status.current_sidecar_tls = None;
            status.sidecar_url = Some(format!("http://{host}:{port}"));
        }
        Spoken::Tls(peer) => {
            if let Some(current) = serving(found, sight, &peer.leaf) {
                status.current_sidecar_tls = Some(current);
            }
            status.sidecar_url = Some(format!("https://{host}:{port}"));
        }
        Spoken::Unknown(_) | Spoken::Untrusted(_) => {}
    }
}

/// What the certificate must be, for those who provide it: there before any pod is.
fn requirement(found: &Findings<'_>, sight: &Sight) -> Option<SidecarTlsRequirement> {
    let wanted = found.desired?.demand.tls_secret.clone()?;
    let name = found.node.metadata.name.as_deref().unwrap_or_default();
    let namespace = found.node.metadata.namespace.as_deref().unwrap_or_default();
    let held = sight.secret.as_ref().and_then(|it| it.as_ref().ok());
    let bundle = held.and_then(|held| held.ca.clone());
    Some(SidecarTlsRequirement {
        secret_name: Some(wanted),
        required_dns_names: names::dns(name, namespace).to_vec(),
        ca_bundle: bundle.and_then(|pem| String::from_utf8(pem).ok()),
    })
}

/// What is served: the certificate of the Secret, or the one known before.
fn serving(
    found: &Findings<'_>,
    sight: &Sight,
    leaf: &keelson_tls::certificate::Leaf,
) -> Option<CurrentSidecarTls> {
    let held = sight.secret.as_ref().and_then(|it| it.as_ref().ok())?;
    let desired = found.desired?;
    if held.fingerprint != leaf.fingerprint {
        return None;
    }
    let (issuer_name, issuer_kind) = match desired.target.tls.as_ref()? {
        Tls::Issuer { name, kind } => (Some(name.clone()), Some(*kind)),
        Tls::Secret(_) => (None, None),
    };
    Some(CurrentSidecarTls {
        issuer_name,
        issuer_kind,
        secret_name: desired.demand.tls_secret.clone(),
        fingerprint: Some(leaf.fingerprint.to_string()),
        not_after: Some(Time(leaf.not_after)),
    })
}
