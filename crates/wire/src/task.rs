//! The tasks a sidecar carries out: one enum over all of them.

use keelson_api::task::TaskType;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::Object;
use crate::params::{
    AwaitCondition, Condition, ConfigApply, ConfigPatch, ConfigureGenesis, ConfigureStateSync,
    DiscoverPeers, PeerSource, SnapshotRestore,
};

/// One task with what it is given.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Fetches a snapshot of the chain's state.
    SnapshotRestore(SnapshotRestore),
    /// Writes the genesis file.
    ConfigureGenesis(ConfigureGenesis),
    /// Writes the configuration files.
    ConfigApply(ConfigApply),
    /// Changes configuration files.
    ConfigPatch(ConfigPatch),
    /// Checks the configuration files.
    ConfigValidate,
    /// Finds peers and writes them.
    DiscoverPeers(DiscoverPeers),
    /// Switches state sync on.
    ConfigureStateSync(ConfigureStateSync),
    /// Opens the gate: seid may start.
    MarkReady,
    /// Closes the gate.
    MarkNotReady,
    /// Stops seid.
    StopSeid,
    /// Stops seid and waits until it serves again.
    RestartSeid,
    /// Empties the data folder.
    ResetData,
    /// Uploads snapshots for as long as the node lives.
    SnapshotUpload,
    /// Uploads one snapshot.
    SnapshotUploadOnce,
    /// Waits for the node, then does something.
    AwaitCondition(AwaitCondition),
}

/// Parameters that are not of their task's shape.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parsing params: {0}")]
pub struct BadParams(pub String);

/// Parameters of the right shape that make no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{task}: {problem}")]
pub struct InvalidParams {
    /// The task.
    pub task: TaskType,
    /// What is wrong and what to do.
    pub problem: String,
}

impl Task {
    /// Types a sidecar understands. Other words of the vocabulary are the operator's own tasks, or
    /// tasks of the original that are not there yet.
    pub const TYPES: [TaskType; 15] = [
        TaskType::SnapshotRestore,
        TaskType::ConfigureGenesis,
        TaskType::ConfigApply,
        TaskType::ConfigPatch,
        TaskType::ConfigValidate,
        TaskType::DiscoverPeers,
        TaskType::ConfigureStateSync,
        TaskType::MarkReady,
        TaskType::MarkNotReady,
        TaskType::StopSeid,
        TaskType::RestartSeid,
        TaskType::ResetData,
        TaskType::SnapshotUpload,
        TaskType::SnapshotUploadOnce,
        TaskType::AwaitCondition,
    ];

    /// The type of this name, if a sidecar understands it.
    pub fn type_of(name: &str) -> Option<TaskType> {
        Self::TYPES.into_iter().find(|type_| type_.as_str() == name)
    }

    /// The task's type.
    pub const fn type_(&self) -> TaskType {
        match self {
            Self::SnapshotRestore(_) => TaskType::SnapshotRestore,
            Self::ConfigureGenesis(_) => TaskType::ConfigureGenesis,
            Self::ConfigApply(_) => TaskType::ConfigApply,
            Self::ConfigPatch(_) => TaskType::ConfigPatch,
            Self::ConfigValidate => TaskType::ConfigValidate,
            Self::DiscoverPeers(_) => TaskType::DiscoverPeers,
            Self::ConfigureStateSync(_) => TaskType::ConfigureStateSync,
            Self::MarkReady => TaskType::MarkReady,
            Self::MarkNotReady => TaskType::MarkNotReady,
            Self::StopSeid => TaskType::StopSeid,
            Self::RestartSeid => TaskType::RestartSeid,
            Self::ResetData => TaskType::ResetData,
            Self::SnapshotUpload => TaskType::SnapshotUpload,
            Self::SnapshotUploadOnce => TaskType::SnapshotUploadOnce,
            Self::AwaitCondition(_) => TaskType::AwaitCondition,
        }
    }

    /// Reads a task's parameters; nothing for a type no sidecar understands.
    pub fn decode(type_: TaskType, params: &Object) -> Option<Result<Self, BadParams>> {
        Some(match type_ {
            TaskType::SnapshotRestore => read(params).map(Self::SnapshotRestore),
            TaskType::ConfigureGenesis => read(params).map(Self::ConfigureGenesis),
            TaskType::ConfigApply => read(params).map(Self::ConfigApply),
            TaskType::ConfigPatch => read(params).map(Self::ConfigPatch),
            TaskType::ConfigValidate => Ok(Self::ConfigValidate),
            TaskType::DiscoverPeers => read(params).map(Self::DiscoverPeers),
            TaskType::ConfigureStateSync => read(params).map(Self::ConfigureStateSync),
            TaskType::MarkReady => Ok(Self::MarkReady),
            TaskType::MarkNotReady => Ok(Self::MarkNotReady),
            TaskType::StopSeid => Ok(Self::StopSeid),
            TaskType::RestartSeid => Ok(Self::RestartSeid),
            TaskType::ResetData => Ok(Self::ResetData),
            TaskType::SnapshotUpload => Ok(Self::SnapshotUpload),
            TaskType::SnapshotUploadOnce => Ok(Self::SnapshotUploadOnce),
            TaskType::AwaitCondition => read(params).map(Self::AwaitCondition),
            _ => return None,
        })
    }

    /// The parameters as they are sent; empty where there are none to send.
    pub fn params(&self) -> Object {
        match self {
            Self::SnapshotRestore(params) => write(params),
            Self::ConfigureGenesis(params) => write(params),
            Self::ConfigApply(params) => write(params),
            Self::ConfigPatch(params) => write(params),
            Self::DiscoverPeers(params) => write(params),
            Self::ConfigureStateSync(params) => write(params),
            Self::AwaitCondition(params) => write(params),
            Self::ConfigValidate
            | Self::MarkReady
            | Self::MarkNotReady
            | Self::StopSeid
            | Self::RestartSeid
            | Self::ResetData
            | Self::SnapshotUpload
            | Self::SnapshotUploadOnce => Object::new(),
        }
    }

    /// Whether the parameters make sense, as far as that can be said without looking at the node.
    pub fn check(&self) -> Result<(), InvalidParams> {
        let problem = match self {
            Self::SnapshotRestore(params) if params.target_height < 0 => {
                "targetHeight is negative: use 0 for the newest snapshot".to_owned()
            }
            Self::ConfigPatch(params) if params.files.is_empty() => {
                "at least one file is required".to_owned()
            }
            Self::DiscoverPeers(params) if params.sources.is_empty() => {
                "at least one source is required".to_owned()
            }
            Self::DiscoverPeers(params) => match params.sources.iter().enumerate().find_map(lack) {
                Some(problem) => problem,
                None => return Ok(()),
            },
            Self::AwaitCondition(params)
                if params.condition == Condition::Height && params.target_height <= 0 =>
            {
                "targetHeight must be greater than 0 to wait for a height".to_owned()
            }
            _ => return Ok(()),
        };
        Err(InvalidParams {
            task: self.type_(),
            problem,
        })
    }
}

/// What a source of peers lacks.
fn lack((index, source): (usize, &PeerSource)) -> Option<String> {
    let lack = match source {
        PeerSource::Ec2Tags { region, .. } if region.is_empty() => "ec2Tags needs a region",
        PeerSource::Ec2Tags { tags, .. } if tags.is_empty() => "ec2Tags needs at least one tag",
        PeerSource::Static { addresses } if addresses.is_empty() => {
            "static needs at least one address"
        }
        PeerSource::DnsEndpoints { endpoints } if endpoints.is_empty() => {
            "dnsEndpoints needs at least one endpoint"
        }
        _ => return None,
    };
    Some(format!("source[{index}]: {lack}"))
}

fn read<T: DeserializeOwned>(params: &Object) -> Result<T, BadParams> {
    serde_json::from_value(Value::Object(params.clone()))
        .map_err(|error| BadParams(error.to_string()))
}

fn write(params: &impl Serialize) -> Object {
    match serde_json::to_value(params) {
        Ok(Value::Object(object)) => object,
        // Parameters are structs of texts, numbers, lists and maps with texts as names; they have no
        // other form.
        _ => Object::new(),
    }
}
