//! Whose sidecar did not answer in time when it was last asked: a node, and which pod of it.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::Whom;

/// The nodes whose sidecars were late, with the pod that was asked.
#[derive(Debug, Default)]
pub(super) struct Late(Mutex<HashMap<(String, String), String>>);

impl Late {
    /// Notes whether a sidecar answered in time.
    pub(super) fn note(&self, whom: &Whom, late: bool) {
        let node = (whom.namespace.clone(), whom.node.clone());
        match late {
            true => drop(self.nodes().insert(node, whom.pod_uid.clone())),
            false => drop(self.nodes().remove(&node)),
        }
    }

    /// Whether this pod was late when it was last asked. Another one of its node was not asked yet.
    pub(super) fn is(&self, whom: &Whom) -> bool {
        let node = (whom.namespace.clone(), whom.node.clone());
        self.nodes().get(&node) == Some(&whom.pod_uid)
    }

    /// Forgets a node that is gone.
    pub(super) fn forget(&self, namespace: &str, node: &str) {
        let node = (namespace.to_owned(), node.to_owned());
        self.nodes().remove(&node);
    }

    fn nodes(&self) -> MutexGuard<'_, HashMap<(String, String), String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
