//! What a sidecar is asked for a step, and under which name.
//!
//! Parameters are worked out when a step begins, from the spec its plan serves. A name holds the
//! facts that require the effect, so whoever plans twice for one need asks once.

use keelson_api::SeiNode;
use keelson_api::task::TaskType;
use keelson_plan::{Entry, Plan, Stage, Task as Planned};
use keelson_seid_config::{ApplyError, persistent_peers, whole};
use keelson_wire::id::{Facts, Scope, of_effect};
use keelson_wire::params::{
    ConfigApply, ConfigPatch, ConfigureGenesis, ConfigureStateSync, DiscoverPeers, SnapshotRestore,
};
use keelson_wire::{Object, Task};
use serde_json::{Value, json};
use uuid::Uuid;

use super::desired::Desired;

/// What a sidecar is asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct Effect {
    /// The task's type.
    pub type_: TaskType,
    /// What it is given.
    pub params: Object,
    /// What it lasts for.
    pub scope: Scope,
    /// Whether it is done when the sidecar has it: it goes on for as long as the node lives.
    pub endless: bool,
}

impl Effect {
    /// The effect of a task.
    pub fn of(task: Task) -> Self {
        Self {
            type_: task.type_(),
            params: task.params(),
            scope: Scope::of(&task),
            endless: matches!(task, Task::SnapshotUpload),
        }
    }
}

/// What a sidecar is asked for a step; nothing where there is nothing to ask.
pub fn effect(
    node: &SeiNode,
    desired: &Desired,
    stage: Stage,
    task: Planned,
) -> Result<Option<Effect>, ApplyError> {
    let known = |task: Task| Some(Effect::of(task));
    let snapshot = node.spec.snapshot();
    Ok(match task {
        Planned::SnapshotRestore => known(Task::SnapshotRestore(SnapshotRestore {
            target_height: snapshot
                .and_then(|it| it.s3.as_ref())
                .map_or(0, |s3| s3.target_height),
        })),
        Planned::ConfigureGenesis => known(Task::ConfigureGenesis(ConfigureGenesis::default())),
        Planned::ConfigApply => known(Task::ConfigApply(ConfigApply {
            mode: desired.intent.mode.clone(),
            overrides: desired.intent.overrides.clone(),
            target_version: 0,
            incremental: false,
        })),
        Planned::ConfigPatch => known(Task::ConfigPatch(ConfigPatch {
            files: whole(&desired.intent)?,
        })),
        Planned::DiscoverPeers => discover(node, desired, stage).and_then(known),
        Planned::ConfigureStateSync => known(Task::ConfigureStateSync(ConfigureStateSync {
            use_local_snapshot: snapshot.is_some_and(|it| it.s3.is_some()),
            trust_period: snapshot
                .and_then(|it| it.trust_period.clone())
                .unwrap_or_default(),
            backfill_blocks: snapshot.and_then(|it| it.backfill_blocks).unwrap_or(0),
            rpc_servers: snapshot.map_or_else(Vec::new, |it| it.rpc_servers.clone()),
        })),
        Planned::ConfigValidate => known(Task::ConfigValidate),
        Planned::SnapshotUpload => known(Task::SnapshotUpload),
        Planned::RestartProcess => known(Task::RestartSeid),
        Planned::MarkReady => known(Task::MarkReady),
        Planned::GenerateIdentity
        | Planned::GenerateGentx
        | Planned::UploadGenesisArtifacts
        | Planned::SetGenesisPeers => Some(ceremony(node, task)),
        // The rest is the operator's own to do.
        _ => None,
    })
}

/// A node whose peers were taken away is given an empty list; one that never had any, nothing.
fn discover(node: &SeiNode, desired: &Desired, stage: Stage) -> Option<Task> {
    let sources = desired.peers.clone();
    if !sources.is_empty() {
        return Some(Task::DiscoverPeers(DiscoverPeers { sources }));
    }
    let status = node.status.as_ref()?;
    let had = status.applied.as_ref()?.peers.is_some();
    let files = Object::from_iter([(
        "config.toml".to_owned(),
        Value::Object(persistent_peers([])),
    )]);
    (had && stage == Stage::Node).then(|| Task::ConfigPatch(ConfigPatch { files }))
}

/// A part of the genesis ceremony; what it makes stays on the volume.
fn ceremony(node: &SeiNode, task: Planned) -> Effect {
    let part = node.spec.validator.as_ref();
    let part = part.and_then(|validator| validator.genesis_ceremony.as_ref());
    let name = node.metadata.name.as_deref().unwrap_or_default();
    let text = |it: Option<&String>| it.cloned().unwrap_or_default();
    let chain = part
        .and_then(|part| part.chain_id.clone())
        .unwrap_or_else(|| node.spec.chain_id.clone());
    let params = match task {
        Planned::GenerateIdentity => json!({ "chainId": chain, "moniker": name }),
        Planned::GenerateGentx => json!({
            "chainId": chain,
            "stakingAmount": text(part.and_then(|part| part.staking_amount.as_ref())),
            "accountBalance": text(part.and_then(|part| part.account_balance.as_ref())),
        }),
        Planned::UploadGenesisArtifacts => json!({ "nodeName": name }),
        _ => json!({}),
    };
    let Value::Object(params) = params else {
        unreachable!("the parameters above are objects")
    };
    Effect {
        type_: task.type_(),
        params,
        scope: if task == Planned::SetGenesisPeers {
            Scope::Configuration
        } else {
            Scope::Data
        },
        endless: false,
    }
}

/// Whether a task is about the process of this very pod, so that another pod needs it again.
pub fn is_about_pod(task: Planned) -> bool {
    matches!(task, Planned::MarkReady | Planned::RestartProcess)
}

/// The name of an effect: by the facts that require it.
pub fn id(effect: &Effect, node_uid: &str, pod_uid: &str, plan: &Plan, entry: &Entry) -> Uuid {
    let facts = Facts {
        node_uid,
        generation: plan.generation,
        pod_uid,
        attempt: entry.attempt,
    };
    // A task of the bootstrap pod is not the node's own of the same name and parameters.
    let mut effect = effect.clone();
    if entry.step.stage == Stage::Bootstrap && effect.scope != Scope::Data {
        effect
            .params
            .insert("stage".to_owned(), Value::from("bootstrap"));
    }
    of_effect(effect.type_, &effect.params, effect.scope, &facts)
}
