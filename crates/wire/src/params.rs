//! Parameters of tasks, typed.
//!
//! A field that is absent or `null` is the type's zero, and a field nobody knows is ignored. Whether
//! the values make sense together is asked of the whole task, see [`crate::Task::check`].

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};

use crate::Object;
use crate::lenient::{nullable, whole};
use crate::shown::Names;

fn is_zero(number: &i64) -> bool {
    *number == 0
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Fetches a snapshot of the chain's state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SnapshotRestore {
    /// The newest snapshot at or below this height is taken; zero takes the newest of all.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "is_zero")]
    #[schemars(range(min = 0))]
    pub target_height: i64,
}

/// Writes the genesis file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigureGenesis {
    /// SHA-256 the file must have, in bare lower-case hexadecimal; empty checks nothing.
    #[serde(
        default,
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub expected_genesis_hash: String,
}

/// Writes the configuration files.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigApply {
    /// The node's mode: validator, full, seed or archive. May be empty where `incremental` is set.
    #[serde(default, deserialize_with = "nullable")]
    pub mode: String,

    /// Values of single keys, by their dotted names.
    #[serde(
        default,
        deserialize_with = "nullable",
        skip_serializing_if = "BTreeMap::is_empty"
    )]
    pub overrides: BTreeMap<String, String>,

    /// Version of the schema; zero means the sidecar's own.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "is_zero")]
    pub target_version: i64,

    /// Changes the files on disk instead of writing them anew.
    #[serde(
        default,
        deserialize_with = "nullable",
        skip_serializing_if = "is_false"
    )]
    pub incremental: bool,
}

impl fmt::Debug for ConfigApply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigApply")
            .field("mode", &self.mode)
            .field("overrides", &self.overrides.keys())
            .field("target_version", &self.target_version)
            .field("incremental", &self.incremental)
            .finish()
    }
}

/// Changes configuration files by merge patches.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigPatch {
    /// A patch for each file: `app.toml`, `client.toml` or `config.toml`. An object is merged into a
    /// section, `null` removes a name, anything else replaces what is there.
    #[serde(default, deserialize_with = "nullable")]
    pub files: Object,
}

impl fmt::Debug for ConfigPatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConfigPatch")
            .field("files", &Names(&self.files))
            .finish()
    }
}

/// Finds peers and writes them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DiscoverPeers {
    /// Where peers are found, at least one source.
    #[serde(default, deserialize_with = "nullable")]
    #[schemars(length(min = 1))]
    pub sources: Vec<PeerSource>,
}

/// Where peers are found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum PeerSource {
    /// Machines of a cloud region that carry all the tags.
    Ec2Tags {
        /// The region.
        #[serde(
            default,
            deserialize_with = "nullable",
            skip_serializing_if = "String::is_empty"
        )]
        region: String,
        /// The tags.
        #[serde(
            default,
            deserialize_with = "nullable",
            skip_serializing_if = "BTreeMap::is_empty"
        )]
        tags: BTreeMap<String, String>,
    },
    /// Addresses written down, of the form `nodeId@host:port`.
    Static {
        /// The addresses.
        #[serde(
            default,
            deserialize_with = "nullable",
            skip_serializing_if = "Vec::is_empty"
        )]
        addresses: Vec<String>,
    },
    /// Hosts that are asked for their identity.
    DnsEndpoints {
        /// The hosts.
        #[serde(
            default,
            deserialize_with = "nullable",
            skip_serializing_if = "Vec::is_empty"
        )]
        endpoints: Vec<String>,
    },
}

/// Finds a block to trust and switches state sync on.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigureStateSync {
    /// Restores the snapshot on disk instead of asking peers for one.
    #[serde(
        default,
        deserialize_with = "nullable",
        skip_serializing_if = "is_false"
    )]
    pub use_local_snapshot: bool,

    /// How long a header is trusted, for example `168h0m0s`; empty leaves what is there.
    #[serde(
        default,
        deserialize_with = "nullable",
        skip_serializing_if = "String::is_empty"
    )]
    pub trust_period: String,

    /// Blocks before the snapshot that are fetched too; zero leaves what is there.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "is_zero")]
    pub backfill_blocks: i64,

    /// Witnesses as `host:port`; where there are none the first peers are asked.
    #[serde(
        default,
        deserialize_with = "nullable",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub rpc_servers: Vec<String>,
}

/// Waits for the node, then does something.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AwaitCondition {
    /// What to wait for.
    pub condition: Condition,

    /// The height, where one is waited for.
    #[serde(default, deserialize_with = "whole", skip_serializing_if = "is_zero")]
    pub target_height: i64,

    /// What to do then.
    #[serde(
        default,
        deserialize_with = "action",
        skip_serializing_if = "Option::is_none"
    )]
    pub action: Option<Action>,
}

/// What a task may wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Condition {
    /// The node has reached a height.
    Height,
    /// The node no longer catches up.
    CatchingUp,
}

/// What a task may do when its wait is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Action {
    /// Stops seid.
    #[serde(rename = "SIGTERM_SEID")]
    SigtermSeid,
}

/// An action; the empty text is none.
fn action<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Action>, D::Error> {
    match Option::<String>::deserialize(deserializer)?.as_deref() {
        None | Some("") => Ok(None),
        Some("SIGTERM_SEID") => Ok(Some(Action::SigtermSeid)),
        Some(other) => Err(D::Error::custom(format!(
            "unknown action {other:?}: use SIGTERM_SEID or none"
        ))),
    }
}
