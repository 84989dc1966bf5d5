//! What must not change while something else does: a node's pod, its containers and its process.

use crate::world::Chain;
use keelson_testbed::Running;
use std::collections::BTreeMap;

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
