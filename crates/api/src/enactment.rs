//! `NodeNetworkConfigurationEnactment`: what became of one policy on one host.
//!
//! Has no spec: the handler writes it, nobody asks for it. Its name is `<node>.<policy>`.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::condition::HostCondition;
use crate::plan::any_object;
use crate::policy::State;
use crate::tolerant;

/// Stands for the spec an enactment does not have.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "nmstate.io",
    version = "v1beta1",
    kind = "NodeNetworkConfigurationEnactment",
    plural = "nodenetworkconfigurationenactments",
    shortname = "nnce",
    no_spec,
    status = "NodeNetworkConfigurationEnactmentStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "What became of one policy on one host.",
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = r#".status.conditions[?(@.status=="True")].type"#
    ),
    printcolumn(
        name = "Status Age",
        type_ = "date",
        json_path = r#".status.conditions[?(@.status=="True")].lastTransitionTime"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.status=="True")].reason"#
    )
)]
pub struct NoEnactmentSpec {}

/// What became of the policy on the host.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeNetworkConfigurationEnactmentStatus {
    /// The state that was applied, captures filled in.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    #[schemars(schema_with = "any_object")]
    pub desired_state: Option<State>,

    /// Deprecated: never written.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub desired_state_meta_info: Option<MetaInfo>,

    /// What was captured on the host, by the name of the expression.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "tolerant::value"
    )]
    pub captured_states: BTreeMap<String, CapturedState>,

    /// Generation of the policy this status belongs to.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub policy_generation: Option<i64>,

    /// What holds and what does not.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "tolerant::list"
    )]
    pub conditions: Vec<HostCondition>,

    /// Features of nmstate the state uses.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "tolerant::list"
    )]
    pub features: Vec<String>,

    /// Attempts by generation of the policy.
    #[serde(
        default,
        skip_serializing_if = "BTreeMap::is_empty",
        deserialize_with = "tolerant::value"
    )]
    pub retry_count: BTreeMap<String, i32>,
}

/// What one expression captured.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CapturedState {
    /// The captured part of the host's state.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    #[schemars(schema_with = "any_object")]
    pub state: Option<State>,

    /// When and by what it was captured.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub meta_info: Option<MetaInfo>,
}

/// When and by what a state was made.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetaInfo {
    /// Version of nmpolicy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,

    /// When.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub time: Option<Time>,
}

/// Name of the enactment of a policy on a node.
pub fn enactment_name(node: &str, policy: &str) -> String {
    format!("{node}.{policy}")
}
