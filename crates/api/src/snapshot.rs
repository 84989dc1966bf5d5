//! Snapshots: the state a node starts from, and those it makes for others.
//!
//! What a snapshot needs beyond its own shape (that a bootstrap image needs an S3 snapshot, that a
//! published one keeps at least two) depends on the rest of the spec and is the operator's to check.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

/// The state a node starts from: exactly one of `s3` and `stateSync`.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("has(self.s3) != has(self.stateSync)").message(
    "A snapshot has exactly one source: set one of s3 and stateSync."
))]
#[serde(rename_all = "camelCase")]
pub struct SnapshotSource {
    /// A snapshot of the platform's bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub s3: Option<S3Snapshot>,

    /// A snapshot served by peers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state_sync: Option<StateSync>,

    /// How long a header is trusted, as a duration such as `168h0m0s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_period: Option<String>,

    /// How many blocks before the snapshot are fetched as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backfill_blocks: Option<i64>,

    /// Image that replays from the snapshot to its target height before the node itself starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap_image: Option<String>,

    /// Nodes whose headers are compared to trust the snapshot, as bare `host:port`, at least two.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(min = 2, max = 32),
        inner(length(max = 253), regex(pattern = r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?:[0-9]{1,5}$")),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub rpc_servers: Vec<String>,
}

/// A snapshot of the platform's bucket.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct S3Snapshot {
    /// Height to restore: the newest snapshot at or below it is taken.
    #[schemars(range(min = 1))]
    pub target_height: i64,
}

/// A snapshot served by peers. Has no settings of its own.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StateSync {}

/// Snapshots a node makes for others.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotGeneration {
    /// Snapshots in Tendermint's format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tendermint: Option<TendermintSnapshots>,
}

/// Snapshots in Tendermint's format.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TendermintSnapshots {
    /// How many are kept on the volume.
    #[schemars(range(min = 1))]
    pub keep_recent: i32,

    /// Uploads them to the platform's bucket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish: Option<SnapshotPublish>,
}

/// Uploads snapshots to the platform's bucket. Has no settings of its own.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SnapshotPublish {}
