//! What a test waits for on its scene: each wait has a name and a deadline, and says what it saw last.

use std::fmt::Debug;
use std::pin::pin;

use futures::StreamExt;
use k8s_openapi::api::events::v1::Event;
use kube::api::ListParams;
use kube::runtime::{WatchStreamExt, watcher};

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use keelson_api::SeiNode;
use keelson_api::node_condition::{NodeCondition, NodeReason};
use keelson_api::node_status::{NodePhase, SeiNodeStatus};
use kube::Resource;
use kube::runtime::wait::await_condition;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::Scene;
use super::ledger::Seen;
use super::proxy::Files;
use super::shared::DEADLINE;
use super::world::World;

impl Scene {
    /// Waits until an object was told of for this reason, and returns the notes of all such events.
    pub(crate) async fn events(&self, object: &str, reason: &str) -> Vec<String> {
        let events = self.api::<Event>();
        let about = |event: &Event| {
            event.regarding.as_ref().and_then(|it| it.name.as_deref()) == Some(object)
                && event.reason.as_deref() == Some(reason)
        };
        let waiting = async {
            let all = watcher::watcher(events.clone(), watcher::Config::default());
            let mut all = pin!(all.applied_objects());
            while let Some(event) = all.next().await {
                if event.is_ok_and(|event| about(&event)) {
                    return;
                }
            }
        };
        if timeout(DEADLINE, waiting).await.is_err() {
            panic!("no event {reason} of {object} within {DEADLINE:?}");
        }
        let list = events.list(&ListParams::default()).await.expect("events");
        let list = list.items.into_iter().filter(about);
        list.map(|it| it.note.unwrap_or_default()).collect()
    }

    /// Waits until this holds of what was seen of a node.
    pub(crate) async fn until_seen(&self, what: &str, node: &str, holds: impl Fn(&Seen) -> bool) {
        let place = self.place(node);
        let look = |world: &mut World| {
            let seen = world.ledger.of(&place);
            holds(&seen)
                .then_some(())
                .ok_or_else(|| format!("{seen:?}"))
        };
        self.stage()
            .shared
            .until(&format!("{what} of {place}"), look)
            .await;
    }

    /// Waits until a node's proxy serves this mode: `off`, `required` or `shut`.
    pub(crate) async fn until_serving(&self, node: &str, mode: &str) {
        let place = self.place(node);
        let look = |world: &mut World| {
            let (pod, serving) = world.serving(&place);
            let so = pod.is_some() && serving.word() == mode;
            so.then_some(())
                .ok_or_else(|| format!("{pod:?} serves {serving:?}"))
        };
        self.stage()
            .shared
            .until(&format!("mode {mode} of {place}"), look)
            .await;
    }

    /// Waits until this holds of the files of a node's proxy, as they are mounted.
    pub(crate) async fn until_files(&self, node: &str, holds: impl Fn(&Files) -> bool) {
        let place = self.place(node);
        let look = |world: &mut World| {
            let files = world.answering(&place).map(|pod| pod.files.clone());
            let so = files.as_ref().is_some_and(&holds);
            so.then_some(()).ok_or_else(|| format!("{files:?}"))
        };
        self.stage()
            .shared
            .until(&format!("files of {place}"), look)
            .await;
    }

    /// Waits until this holds of an object; of one that is gone, too.
    pub(crate) async fn until_object<K>(
        &self,
        what: &str,
        name: &str,
        holds: impl Fn(Option<&K>) -> bool + Send + Sync,
    ) -> Option<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + Debug
            + Serialize
            + Send
            + Sync
            + 'static,
    {
        // A server that has just been given a type may not be ready to watch it.
        let waiting = async {
            loop {
                let holds = |it: Option<&K>| holds(it);
                let watched = Box::pin(await_condition(self.api::<K>(), name, holds));
                if let Ok(found) = watched.await {
                    break found;
                }
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        };
        match timeout(DEADLINE, waiting).await {
            Ok(found) => found,
            Err(_) => {
                let mut last = self.api::<K>().get_opt(name).await.expect("an answer");
                if let Some(last) = &mut last {
                    last.meta_mut().managed_fields = None;
                }
                let last = serde_json::to_string_pretty(&last).unwrap_or_default();
                panic!("{what} of {name} did not happen within {DEADLINE:?}: {last}");
            }
        }
    }

    /// Waits until this holds of a pod.
    pub(crate) async fn until_pod(
        &self,
        what: &str,
        name: &str,
        holds: impl Fn(&Pod) -> bool + Send + Sync,
    ) -> Pod {
        let found = self.until_object(what, name, |pod: Option<&Pod>| pod.is_some_and(&holds));
        found.await.expect("a pod")
    }

    /// Waits until this holds of a node's status.
    pub(crate) async fn until_status(
        &self,
        what: &str,
        node: &str,
        holds: impl Fn(&SeiNode, &SeiNodeStatus) -> bool + Send + Sync,
    ) -> SeiNode {
        let found = self.until_object(what, node, |node: Option<&SeiNode>| {
            node.is_some_and(|it| it.status.as_ref().is_some_and(|status| holds(it, status)))
        });
        found.await.expect("a node")
    }

    /// Waits until a node is in this phase.
    pub(crate) async fn until_phase(&self, node: &str, phase: NodePhase) -> SeiNode {
        let what = format!("phase {phase}");
        self.until_status(&what, node, |_, status| status.phase == Some(phase))
            .await
    }

    /// Waits until a condition of a node is so, for this reason.
    pub(crate) async fn until_condition(
        &self,
        node: &str,
        condition: NodeCondition,
        status: bool,
        reason: NodeReason,
    ) -> SeiNode {
        let wanted = if status { "True" } else { "False" };
        let what = format!("{condition}={wanted} ({reason})");
        let holds = |it: &Condition| it.status == wanted && it.reason == reason.as_str();
        self.until_status(&what, node, |_, status| {
            find(status, condition).is_some_and(holds)
        })
        .await
    }

    /// Waits until a node is as its spec asks, and says so of this very spec.
    pub(crate) async fn settled(&self, node: &str) -> SeiNode {
        self.until_status("settling", node, |node, _| is_settled(node))
            .await
    }
}

/// Whether a node says that it is as its spec asks, of this very spec.
pub(crate) fn is_settled(node: &SeiNode) -> bool {
    let says = |it: &Condition| it.status == "False" && it.reason == NodeReason::Settled.as_str();
    node.status.as_ref().is_some_and(|status| {
        status.observed_generation == node.metadata.generation
            && find(status, NodeCondition::Reconciling).is_some_and(says)
    })
}

fn find(status: &SeiNodeStatus, condition: NodeCondition) -> Option<&Condition> {
    let mut all = status.conditions.iter();
    all.find(|it| it.type_ == condition.as_str())
}

/// What a tool that knows nothing of nodes makes of one, by the rules of kstatus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kstatus {
    /// It is as its spec asks.
    Current,
    /// It is on its way there.
    InProgress,
    /// It does not get there by itself.
    Failed,
    /// It is being deleted.
    Terminating,
}

impl Kstatus {
    /// Reads a node. Of `Reconciling` and `Stalled` kstatus believes the one that stands first.
    pub(crate) fn of(node: &SeiNode) -> Self {
        let status = node.status.clone().unwrap_or_default();
        let holds = |it: &&Condition| it.status == "True";
        let mut abnormal = status.conditions.iter().filter(holds);
        let abnormal = abnormal.find_map(|it| match it.type_.as_str() {
            "Reconciling" => Some(Self::InProgress),
            "Stalled" => Some(Self::Failed),
            _ => None,
        });
        let ready = find(&status, NodeCondition::Ready).is_none_or(|it| it.status == "True");
        let observed = status.observed_generation;
        match abnormal {
            _ if node.metadata.deletion_timestamp.is_some() => Self::Terminating,
            _ if observed.is_some() && observed != node.metadata.generation => Self::InProgress,
            Some(abnormal) => abnormal,
            None if ready => Self::Current,
            None => Self::InProgress,
        }
    }
}

/// Whether a status says that a plan gets on and that nothing does.
pub(crate) fn contradicts_itself(status: &SeiNodeStatus) -> bool {
    let is = |condition| find(status, condition).is_some_and(|it| it.status == "True");
    is(NodeCondition::Reconciling) && is(NodeCondition::Stalled)
}
