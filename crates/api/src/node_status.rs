//! `SeiNode.status`: what the operator found out and is doing.
//!
//! Every field is read tolerantly. `phase` is kept for those who read it; the operator derives it
//! from the conditions and never decides by it.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::plan::{FailedPlan, TaskPlan};
use crate::sidecar::IssuerKind;
use crate::tolerant;
use crate::vocabulary::vocabulary;

vocabulary! {
    /// Where in its life a node is.
    pub enum NodePhase {
        /// Nothing was done yet.
        Pending => "Pending",
        /// Being set up for the first time.
        Initializing => "Initializing",
        /// Set up.
        Running => "Running",
        /// Could not be set up.
        Failed => "Failed",
        /// Being deleted.
        Terminating => "Terminating",
    }
}

/// What the operator found out about a node.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SeiNodeStatus {
    /// Generation of the spec this status is about.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub observed_generation: Option<i64>,

    /// Where in its life the node is.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub phase: Option<NodePhase>,

    /// When the phase last changed.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub phase_transition_time: Option<Time>,

    /// What holds and what does not.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "tolerant::list"
    )]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,

    /// Image of the node's process, as seen running.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub current_image: Option<String>,

    /// Image of the sidecar, as seen running.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub current_sidecar_image: Option<String>,

    /// Image of the proxy before the sidecar, as seen running.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub current_proxy_image: Option<String>,

    /// Images that did not start beside the running process and were put back.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "tolerant::list"
    )]
    pub put_back: Vec<PutBack>,

    /// TLS the sidecar serves, as seen in a handshake. Absent: plaintext.
    #[serde(
        rename = "currentSidecarTLS",
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub current_sidecar_tls: Option<CurrentSidecarTls>,

    /// What the sidecar's certificate must be, for those who provide one, and what to verify it with.
    #[serde(
        rename = "sidecarTLS",
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub sidecar_tls: Option<SidecarTlsRequirement>,

    /// Address of the sidecar's API.
    #[serde(
        rename = "sidecarURL",
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub sidecar_url: Option<String>,

    /// The plan being carried out, or the last one. Of a plan that cannot be read only the id is known.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::plan::stored"
    )]
    pub plan: Option<TaskPlan>,

    /// The last plan that failed. Kept until a plan succeeds.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub last_failed_plan: Option<FailedPlan>,

    /// How many plans failed since one succeeded; the pause before the next grows with it.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub consecutive_failures: Option<i32>,

    /// How often each task was submitted and came to an end, by its name; the next attempt gets the
    /// next number, and with it a new identity.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub attempts: BTreeMap<String, i32>,

    /// Value of the annotation `sei.io/retry` that was obeyed last.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub retried: Option<String>,

    /// What is on the data volume, and what the process was started with.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub applied: Option<Applied>,

    /// Peers found by label, sorted.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "tolerant::list"
    )]
    pub resolved_peers: Vec<String>,

    /// Deprecated: the address now stands in the spec.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub external_address: Option<String>,
}

/// What is on the data volume, and what the process was started with: written when it was done, and
/// read to know that it need not be done again.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Applied {
    /// Uid of the volume's claim this is about. On another claim nothing of it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,

    /// What the volume holds.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub data: Option<DataState>,

    /// Digest of the configuration that was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<String>,

    /// Digest of the peers that were written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peers: Option<String>,

    /// Digest of the configuration the process was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_settings: Option<String>,

    /// Digest of the peers the process was started with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process_peers: Option<String>,

    /// The container the process ran in when this was written; in another one it was started since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,

    /// Digest of what the spec said of the node's first state when it was set up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,

    /// Whether the sidecar uploads snapshots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publishing: Option<bool>,
}

/// An image that did not start in a running pod, and the one that was put back in its place.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PutBack {
    /// Name of the container.
    pub container: String,

    /// The image that did not start. It is left alone until another is asked for, or a retry is.
    pub image: String,

    /// The image that runs instead.
    pub instead: String,

    /// Why it did not start.
    pub why: String,
}

vocabulary! {
    /// What a data volume holds.
    pub enum DataState {
        /// What a bootstrap Job left.
        Bootstrapped => "Bootstrapped",
        /// The data of a node that was approved once.
        Complete => "Complete",
    }
}

/// TLS the sidecar serves, as seen in a handshake.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CurrentSidecarTls {
    /// Issuer of the certificate, where it was ordered from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer_name: Option<String>,

    /// Kind of the issuer.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    #[schemars(with = "Option<String>")]
    pub issuer_kind: Option<IssuerKind>,

    /// Secret the certificate is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,

    /// SHA-256 of the certificate, in lower-case hexadecimal digits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,

    /// When the certificate expires.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub not_after: Option<Time>,
}

/// What the sidecar's certificate must be, and what to verify it with.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SidecarTlsRequirement {
    /// Secret the certificate is read from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,

    /// DNS names the certificate must cover.
    #[serde(
        rename = "requiredDNSNames",
        default,
        skip_serializing_if = "Vec::is_empty"
    )]
    pub required_dns_names: Vec<String>,

    /// Certificates, in PEM, that a client verifies the sidecar with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_bundle: Option<String>,
}
