//! What an edit did to a running node: the difference between two looks at it.
#![allow(dead_code, reason = "every test binary uses a part of it")]

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use keelson_api::SeiNode;
use keelson_api::node_condition::{NodeCondition, NodeReason};
use keelson_wire::TaskType;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::operator::Operator;
use crate::stage::ledger::Seen;
use crate::stage::{Scene, Stage, platform};

/// A scene with an operator and a full node that runs.
pub(crate) async fn running(name: &str, more: Value) -> (Scene, Operator) {
    let (scene, operator) = opened(name).await;
    scene.full_node("node", more).await;
    scene.settled("node").await;
    (scene, operator)
}

/// A scene with an operator.
pub(crate) async fn opened(name: &str) -> (Scene, Operator) {
    let scene = Stage::shared().await.scene(name).await;
    let operator = Operator::start(&scene, platform()).await;
    (scene, operator)
}

/// A look at a running node.
pub(crate) struct Mark {
    node: String,
    pod: String,
    seen: Seen,
}

/// What happened to a node since a look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// Pods that went, which is how often it was cycled.
    pub(crate) cycles: usize,
    /// Whether it has the pod it had.
    pub(crate) same_pod: bool,
    /// How often the node's process started.
    pub(crate) process_starts: u32,
    /// How often each container was started again inside its pod.
    pub(crate) restarts: BTreeMap<String, u32>,
    /// Tasks its sidecar was given.
    pub(crate) tasks: Vec<TaskType>,
}

impl Change {
    /// Nothing is started again; the sidecar is given these tasks.
    pub(crate) fn hot(tasks: &[TaskType]) -> Self {
        Self {
            same_pod: true,
            tasks: tasks.to_vec(),
            ..Self::default()
        }
    }

    /// One other pod, whose process starts once; the sidecar is given these tasks.
    pub(crate) fn rolled(tasks: &[TaskType]) -> Self {
        Self {
            cycles: 1,
            process_starts: 1,
            tasks: tasks.to_vec(),
            ..Self::default()
        }
    }

    /// This container alone is started again.
    pub(crate) fn in_place(container: &str, tasks: &[TaskType]) -> Self {
        Self {
            restarts: BTreeMap::from([(container.to_owned(), 1)]),
            ..Self::hot(tasks)
        }
    }

    /// The process alone is started again.
    pub(crate) fn restarted(tasks: &[TaskType]) -> Self {
        Self {
            process_starts: 1,
            ..Self::in_place("seid", tasks)
        }
    }
}

impl Mark {
    /// Looks at a node.
    pub(crate) async fn of(scene: &Scene, node: &str) -> Self {
        Self {
            node: node.to_owned(),
            pod: pod_of(scene, node).await.uid().expect("a uid"),
            seen: scene.seen(node),
        }
    }

    /// What happened since.
    pub(crate) async fn since(&self, scene: &Scene) -> Change {
        let now = scene.seen(&self.node);
        let before = |name: &String| self.seen.restarted(name);
        let restarts = now.restarts.iter();
        let restarts = restarts.map(|(name, times)| (name.clone(), times - before(name)));
        Change {
            cycles: now.deleted.len() - self.seen.deleted.len(),
            same_pod: pod_of(scene, &self.node).await.uid().as_ref() == Some(&self.pod),
            process_starts: now.process_starts - self.seen.process_starts,
            restarts: restarts.filter(|(_, times)| *times > 0).collect(),
            tasks: now.begun_after(self.seen.submitted.len()),
        }
    }

    /// Edits the node, waits until it has settled, and says what happened.
    pub(crate) async fn edit(&self, scene: &Scene, spec: Value) -> Change {
        scene.edit(&self.node, spec).await;
        scene.settled(&self.node).await;
        self.since(scene).await
    }
}

/// The node's pod.
pub(crate) async fn pod_of(scene: &Scene, node: &str) -> Pod {
    let pod = scene.api::<Pod>().get(&format!("{node}-0")).await;
    pod.expect("the node's pod")
}

/// A condition of a node.
pub(crate) fn said(node: &SeiNode, condition: NodeCondition) -> Condition {
    let status = node.status.as_ref().expect("a status");
    let mut all = status.conditions.iter();
    let found = all.find(|it| it.type_ == condition.as_str());
    found.expect("every condition").clone()
}

/// Has a node looked at again, to the end: the second look begins when the first is over.
pub(crate) async fn look_again(scene: &Scene, node: &str) {
    for _ in 0..2 {
        let before = scene.seen(node).requests;
        annotate(
            scene,
            node,
            "example.com/look",
            &jiff::Timestamp::now().to_string(),
        )
        .await;
        scene
            .until_seen("another look", node, |seen| seen.requests > before)
            .await;
    }
}

/// What the operator wrote. A token it asks for is no state.
pub(crate) fn writes(scene: &Scene) -> Vec<String> {
    let writes = scene.faults().writes().into_iter();
    let writes = writes.filter(|it| {
        it.resource != "serviceaccounts" && it.subresource.as_deref() != Some("token")
    });
    writes.map(|it| it.to_string()).collect()
}

/// Looks at nodes that are settled again and again, and says what was written meanwhile.
pub(crate) async fn written_at_rest(scene: &Scene, nodes: &[&str]) -> Vec<String> {
    let (ready, reason) = (NodeCondition::Ready, NodeReason::NodeReady);
    for node in nodes {
        scene.until_condition(node, ready, true, reason).await;
        look_again(scene, node).await;
    }
    scene.faults().forget();
    for _ in 0..3 {
        for node in nodes {
            look_again(scene, node).await;
        }
    }
    writes(scene)
}

/// Puts an annotation on a node.
pub(crate) async fn annotate(scene: &Scene, node: &str, name: &str, value: &str) {
    let patch = json!({ "metadata": { "annotations": { name: value } } });
    let nodes = scene.api::<SeiNode>();
    let patched = nodes
        .patch(node, &PatchParams::default(), &Patch::Merge(patch))
        .await;
    patched.expect("an annotation");
}
