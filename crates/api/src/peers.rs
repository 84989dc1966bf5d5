//! Where a node finds its peers.
//!
//! A list of sources; how a source becomes addresses is for the operator and the sidecar.

use std::collections::BTreeMap;

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// One source of peers: exactly one of `ec2Tags`, `static` and `label`.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new(
    "(has(self.ec2Tags) ? 1 : 0) + (has(self.static) ? 1 : 0) + (has(self.label) ? 1 : 0) == 1"
).message("A peer source has exactly one kind: set one of ec2Tags, static and label."))]
#[serde(rename_all = "camelCase")]
pub struct PeerSource {
    /// Machines of a cloud region that carry all the tags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ec2_tags: Option<Ec2Tags>,

    /// Addresses written down.
    #[serde(rename = "static", default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<FixedPeers>,

    /// Other SeiNodes, by their labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<LabelPeers>,
}

/// Machines of a cloud region that carry all the tags.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ec2Tags {
    /// The region.
    #[schemars(length(min = 1))]
    pub region: String,

    /// Tags a machine must carry, all of them.
    #[schemars(extend("minProperties" = 1))]
    pub tags: BTreeMap<String, String>,
}

/// Addresses written down.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FixedPeers {
    /// Addresses of the form `nodeId@host:port`.
    #[schemars(length(min = 1))]
    pub addresses: Vec<String>,
}

/// Other SeiNodes, by their labels.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LabelPeers {
    /// Labels a SeiNode must carry, all of them.
    #[schemars(extend("minProperties" = 1))]
    pub selector: BTreeMap<String, String>,

    /// Namespace to look in. Absent: the node's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}
