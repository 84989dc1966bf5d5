//! `SeiNode`: one blockchain node, what a person asks for.
//!
//! Holds the spec and the rules admission enforces on it. What an operator found out about the node
//! is in [`node_status`](crate::node_status); how a spec becomes objects is for `render`, which
//! changes need which work is for `plan`.

use std::collections::BTreeMap;

use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::names::Role;
use crate::node_status::SeiNodeStatus;
use crate::peers::PeerSource;
use crate::sidecar::SidecarConfig;
use crate::snapshot::{SnapshotGeneration, SnapshotSource};
use crate::validator::ValidatorSpec;
use crate::vocabulary::vocabulary;

/// What one node shall be: its chain, its image, its mode, and how it finds peers and data.
///
/// Exactly one of `fullNode`, `archive`, `replayer` and `validator` says which mode the node runs
/// in, for good: a mode decides what is on the data volume.
// The blocks of the modes and the data volume are atomic for server-side apply. They may be empty
// (`validator: {}`), and of a block that is not atomic the API server makes `null` when an apply
// removes its last field, and then refuses it.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "sei.io",
    version = "v1alpha1",
    kind = "SeiNode",
    plural = "seinodes",
    shortname = "snode",
    category = "sei",
    namespaced,
    status = "SeiNodeStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "One blockchain node: a StatefulSet of one pod, its data volume, its Service, and the sidecar that runs its tasks.",
    selectable = ".spec.chainId",
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Chain", type_ = "string", json_path = ".spec.chainId"),
    printcolumn(
        name = "Image",
        type_ = "string",
        json_path = ".status.currentImage",
        priority = 1
    ),
    printcolumn(
        name = "Sidecar",
        type_ = "string",
        json_path = ".status.sidecarURL",
        priority = 1
    ),
    printcolumn(
        name = "Plan",
        type_ = "string",
        json_path = ".status.plan.kind",
        priority = 1
    ),
    printcolumn(
        name = "Stalled",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Stalled")].status"#,
        priority = 1
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp"
    )
)]
#[x_kube(validation = Rule::new(
    "(has(self.fullNode) ? 1 : 0) + (has(self.archive) ? 1 : 0) + (has(self.replayer) ? 1 : 0) + (has(self.validator) ? 1 : 0) == 1"
).message("A node has exactly one mode: set one of fullNode, archive, replayer and validator."))]
#[x_kube(validation = Rule::new(
    "has(self.fullNode) == has(oldSelf.fullNode) && has(self.archive) == has(oldSelf.archive) && has(self.replayer) == has(oldSelf.replayer) && has(self.validator) == has(oldSelf.validator)"
).message("The mode of a node cannot be changed, because it decides what is on the data volume: create a new SeiNode with the other mode."))]
#[x_kube(validation = Rule::new("self.chainId == oldSelf.chainId").message(
    "The chain of a node cannot be changed, because the data volume holds that chain's blocks: create a new SeiNode for the other chain."
))]
#[x_kube(validation = Rule::new(
    "!has(self.replayer) || (has(self.peers) && size(self.peers) > 0)"
).message("A replayer needs peers to follow the chain: add at least one entry to peers."))]
// `import` is a reserved word of CEL, so its property is spelt `__import__`. Both rules stand here
// and not at dataVolume, because a rule at dataVolume does not run when dataVolume is removed.
#[x_kube(validation = Rule::new(
    "(has(self.dataVolume) && has(self.dataVolume.__import__)) == (has(oldSelf.dataVolume) && has(oldSelf.dataVolume.__import__))"
).message("dataVolume.import is fixed when the node is created and can be neither added nor removed: create a new SeiNode for the other volume."))]
#[x_kube(validation = Rule::new(
    "!(has(self.dataVolume) && has(self.dataVolume.__import__) && has(oldSelf.dataVolume) && has(oldSelf.dataVolume.__import__)) || self.dataVolume.__import__.pvcName == oldSelf.dataVolume.__import__.pvcName"
).message("dataVolume.import.pvcName is fixed when the node is created: create a new SeiNode for the other volume."))]
#[serde(rename_all = "camelCase")]
pub struct SeiNodeSpec {
    /// Chain the node belongs to, for example `pacific-1`. Fixed at creation.
    #[schemars(length(min = 1))]
    pub chain_id: String,

    /// Image of the node's process (`seid`). A change rolls the pod once.
    #[schemars(length(min = 1, max = 512))]
    pub image: String,

    /// Where the node finds its peers. A change is written at once and takes effect at the next
    /// start of the process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    pub peers: Vec<PeerSource>,

    /// Deprecated: the original accepted this field and ignored it. It is kept so that existing
    /// objects apply; the operator does not run it and says so in the condition `SpecValid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entrypoint: Option<Entrypoint>,

    /// Configuration of the node by dotted key, for example `network.p2p.max_connections: "200"`.
    /// A change restarts the node's process, not its pod.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub overrides: BTreeMap<String, String>,

    /// The sidecar beside the node's process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sidecar: Option<SidecarConfig>,

    /// Labels for the pod and the objects that belong to it. The operator's own labels win.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pod_labels: BTreeMap<String, String>,

    /// The volume that holds the chain's data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub data_volume: Option<DataVolume>,

    /// Address other nodes reach this one at, as `host:port`. Absent: not advertised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 512))]
    pub external_address: Option<String>,

    /// Whether the operator leaves the node as it is: no plan is started and none is continued.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paused: bool,

    /// Runs a full node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub full_node: Option<FullNodeSpec>,

    /// Runs an archive node: all history, never restored from a snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub archive: Option<ArchiveSpec>,

    /// Runs a replayer: restores a snapshot and re-executes the chain from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub replayer: Option<ReplayerSpec>,

    /// Runs a validator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-map-type" = "atomic"))]
    pub validator: Option<ValidatorSpec>,
}

/// Command line the original ignored. Deprecated.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Entrypoint {
    /// Command to run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 16))]
    pub command: Vec<String>,

    /// Arguments of the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub args: Vec<String>,
}

/// The volume that holds the chain's data.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DataVolume {
    /// Uses an existing PersistentVolumeClaim instead of creating one. Fixed at creation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub import: Option<VolumeImport>,

    /// Whether the claim outlives the node. Absent means true; an imported claim always does.
    // No default in the schema: it would appear only where dataVolume is written, and an absent
    // dataVolume must mean the same. `SeiNodeSpec::retains_volume` decides for both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retain_on_delete: Option<bool>,
}

/// An existing PersistentVolumeClaim of the same namespace.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VolumeImport {
    /// Name of the PersistentVolumeClaim.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$")
    )]
    pub pvc_name: String,
}

/// A full node.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FullNodeSpec {
    /// Where the node's first state comes from. Absent: it syncs every block.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot: Option<SnapshotSource>,

    /// Snapshots the node makes for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_generation: Option<SnapshotGeneration>,
}

/// An archive node.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ArchiveSpec {
    /// Snapshots the node makes for others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub snapshot_generation: Option<SnapshotGeneration>,
}

/// A replayer.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplayerSpec {
    /// The state to replay from.
    pub snapshot: SnapshotSource,

    /// What becomes of the results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result_export: Option<ResultExport>,
}

/// What becomes of a replayer's results.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResultExport {
    /// Compares each block's result with a node that is trusted to be right.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shadow_result: Option<ShadowResult>,
}

/// The node whose results a replayer's are compared with.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShadowResult {
    /// RPC address of the trusted node.
    #[schemars(length(min = 1))]
    pub canonical_rpc: String,
}

vocabulary! {
    /// The mode a node runs in, by the name of the block that chooses it.
    pub enum Mode {
        /// Keeps recent state and serves it.
        FullNode => "fullNode",
        /// Keeps all history.
        Archive => "archive",
        /// Re-executes the chain from a snapshot.
        Replayer => "replayer",
        /// Takes part in consensus.
        Validator => "validator",
    }
}

impl Mode {
    /// Value of the label `sei.io/role`.
    pub const fn role(self) -> Role {
        match self {
            Self::FullNode => Role::Node,
            Self::Archive => Role::Archive,
            Self::Replayer => Role::Replayer,
            Self::Validator => Role::Validator,
        }
    }

    /// The mode's name in the node's own configuration; a replayer is configured as a full node.
    pub const fn config_name(self) -> &'static str {
        match self {
            Self::FullNode | Self::Replayer => "full",
            Self::Archive => "archive",
            Self::Validator => "validator",
        }
    }
}

impl SeiNodeSpec {
    /// The mode, if exactly one is chosen; admission sees to that, but an object may be older.
    pub fn mode(&self) -> Option<Mode> {
        let mut chosen = [
            self.full_node.as_ref().map(|_| Mode::FullNode),
            self.archive.as_ref().map(|_| Mode::Archive),
            self.replayer.as_ref().map(|_| Mode::Replayer),
            self.validator.as_ref().map(|_| Mode::Validator),
        ]
        .into_iter()
        .flatten();
        let first = chosen.next()?;
        chosen.next().is_none().then_some(first)
    }

    /// Where the node's first state comes from, whatever its mode.
    pub fn snapshot(&self) -> Option<&SnapshotSource> {
        let of_full_node = || self.full_node.as_ref()?.snapshot.as_ref();
        let of_replayer = || Some(&self.replayer.as_ref()?.snapshot);
        let of_validator = || self.validator.as_ref()?.snapshot.as_ref();
        of_full_node().or_else(of_replayer).or_else(of_validator)
    }

    /// Snapshots the node makes for others, whatever its mode.
    pub fn snapshot_generation(&self) -> Option<&SnapshotGeneration> {
        let of_full_node = || self.full_node.as_ref()?.snapshot_generation.as_ref();
        let of_archive = || self.archive.as_ref()?.snapshot_generation.as_ref();
        of_full_node().or_else(of_archive)
    }

    /// The claim the node shall use instead of one of its own.
    pub fn imported_claim(&self) -> Option<&str> {
        let import = self.data_volume.as_ref()?.import.as_ref()?;
        Some(&import.pvc_name)
    }

    /// Whether the data volume outlives the node: always for an imported one, otherwise unless the
    /// spec says no.
    pub fn retains_volume(&self) -> bool {
        let wish = self.data_volume.as_ref().and_then(|v| v.retain_on_delete);
        self.imported_claim().is_some() || wish.unwrap_or(true)
    }
}
