//! All nodes of a scene under one watch, for those who wait for many of them at once.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::{StreamExt, TryStreamExt};
use keelson_api::SeiNode;
use keelson_api::node_condition::{NodeCondition, NodeReason};
use kube::api::ListParams;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, ResourceExt};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::guard::Guard;
use crate::stage::Scene;

/// How long a crowd may take: a busy machine of two cores has some sixty nodes to look after.
const PATIENCE: Duration = Duration::from_secs(300);

type Known = BTreeMap<String, SeiNode>;

/// All nodes of a scene.
pub(crate) struct Crowd {
    nodes: Api<SeiNode>,
    known: watch::Receiver<Known>,
    watching: JoinHandle<()>,
}

impl Drop for Crowd {
    fn drop(&mut self) {
        self.watching.abort();
    }
}

impl Crowd {
    /// Watches the nodes of a scene.
    pub(crate) fn of(scene: &Scene) -> Self {
        let (told, known) = watch::channel(Known::new());
        let mut events = watcher(scene.api::<SeiNode>(), watcher::Config::default())
            .default_backoff()
            .applied_objects()
            .boxed();
        let watching = tokio::spawn(async move {
            loop {
                match events.try_next().await {
                    Ok(Some(node)) => told.send_modify(|known| {
                        known.insert(node.name_any(), node);
                    }),
                    // It is tried again.
                    Err(_) => {}
                    Ok(None) => return,
                }
            }
        });
        Self {
            nodes: scene.api(),
            known,
            watching,
        }
    }

    /// Waits until this holds of each of these nodes.
    pub(crate) async fn until<'a>(
        &self,
        what: &str,
        names: impl IntoIterator<Item = &'a String>,
        holds: impl Fn(&SeiNode) -> bool,
    ) {
        self.until_cut(what, &Guard::default(), names, holds).await;
    }

    /// Waits until each of these nodes is held by the guard, or this holds of it.
    pub(crate) async fn until_cut<'a>(
        &self,
        what: &str,
        guard: &Guard,
        names: impl IntoIterator<Item = &'a String>,
        holds: impl Fn(&SeiNode) -> bool,
    ) {
        let names: Vec<_> = names.into_iter().collect();
        let missing = |known: &Known| -> Vec<String> {
            let missing = names
                .iter()
                .filter(|name| !guard.has_cut(name) && !known.get(**name).is_some_and(&holds));
            missing.map(|name| (*name).clone()).collect()
        };
        let (mut known, mut bell) = (self.known.clone(), guard.bell());
        let waiting = async {
            loop {
                // A watch may lag behind an edit, so what it says is confirmed.
                let all = missing(&known.borrow_and_update()).is_empty();
                if all && missing(&self.now().await).is_empty() {
                    return;
                }
                tokio::select! {
                    _ = known.changed() => {}
                    _ = bell.changed() => {}
                }
            }
        };
        if timeout(PATIENCE, waiting).await.is_err() {
            let missing = missing(&self.now().await);
            panic!("{what}: not of {}", self.tell(&missing));
        }
    }

    async fn now(&self) -> Known {
        let listed = self.nodes.list(&ListParams::default()).await;
        let nodes = listed.expect("a list of nodes").items.into_iter();
        nodes.map(|node| (node.name_any(), node)).collect()
    }

    fn tell(&self, names: &[String]) -> String {
        let known = self.known.borrow();
        let status = |name: &String| {
            let status = known.get(name).and_then(|node| node.status.as_ref());
            serde_json::to_string_pretty(&status).unwrap_or_default()
        };
        let first = names.first().map(status).unwrap_or_default();
        format!("{names:?}, the first of which says {first}")
    }
}

/// Whether a node is as its spec asks, and says so of this very spec.
pub(crate) fn is_settled(node: &SeiNode) -> bool {
    let Some(status) = &node.status else {
        return false;
    };
    let mut conditions = status.conditions.iter();
    status.observed_generation == node.metadata.generation
        && conditions.any(|it| {
            it.type_ == NodeCondition::Reconciling.as_str()
                && it.status == "False"
                && it.reason == NodeReason::Settled.as_str()
        })
}
