//! What happens to a node from an edit until it is settled, as everyone sees it who watches.
//!
//! A plan is written down before its first step, so that a watch sees every plan there was.
#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use keelson_api::SeiNode;
use keelson_api::node_condition::{NodeCondition, NodeReason};
use keelson_api::node_status::SeiNodeStatus;
use keelson_api::plan::TaskPlan;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::stage::Scene;
use crate::stage::ledger::Seen;
use crate::stage::waiting::contradicts_itself;

/// How long a story may take. All of the matrix goes on at once.
const LONGEST: Duration = Duration::from_secs(150);

/// What was seen of one edit.
pub(crate) struct Story {
    /// The plans there were, each as it was written first.
    pub(crate) plans: Vec<TaskPlan>,
    /// What `NodeUpdateInProgress` said while it held: reason and message.
    pub(crate) reasons: Vec<(String, String)>,
    /// The node at the end.
    pub(crate) node: SeiNode,
    /// What it cost.
    pub(crate) cost: Cost,
}

/// What an edit cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cost {
    /// Pods that went.
    pub(crate) pods: usize,
    /// Containers that were started again.
    pub(crate) restarts: u32,
    /// How often the node's process started.
    pub(crate) starts: u32,
}

impl Cost {
    /// Nothing: the process never noticed.
    pub(crate) const NOTHING: Self = Self {
        pods: 0,
        restarts: 0,
        starts: 0,
    };

    /// One pod for another.
    pub(crate) const ONE_POD: Self = Self {
        pods: 1,
        restarts: 0,
        starts: 1,
    };

    /// What happened between two looks.
    pub(crate) fn between(before: &Seen, after: &Seen) -> Self {
        let restarts = |seen: &Seen| seen.restarts.values().sum::<u32>();
        Self {
            pods: after.deleted.len() - before.deleted.len(),
            restarts: restarts(after) - restarts(before),
            starts: after.process_starts - before.process_starts,
        }
    }
}

/// Edits a node, and tells what happens until it is settled.
pub(crate) async fn tell(scene: &Scene, name: &str, edit: Value) -> Story {
    let before = scene.seen(name);
    let edited = scene.edit(name, edit).await;
    follow(scene, &edited, before, is_settled).await
}

/// Tells what happens to a node after this state of it, until something holds.
pub(crate) async fn follow(
    scene: &Scene,
    from: &SeiNode,
    before: Seen,
    until: impl Fn(&SeiNode) -> bool,
) -> Story {
    let name = from.name_any();
    let watch = WatchParams::default().fields(&format!("metadata.name={name}"));
    let version = from.resource_version().unwrap_or_default();
    let nodes = scene.api::<SeiNode>();
    let mut story = Story {
        plans: Vec::new(),
        reasons: Vec::new(),
        node: from.clone(),
        cost: Cost::NOTHING,
    };
    let watching = async {
        let events = nodes.watch(&watch, &version).await;
        let mut events = events.expect("a watch").boxed();
        while let Some(event) = events.next().await {
            if let WatchEvent::Modified(node) = event.expect("an event") {
                story.see(node);
                if until(&story.node) {
                    return;
                }
            }
        }
        panic!("the watch of {name} ended");
    };
    let ended = timeout(LONGEST, watching).await;
    assert!(ended.is_ok(), "{name} did not get there: {:#?}", story.node);
    story.cost = Cost::between(&before, &scene.seen(&name));
    story
}

impl Story {
    fn see(&mut self, node: SeiNode) {
        let status = node.status.clone().unwrap_or_default();
        assert!(!contradicts_itself(&status), "{:#?}", status.conditions);
        if let Some(plan) = status.plan.clone()
            && self.plans.iter().all(|it| it.id != plan.id)
        {
            self.plans.push(plan);
        }
        let update = condition(&status, NodeCondition::NodeUpdateInProgress);
        if let Some(update) = update.filter(|it| it.status == "True") {
            let said = (update.reason.clone(), update.message.clone());
            if self.reasons.last() != Some(&said) {
                self.reasons.push(said);
            }
        }
        self.node = node;
    }
}

fn is_settled(node: &SeiNode) -> bool {
    let settled = |it: &Condition| {
        let (reason, generation) = (NodeReason::Settled.as_str(), node.metadata.generation);
        it.status == "False" && it.reason == reason && it.observed_generation == generation
    };
    let status = node.status.as_ref();
    let reconciling = status.and_then(|it| condition(it, NodeCondition::Reconciling));
    reconciling.is_some_and(settled)
}

/// A condition of a status.
pub(crate) fn condition(status: &SeiNodeStatus, type_: NodeCondition) -> Option<&Condition> {
    let mut all = status.conditions.iter();
    all.find(|it| it.type_ == type_.as_str())
}

/// A condition of a node, in one line: its status, its reason and its message.
pub(crate) fn said(node: &SeiNode, type_: NodeCondition) -> (String, String, String) {
    let status = node.status.as_ref().expect("a status");
    let found = condition(status, type_).expect("every condition, always");
    (
        found.status.clone(),
        found.reason.clone(),
        found.message.clone(),
    )
}

/// Names of the tasks of a plan, in order.
pub(crate) fn tasks(plan: &TaskPlan) -> Vec<&'static str> {
    plan.tasks.iter().map(|it| it.type_.as_str()).collect()
}

/// Has the operator look at a node, which nothing else changed.
pub(crate) async fn poke(scene: &Scene, node: &str, with: &str) {
    annotate(scene, node, "example.com/look", with).await;
}

/// Puts an annotation on a node.
pub(crate) async fn annotate(scene: &Scene, node: &str, name: &str, value: &str) {
    let patch = Patch::Merge(json!({ "metadata": { "annotations": { name: value } } }));
    let nodes = scene.api::<SeiNode>();
    let patched = nodes.patch(node, &PatchParams::default(), &patch).await;
    patched.expect("an annotation");
}
