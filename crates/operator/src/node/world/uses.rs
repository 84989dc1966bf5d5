//! Who uses what: Secrets, imported claims, and nodes that find peers by a label.

use std::collections::{BTreeMap, BTreeSet};

use keelson_api::SeiNode;
use keelson_cluster::{Key, Queue};
use keelson_render::names;

use crate::node::peers;
use crate::node::seen::SeenPod;
use crate::node::sight::at;

/// Who uses what.
#[derive(Default)]
pub(super) struct Uses {
    /// Nodes by Secret.
    pub(super) secrets: BTreeMap<Key, BTreeSet<Key>>,
    /// Nodes by imported claim.
    pub(super) claims: BTreeMap<Key, BTreeSet<Key>>,
    /// Nodes that find peers by a label.
    pub(super) seekers: BTreeSet<Key>,
    /// Pods beside a node's own, by node: of its bootstrap Job, or of a StatefulSet somebody scaled.
    pub(super) beside: BTreeMap<Key, BTreeSet<Key>>,
}

impl Uses {
    pub(super) fn wake_users(&self, secret: &Key, queue: &Queue<Key>) {
        for node in self.secrets.get(secret).into_iter().flatten() {
            queue.add(node.clone());
        }
    }

    /// A pod came, changed or went.
    pub(super) fn note_pod(
        &mut self,
        key: &Key,
        before: Option<&SeenPod>,
        after: Option<&SeenPod>,
    ) {
        if let Some(node) = before.and_then(|pod| beside(key, pod)) {
            take(&mut self.beside, &node, key);
        }
        if let Some(node) = after.and_then(|pod| beside(key, pod)) {
            self.beside.entry(node).or_default().insert(key.clone());
        }
    }

    pub(super) fn note(&mut self, key: &Key, node: Option<&SeiNode>) {
        let Some(node) = node else { return };
        for secret in secrets_of(key, node) {
            self.secrets.entry(secret).or_default().insert(key.clone());
        }
        if let Some(claim) = claim_of(key, node) {
            self.claims.entry(claim).or_default().insert(key.clone());
        }
        if peers::labels(node).next().is_some() {
            self.seekers.insert(key.clone());
        }
    }

    pub(super) fn forget(&mut self, key: &Key, node: Option<&SeiNode>) {
        let Some(node) = node else { return };
        for secret in secrets_of(key, node) {
            take(&mut self.secrets, &secret, key);
        }
        if let Some(claim) = claim_of(key, node) {
            take(&mut self.claims, &claim, key);
        }
        self.seekers.remove(key);
    }
}

fn take(of: &mut BTreeMap<Key, BTreeSet<Key>>, used: &Key, by: &Key) {
    if let Some(users) = of.get_mut(used) {
        users.remove(by);
        if users.is_empty() {
            of.remove(used);
        }
    }
}

/// The node a pod belongs to that is not its own.
fn beside(key: &Key, pod: &SeenPod) -> Option<Key> {
    let node = &pod.identity.node;
    (key.name != names::pod(node)).then(|| at(key, node.clone()))
}

/// Every Secret a node uses: of its certificate, whether or not it asks for one, and of its keys.
pub(super) fn secrets_of(key: &Key, node: &SeiNode) -> BTreeSet<Key> {
    let tls = node.spec.sidecar.as_ref().and_then(|it| it.tls.as_ref());
    let named = tls.and_then(|tls| tls.secret_name.clone());
    let keys = node.spec.validator.iter().flat_map(|it| it.key_secrets());
    [names::certificate(&key.name)]
        .into_iter()
        .chain(named)
        .chain(keys.map(|(_, secret)| secret.to_owned()))
        .map(|name| Key {
            namespace: key.namespace.clone(),
            name,
        })
        .collect()
}

fn claim_of(key: &Key, node: &SeiNode) -> Option<Key> {
    Some(Key {
        namespace: key.namespace.clone(),
        name: node.spec.imported_claim()?.to_owned(),
    })
}
