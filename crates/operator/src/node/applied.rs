//! What is on the data volume and what the process was started with: how the record in the status
//! follows what was done.
//!
//! Pure. The record is about one claim; on another nothing of it holds. A node of the original has no
//! record: where it runs, it is taken to run as its spec says.

use keelson_api::SeiNode;
use keelson_api::node_status::{Applied, DataState, NodePhase};
use keelson_plan::{Stage, Step, Target, Task};
use serde_json::json;

use super::sight::Sight;
use crate::digest::digest;

/// What the record says, for the claim that is there now.
pub fn recall(node: &SeiNode, target: &Target, sight: &Sight) -> Applied {
    let claim = sight.claim.as_ref().map(|claim| &claim.identity.uid);
    let status = node.status.as_ref();
    let record = status.and_then(|status| status.applied.clone());
    let mut applied = match record {
        Some(applied) if claim.is_none() || applied.claim.as_ref() == claim => applied,
        Some(_) => Applied::default(),
        None if status.and_then(|it| it.phase) == Some(NodePhase::Running) => Applied {
            data: Some(DataState::Complete),
            settings: Some(target.settings.clone()),
            peers: target.peers.clone(),
            process_settings: Some(target.settings.clone()),
            process_peers: target.peers.clone(),
            ..Applied::default()
        },
        None => Applied::default(),
    };
    applied.claim = claim.cloned().or(applied.claim);
    if applied.data == Some(DataState::Complete) {
        complete(&mut applied, node, target);
    }
    started(&mut applied, sight);
    applied
}

/// What an older record of a node that is set up does not say is taken to be as the spec says.
fn complete(applied: &mut Applied, node: &SeiNode, target: &Target) {
    applied.source.get_or_insert_with(|| source(node));
    applied.publishing.get_or_insert(target.publishes);
}

/// Digest of what a spec says of the node's first state.
pub fn source(node: &SeiNode) -> String {
    let validator = node.spec.validator.as_ref();
    let ceremony = validator.and_then(|it| it.genesis_ceremony.as_ref());
    digest(&json!([node.spec.snapshot(), ceremony]))
}

/// A process in another container was started since, with the files as they were then.
fn started(applied: &mut Applied, sight: &Sight) {
    let process = sight.pod.as_ref().map(|pod| &pod.process);
    let Some(id) = process.filter(|it| it.runs).and_then(|it| it.id.clone()) else {
        return;
    };
    if applied.process.as_ref() == Some(&id) {
        return;
    }
    if applied.process.is_some() {
        applied.process_settings = applied.settings.clone();
        applied.process_peers = applied.peers.clone();
    }
    applied.process = Some(id);
}

/// The record after a step was done. The claim may have come with this very look, and a record that
/// does not name it holds for none.
///
/// What is written while the gate is closed is what the process will start with. A new pod whose gate
/// opened by itself has started it already, with what was there before.
pub fn after(applied: &mut Applied, step: Step, node: &SeiNode, target: &Target, sight: &Sight) {
    if applied.claim.is_none() {
        let claim = sight.claim.as_ref();
        applied.claim = claim.map(|claim| claim.identity.uid.clone());
    }
    match (step.stage, step.task) {
        (Stage::Bootstrap, Task::AwaitBootstrap) => applied.data = Some(DataState::Bootstrapped),
        (Stage::Node, Task::ConfigApply | Task::ConfigPatch) => {
            started(applied, sight);
            applied.settings = Some(target.settings.clone());
            if sight.approved == Some(false) {
                applied.process_settings = applied.settings.clone();
            }
        }
        (Stage::Node, Task::DiscoverPeers) => {
            started(applied, sight);
            applied.peers = target.peers.clone();
            if sight.approved == Some(false) {
                applied.process_peers = applied.peers.clone();
            }
        }
        (Stage::Node, Task::RestartProcess) => {
            applied.process_settings = applied.settings.clone();
            applied.process_peers = applied.peers.clone();
        }
        (Stage::Node, Task::MarkReady) => {
            if applied.data != Some(DataState::Complete) {
                // The process has never run: it starts with what is there now.
                applied.process_settings = applied.settings.clone();
                applied.process_peers = applied.peers.clone();
            }
            applied.data = Some(DataState::Complete);
            complete(applied, node, target);
        }
        (Stage::Node, Task::SnapshotUpload) => applied.publishing = Some(target.publishes),
        _ => {}
    }
}
