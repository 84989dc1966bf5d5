//! `NodeNetworkConfigurationPolicy`: the network state that selected hosts shall have.
//!
//! Served as `v1` and, deprecated, as `v1beta1`; see [`crds`](crate::crds). The state itself is
//! nmstate's and opaque here.
//!
//! The original kept its admission rules in a ValidatingAdmissionPolicy; they stand in the schema
//! now, so that they hold wherever the CRD does. Its rule that a policy in progress cannot be edited
//! is gone: a newer edit wins.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::condition::HostCondition;
use crate::plan::any_object;
use crate::tolerant;

/// A network state as nmstate describes it: an object whose content is nmstate's.
pub type State = Map<String, Value>;

/// The network state that selected hosts shall have.
#[derive(CustomResource, KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "nmstate.io",
    version = "v1",
    kind = "NodeNetworkConfigurationPolicy",
    plural = "nodenetworkconfigurationpolicies",
    shortname = "nncp",
    status = "NodeNetworkConfigurationPolicyStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "The network state that selected hosts shall have.",
    // Every name of an object is a label's value too, but for its length. Only asked at creation:
    // a name cannot be changed, and an old object must stay editable.
    validation = Rule::new("oldSelf.hasValue() || size(self.metadata.name) <= 63")
        .message("The name of a policy is the value of a label on its enactments: use at most 63 characters.")
        .optional_old_self(true),
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = r#".status.conditions[?(@.status=="True")].type"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.status=="True")].reason"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp", priority = 1)
)]
#[x_kube(validation = Rule::new(
    "has(self.capture) == has(oldSelf.capture) && (!has(self.capture) || self.capture == oldSelf.capture)"
).message("capture cannot be changed, because hosts keep what they captured first: create a new policy."))]
#[serde(rename_all = "camelCase")]
pub struct NodeNetworkConfigurationPolicySpec {
    /// Labels a node must carry, all of them. Absent: every node.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "node_selector")]
    #[x_kube(validation = Rule::new(
        "self.all(key, !format.qualifiedName().validate(key).hasValue())"
    ).message("A key of nodeSelector is not a label's name: use an optional prefix and '/', then letters, digits, '-', '_' or '.'."))]
    pub node_selector: BTreeMap<String, String>,

    /// Expressions of nmpolicy by name, evaluated on the host and usable in the desired state.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "capture")]
    pub capture: BTreeMap<String, String>,

    /// The state the hosts shall have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub desired_state: Option<State>,

    /// How many hosts may be under change at once, as a number or as a percentage of the selected.
    #[serde(default = "half")]
    pub max_unavailable: IntOrString,
}

/// Share of hosts that may be under change at once where the spec says nothing.
pub const DEFAULT_MAX_UNAVAILABLE: &str = "50%";

fn half() -> IntOrString {
    IntOrString::String(DEFAULT_MAX_UNAVAILABLE.to_owned())
}

impl Default for NodeNetworkConfigurationPolicySpec {
    fn default() -> Self {
        Self {
            node_selector: BTreeMap::new(),
            capture: BTreeMap::new(),
            desired_state: None,
            max_unavailable: half(),
        }
    }
}

fn node_selector(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "maxProperties": 256,
        "additionalProperties": {
            "type": "string",
            "maxLength": 63,
            "pattern": "^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$",
        },
    })
}

// Bounded because admission compares the old map with the new one, and the API server wants to know
// what that may cost.
fn capture(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "object",
        "maxProperties": 256,
        "additionalProperties": { "type": "string", "maxLength": 16384 },
    })
}

/// What became of a policy.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeNetworkConfigurationPolicyStatus {
    /// Generation of the spec this status is about.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub observed_generation: Option<i64>,

    /// What holds and what does not.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "tolerant::list"
    )]
    pub conditions: Vec<HostCondition>,

    /// Hosts under change by generation of the policy.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "tolerant::value"
    )]
    pub unavailable_node_count_map: BTreeMap<String, i32>,

    /// Deprecated: never written.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub unavailable_node_count: Option<i32>,

    /// Deprecated: never written.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub last_unavailable_node_count_update: Option<Time>,
}
