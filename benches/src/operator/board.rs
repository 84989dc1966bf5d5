//! How far nodes are, counted as their statuses change.
//!
//! Nodes are counted by namespace, so whatever is measured together is made in one of its own.

use anyhow::bail;
use keelson_api::SeiNode;
use keelson_api::node_status::NodePhase;
use keelson_cluster::Mirror;
use kube::runtime::watcher;
use kube::{Api, Client};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// How far the nodes of a namespace are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// Nodes that are Running.
    pub(crate) running: usize,
    /// Nodes that have nothing left to do, by the image they run.
    pub(crate) done: HashMap<String, usize>,
}

type Counts = HashMap<String, Count>;

/// How far one node is.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Far {
    running: bool,
    /// The image of a node that has nothing left to do.
    done: Option<String>,
}

impl Far {
    fn read(node: &SeiNode) -> Self {
        let status = node.status.as_ref();
        let running = status.and_then(|it| it.phase) == Some(NodePhase::Running);
        let done = status.filter(|status| {
            let as_asked = status.current_image.as_ref() == Some(&node.spec.image);
            let current = status.observed_generation == node.metadata.generation;
            running && as_asked && current && status.plan.is_none()
        });
        Self {
            running,
            done: done.and_then(|status| status.current_image.clone()),
        }
    }
}

impl Count {
    fn add(&mut self, far: &Far) {
        self.running += usize::from(far.running);
        if let Some(image) = &far.done {
            *self.done.entry(image.clone()).or_default() += 1;
        }
    }

    fn take(&mut self, far: &Far) {
        self.running -= usize::from(far.running);
        if let Some(count) = far.done.as_ref().and_then(|it| self.done.get_mut(it)) {
            *count -= 1;
        }
    }

    /// How many have nothing left to do, whatever they run.
    pub(crate) fn all_done(&self) -> usize {
        self.done.values().sum()
    }

    /// How many have nothing left to do and run this image.
    pub(crate) fn done_with(&self, image: &str) -> usize {
        self.done.get(image).copied().unwrap_or_default()
    }
}

/// How far all nodes are.
pub(crate) struct Board {
    counts: watch::Sender<Counts>,
    follower: JoinHandle<()>,
}

impl Drop for Board {
    fn drop(&mut self) {
        self.follower.abort();
    }
}

impl Board {
    /// Begins to count.
    pub(crate) fn watch(client: &Client) -> Self {
        let counts = watch::Sender::new(Counts::new());
        let told = counts.clone();
        let follower = Mirror::new("counted SeiNodes").follow(
            Api::<SeiNode>::all(client.clone()),
            watcher::Config::default(),
            |node: SeiNode| Some(Far::read(&node)),
            move |key, before: Option<&Far>, after: Option<&Far>| {
                if before == after {
                    return;
                }
                told.send_modify(|counts| {
                    let count = counts.entry(key.namespace.clone()).or_default();
                    before.into_iter().for_each(|far| count.take(far));
                    after.into_iter().for_each(|far| count.add(far));
                });
            },
        );
        Self {
            counts,
            follower: tokio::spawn(follower),
        }
    }

    /// Waits until this holds of a namespace, and says how long that took.
    pub(crate) async fn until(
        &self,
        what: &str,
        namespace: &str,
        within: Duration,
        holds: impl Fn(&Count) -> bool,
    ) -> anyhow::Result<Duration> {
        let begun = Instant::now();
        let mut counts = self.counts.subscribe();
        let met = counts.wait_for(|counts| counts.get(namespace).is_some_and(&holds));
        if timeout(within, met).await.is_ok() {
            return Ok(begun.elapsed());
        }
        let count = self.counts.borrow().get(namespace).cloned();
        bail!("{what} did not happen within {within:?}; in {namespace}: {count:?}")
    }
}
