//! `SeiNodeDeployment.status`: what the operator found out and is doing.
//!
//! Every field is read tolerantly, like a node's.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::node_status::NodePhase;
use crate::plan::{FailedPlan, TaskPlan};
use crate::tolerant;
use crate::vocabulary::vocabulary;

vocabulary! {
    /// Where in its life a fleet is.
    pub enum FleetPhase {
        /// There is no node yet.
        Pending => "Pending",
        /// Nodes are being set up.
        Initializing => "Initializing",
        /// Every node runs.
        Ready => "Ready",
        /// Nodes are being moved to a new template.
        Upgrading => "Upgrading",
        /// Some nodes failed.
        Degraded => "Degraded",
        /// Every node failed.
        Failed => "Failed",
        /// Being deleted.
        Terminating => "Terminating",
    }
}

/// What the operator found out about a fleet.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeiNodeDeploymentStatus {
    /// Generation of the spec this status is about.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub observed_generation: Option<i64>,

    /// Hash of the template every node is of.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub template_hash: Option<String>,

    /// Where in its life the fleet is.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub phase: Option<FleetPhase>,

    /// How many nodes there shall be.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub replicas: Option<i32>,

    /// How many nodes are ready.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub ready_replicas: Option<i32>,

    /// How many nodes serve; what `maxUnavailable` counts.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub available_replicas: Option<i32>,

    /// How many nodes are of today's template.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub updated_replicas: Option<i32>,

    /// The nodes.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "tolerant::list"
    )]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub nodes: Vec<FleetNode>,

    /// What holds and what does not.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "tolerant::list"
    )]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,

    /// The plan being carried out, or the last one. A plan that cannot be read is absent.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub plan: Option<TaskPlan>,

    /// The last plan that failed. Kept until a plan succeeds.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub last_failed_plan: Option<FailedPlan>,

    /// How many plans failed since one succeeded.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub consecutive_failures: Option<i32>,

    /// The rollout under way.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub rollout: Option<Rollout>,

    /// Names of the fleet's nodes.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "tolerant::list"
    )]
    pub incumbent_nodes: Vec<String>,

    /// Hash of the genesis file.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub genesis_hash: Option<String>,

    /// Where the genesis file is.
    #[serde(
        rename = "genesisS3URI",
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub genesis_s3_uri: Option<String>,

    /// How the fleet is published.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub networking_status: Option<NetworkingStatus>,

    /// The Service of the whole fleet inside the cluster.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub internal_service: Option<InternalService>,

    /// The Service of each node.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "tolerant::list"
    )]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub per_pod_services: Vec<PodService>,

    /// Addresses inside the cluster.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub endpoints: Option<Endpoints>,
}

/// One node of a fleet.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FleetNode {
    /// Name of the SeiNode.
    pub name: String,

    /// Where in its life it is.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    #[schemars(with = "Option<String>")]
    pub phase: Option<NodePhase>,

    /// Image it runs.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub current_image: Option<String>,
}

/// A rollout under way.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rollout {
    /// The strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,

    /// Hash of the template the nodes are moved to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_hash: Option<String>,

    /// When it began.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub started_at: Option<Time>,

    /// When a node last became available with the new template; the deadline counts from here.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub last_progress_time: Option<Time>,

    /// Nodes there were.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incumbent_nodes: Vec<String>,

    /// Nodes that replace them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub entrant_nodes: Vec<String>,

    /// Revision there was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incumbent_revision: Option<String>,

    /// Revision that replaces it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entrant_revision: Option<String>,
}

/// How a fleet is published.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NetworkingStatus {
    /// The routes.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "tolerant::list"
    )]
    pub routes: Vec<Route>,
}

/// A public route.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    /// Host name of the route.
    pub hostname: String,

    /// What is spoken there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
}

/// The Service of a whole fleet inside the cluster.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InternalService {
    /// Name of the Service.
    pub name: String,
    /// Namespace of the Service.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its ports.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub ports: Option<InternalPorts>,
}

/// Ports of a fleet's Service.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InternalPorts {
    /// Tendermint RPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rpc: Option<i32>,
    /// EVM JSON-RPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evm_http: Option<i32>,
    /// REST.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rest: Option<i32>,
}

/// The Service of one node.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodService {
    /// Name of the Service.
    pub name: String,
    /// Namespace of the Service.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    /// Its ports.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub ports: Option<PodPorts>,
}

/// Ports of one node's Service.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PodPorts {
    /// EVM JSON-RPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evm_http: Option<i32>,
    /// EVM over WebSocket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evm_ws: Option<i32>,
}

/// Addresses of a fleet inside the cluster.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoints {
    /// Tendermint RPC of the fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tendermint_rpc: Option<String>,
    /// REST of the fleet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tendermint_rest: Option<String>,
    /// Addresses of each node.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "tolerant::list"
    )]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub nodes: Vec<NodeEndpoints>,
}

/// Addresses of one node.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NodeEndpoints {
    /// Name of the SeiNode.
    pub name: String,
    /// EVM JSON-RPC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evm_json_rpc: Option<String>,
    /// EVM over WebSocket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evm_ws: Option<String>,
}
