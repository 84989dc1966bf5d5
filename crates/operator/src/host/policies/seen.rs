//! What is kept of policies and of their enactments.
//!
//! A policy is kept without the state it asks for, an enactment without the state that was applied:
//! those are most of both, and what a status says depends on neither.

use std::collections::BTreeMap;

use jiff::Timestamp;
use keelson_api::condition::{HostCondition, Truth};
use keelson_api::host_condition::EnactmentCondition;
use keelson_api::names::Label;
use keelson_api::policy::NodeNetworkConfigurationPolicyStatus;
use keelson_api::{NodeNetworkConfigurationEnactment, NodeNetworkConfigurationPolicy};
use kube::ResourceExt;

/// What is kept of a policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policy {
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
    /// Generation of its spec.
    pub generation: Option<i64>,
    /// The version that was read.
    pub version: String,
    /// When it was made, by the API server's clock.
    pub made: Option<Timestamp>,
    /// Labels a node must carry, all of them.
    pub selector: BTreeMap<String, String>,
    /// What its status says.
    pub status: NodeNetworkConfigurationPolicyStatus,
}

impl Policy {
    /// Reads a policy.
    pub fn read(policy: NodeNetworkConfigurationPolicy) -> Self {
        let meta = policy.metadata;
        Self {
            name: meta.name.unwrap_or_default(),
            uid: meta.uid.unwrap_or_default(),
            generation: meta.generation,
            version: meta.resource_version.unwrap_or_default(),
            made: meta.creation_timestamp.map(|it| it.0),
            selector: policy.spec.node_selector,
            status: policy.status.unwrap_or_default(),
        }
    }

    /// Whether a node with these labels is one of its nodes.
    pub fn selects(&self, labels: &BTreeMap<String, String>) -> bool {
        let mut asked = self.selector.iter();
        asked.all(|(key, value)| labels.get(key) == Some(value))
    }
}

/// What is kept of an enactment: what a node's handler says of a policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Enactment {
    /// The node.
    pub node: String,
    /// The policy.
    pub policy: String,
    /// The enactment's uid.
    pub uid: String,
    /// Generation of the policy it is about.
    pub generation: Option<i64>,
    /// When anything of it was last written, by the API server's clock.
    pub written: Option<Timestamp>,
    /// The conditions that hold.
    pub holds: Vec<EnactmentCondition>,
}

impl Enactment {
    /// Reads an enactment; none where it does not say whose it is.
    pub fn read(enactment: &NodeNetworkConfigurationEnactment) -> Option<Self> {
        let labels = enactment.labels();
        let label = |label: Label| labels.get(label.as_str()).cloned();
        let status = enactment.status.as_ref();
        let conditions = status.map_or(&[][..], |it| &it.conditions);
        let holds =
            |kind: &EnactmentCondition| HostCondition::truth(conditions, *kind) == Truth::True;
        let managers = enactment.managed_fields().iter();
        Some(Self {
            node: label(Label::PolicyNode)?,
            policy: label(Label::Policy)?,
            uid: enactment.uid().unwrap_or_default(),
            generation: status.and_then(|it| it.policy_generation),
            written: managers.filter_map(|it| Some(it.time.as_ref()?.0)).max(),
            holds: EnactmentCondition::ALL
                .iter()
                .copied()
                .filter(holds)
                .collect(),
        })
    }

    /// Whether it is about this policy as it is now. One that was last written before the policy was
    /// made is about an earlier policy of that name.
    pub fn is_about(&self, policy: &Policy) -> bool {
        let earlier = matches!((self.written, policy.made), (Some(it), Some(made)) if it < made);
        self.policy == policy.name && self.generation == policy.generation && !earlier
    }
}
