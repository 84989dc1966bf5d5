//! What must not change while something else does: a node's pod, its containers and its process.

use crate::world::Chain;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use keelson_testbed::Running;
use kube::Api;
use kube::runtime::{WatchStreamExt, watcher};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::task::JoinHandle;

/// A node's pod at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Of the pod.
    pub(crate) uid: Option<String>,
    /// How often each container was started again.
    pub(crate) restarts: BTreeMap<String, i32>,
    /// The node itself.
    pub(crate) process: Running,
}

impl Mark {
    /// A node's pod as it is.
    pub(crate) async fn of(chain: &Chain, node: &str) -> Self {
        Self {
            uid: chain.pod(node).await.expect("a pod").metadata.uid,
            restarts: chain.restarts(node).await,
            process: chain.container(node, "seid").process,
        }
    }
}

/// Every pod a namespace has had since it is watched, by uid.
pub(crate) struct Pods {
    seen: Arc<Mutex<BTreeSet<String>>>,
    watch: JoinHandle<()>,
}

impl Pods {
    /// Begins to watch.
    pub(crate) fn watch(chain: &Chain) -> Self {
        let pods = Api::<Pod>::namespaced(chain.world.cluster.client(), &chain.name);
        let seen = Arc::<Mutex<BTreeSet<String>>>::default();
        let noted = Arc::clone(&seen);
        let watch = tokio::spawn(async move {
            let watched = watcher(pods, watcher::Config::default());
            let mut watched = watched.default_backoff().touched_objects().boxed();
            while let Some(pod) = watched.next().await {
                let uid = pod.ok().and_then(|pod| pod.metadata.uid);
                let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
                noted.extend(uid);
            }
        });
        Self { seen, watch }
    }

    /// Those that were seen.
    pub(crate) fn seen(&self) -> BTreeSet<String> {
        self.seen
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Drop for Pods {
    fn drop(&mut self) {
        self.watch.abort();
    }
}
