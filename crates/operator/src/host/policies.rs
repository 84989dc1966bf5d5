//! What a NodeNetworkConfigurationPolicy's status says: a function of its nodes and of what their
//! handlers say in its enactments. The [`controller`] around it looks and writes.
//!
//! With the original every handler works it out and writes it, and they overwrite each other. Here one
//! does, and only where something other than the time differs. Only nodes that the policy selects and
//! that have a handler count; an enactment of another generation says nothing about this one.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use keelson_api::condition::{HostCondition, Truth};
use keelson_api::host_condition::{EnactmentCondition, PolicyCondition, PolicyReason};
use keelson_api::policy::NodeNetworkConfigurationPolicyStatus as Status;

use super::replicas::Place;
use super::status::same;

pub mod claims;
pub mod controller;
pub mod farewells;
pub mod known;
pub mod seen;
mod sweep;

pub use seen::{Enactment, Policy};

/// A node, as far as it matters to policies.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// Its name, its labels, and whether it is Ready.
    pub node: Arc<Place>,
    /// Whether a handler runs on it.
    pub handled: bool,
}

impl Host {
    /// Whether it is one of the policy's nodes.
    pub fn is_for(&self, policy: &Policy) -> bool {
        self.handled && policy.selects(&self.node.labels)
    }
}

/// How many of a policy's nodes there are, and how many of them say what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Nodes that count.
    pub nodes: usize,
    /// Those of them that are Ready.
    pub ready: usize,
    /// Ready nodes that are configured, failed or gave up.
    pub finished: usize,
    /// Configured nodes.
    pub available: usize,
    /// Nodes that failed, whether they try again or not.
    pub failing: usize,
    /// Nodes being configured.
    pub progressing: usize,
    /// Nodes that wait for their turn.
    pub pending: usize,
    /// Nodes that gave up before they began.
    pub aborted: usize,
}

/// How a policy stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// No node counts.
    Ignored,
    /// Some node failed or gave up.
    Degraded,
    /// Some node is not finished.
    Progressing,
    /// Every node that is Ready is configured.
    Available,
}

/// Counts what the nodes of a policy say.
pub fn count<'a>(
    policy: &Policy,
    hosts: impl IntoIterator<Item = &'a Host>,
    enactments: impl IntoIterator<Item = &'a Enactment>,
) -> Counts {
    let hosts = hosts.into_iter().filter(|it| it.is_for(policy));
    let nodes: BTreeMap<&str, bool> = hosts
        .map(|it| (it.node.name.as_str(), it.node.ready))
        .collect();
    let mut counts = Counts {
        nodes: nodes.len(),
        ready: nodes.values().filter(|ready| **ready).count(),
        ..Counts::default()
    };
    for enactment in enactments.into_iter().filter(|it| it.is_about(policy)) {
        let Some(ready) = nodes.get(enactment.node.as_str()) else {
            continue;
        };
        let said = |kind| enactment.holds.contains(&kind);
        let [available, failing, aborted] = [
            said(EnactmentCondition::Available),
            said(EnactmentCondition::Failing),
            said(EnactmentCondition::Aborted),
        ];
        counts.available += usize::from(available);
        counts.failing += usize::from(failing);
        counts.aborted += usize::from(aborted);
        counts.progressing += usize::from(said(EnactmentCondition::Progressing));
        counts.pending += usize::from(said(EnactmentCondition::Pending));
        counts.finished += usize::from(*ready && (available || failing || aborted));
    }
    counts
}

impl Counts {
    /// How the policy stands, and the sentence that says so.
    pub fn judge(&self) -> (Standing, String) {
        let (standing, mut message) = if self.nodes == 0 {
            return (
                Standing::Ignored,
                "Policy does not match any node".to_owned(),
            );
        } else if self.failing > 0 || self.aborted > 0 {
            let mut message = format!("{}/{} nodes failed to configure", self.failing, self.nodes);
            if self.aborted > 0 {
                let _ = write!(message, ", {} nodes aborted configuration", self.aborted);
            }
            return (Standing::Degraded, message);
        } else if self.finished < self.ready || self.pending > 0 {
            let mut message = format!(
                "Policy is progressing {}/{} nodes finished",
                self.finished, self.ready
            );
            if self.finished >= self.ready {
                let _ = write!(message, ", {} pending", self.pending);
            }
            (Standing::Progressing, message)
        } else {
            let message = format!(
                "{}/{} nodes successfully configured",
                self.available, self.nodes
            );
            (Standing::Available, message)
        };
        let not_ready = self.nodes - self.ready;
        if not_ready > 0 {
            let _ = write!(message, ", {not_ready} nodes ignored due to NotReady state");
        }
        (standing, message)
    }
}

impl Standing {
    /// What each condition says, in the order of their declaration, and why.
    fn row(self) -> [(Truth, PolicyReason); 4] {
        use PolicyReason as Why;
        use Truth::{False, True, Unknown};
        let all = |why, truths: [Truth; 4]| truths.map(|truth| (truth, why));
        //                       Available, Degraded, Progressing, Ignored
        match self {
            Self::Ignored => all(Why::NoMatchingNode, [False, False, False, True]),
            Self::Progressing => all(
                Why::ConfigurationProgressing,
                [Unknown, Unknown, True, False],
            ),
            Self::Available => all(Why::SuccessfullyConfigured, [True, False, False, False]),
            Self::Degraded => {
                let mut row = all(Why::FailedToConfigure, [False, True, False, False]);
                // As the original has it.
                row[2].1 = Why::ConfigurationProgressing;
                row
            }
        }
    }

    /// The conditions that say so, among those of before.
    fn conditions(
        self,
        message: &str,
        before: &[HostCondition],
        now: Timestamp,
    ) -> Vec<HostCondition> {
        let mut conditions = before.to_vec();
        for (kind, (truth, reason)) in PolicyCondition::ALL.iter().zip(self.row()) {
            let message = (truth == Truth::True).then(|| message.to_owned());
            HostCondition::new(*kind, truth, Some(reason), message, Time(now)).set(&mut conditions);
        }
        conditions
    }
}

/// The status a policy should have, if that is not the one it has. `claimed` is how many hosts may be
/// under change, by generation of the policy.
pub fn status<'a>(
    policy: &Policy,
    hosts: impl IntoIterator<Item = &'a Host>,
    enactments: impl IntoIterator<Item = &'a Enactment>,
    claimed: BTreeMap<String, i32>,
    now: Timestamp,
) -> Option<Status> {
    let (standing, message) = count(policy, hosts, enactments).judge();
    let before = &policy.status;
    let after = Status {
        observed_generation: policy.generation,
        conditions: standing.conditions(&message, &before.conditions, now),
        // Where every host is configured none is under change, whatever is still to be given back.
        unavailable_node_count_map: match standing {
            Standing::Available => BTreeMap::new(),
            _ => claimed,
        },
        ..before.clone()
    };
    let timeless = |status: &Status| Status {
        conditions: Vec::new(),
        ..status.clone()
    };
    let is_same =
        same(&before.conditions, &after.conditions) && timeless(before) == timeless(&after);
    (!is_same).then_some(after)
}
