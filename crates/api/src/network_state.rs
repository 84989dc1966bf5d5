//! `NodeNetworkState`: the network of one host as it is.
//!
//! Has no spec: the handler reports it, nobody asks for it. Its name is the node's.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::condition::HostCondition;
use crate::plan::any_object;
use crate::policy::State;
use crate::tolerant;

/// Stands for the spec a network state does not have.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "nmstate.io",
    version = "v1beta1",
    kind = "NodeNetworkState",
    plural = "nodenetworkstates",
    shortname = "nns",
    no_spec,
    status = "NodeNetworkStateStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "The network of one host as it is."
)]
pub struct NoNetworkStateSpec {}

/// The network of the host as it is.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeNetworkStateStatus {
    /// The state, filtered.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    #[schemars(schema_with = "any_object")]
    pub current_state: Option<State>,

    /// When the state last changed.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub last_successful_update_time: Option<Time>,

    /// Version of NetworkManager on the host.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub host_network_manager_version: Option<String>,

    /// Version of nmstate in the handler.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub handler_nmstate_version: Option<String>,

    /// Deprecated: never written.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub handler_network_manager_version: Option<String>,

    /// What holds and what does not.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "tolerant::list"
    )]
    pub conditions: Vec<HostCondition>,
}
