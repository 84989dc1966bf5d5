//! Nodes at rest: what the last look that found nothing to do was based on.
//!
//! As long as all of it is the same, another look would find nothing to do either, and it is enough to
//! ask the sidecar for its health. Now and then a node is looked at in full all the same.

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use keelson_api::SeiNode;
use keelson_cluster::Key;
use keelson_render::names;
use tokio::time::Instant;

use super::peers;
use super::seen::SeenPod;
use super::sight::at;
use super::world::World;
use crate::sidecar::Transport;

/// How long a node is asked for nothing but its health.
const REST: Duration = Duration::from_secs(600);

/// What is known of an object. Another state of it is another one of these.
type Known = Option<Arc<dyn Any + Send + Sync>>;

/// Everything a look at a node is based on, besides what its sidecar says.
pub struct Ground {
    /// Version of the node.
    version: Option<String>,
    /// Its objects, and the versions of the Secrets it uses.
    objects: Vec<Known>,
    /// How often nodes came, went or were labelled anew, where that decides who its peers are.
    labelled: Option<u64>,
}

impl Ground {
    /// What a look at this node is based on now; nothing where that is not all its own: whether a
    /// signing key may be used hangs on the pods of other nodes.
    pub fn of(world: &World, key: &Key, node: &SeiNode) -> Option<Self> {
        let validator = node.spec.validator.as_ref();
        if validator.is_some_and(|validator| validator.signing_key.is_some()) {
            return None;
        }
        let claim = match node.spec.imported_claim() {
            Some(imported) => imported.to_owned(),
            None => names::own_claim(&key.name),
        };
        let mut objects = vec![
            known(world.sets.get(&at(key, names::stateful_set(&key.name)))),
            known(world.services.get(&at(key, names::service(&key.name)))),
            known(world.configs.get(&at(key, names::proxy_config(&key.name)))),
            known(
                world
                    .policies
                    .get(&at(key, names::network_policy(&key.name))),
            ),
            known(
                world
                    .certificates
                    .get(&at(key, names::certificate(&key.name))),
            ),
            known(world.claims.get(&at(key, claim))),
            known(world.pods.get(&at(key, names::pod(&key.name)))),
            known(world.jobs.get(&at(key, names::bootstrap_job(&key.name)))),
        ];
        objects.extend(world.pods_beside(key).into_iter().map(|it| known(Some(it))));
        objects.extend(world.secrets_of(key, node).into_iter().map(known));
        let seeks = peers::labels(node).next().is_some();
        Some(Self {
            version: node.metadata.resource_version.clone(),
            objects,
            labelled: seeks.then(|| world.labelled()),
        })
    }

    fn is_same(&self, other: &Self) -> bool {
        let same = |(one, other): (&Known, &Known)| match (one, other) {
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            (one, other) => one.is_none() && other.is_none(),
        };
        self.version == other.version
            && self.labelled == other.labelled
            && self.objects.len() == other.objects.len()
            && self.objects.iter().zip(&other.objects).all(same)
    }
}

fn known<T: Any + Send + Sync>(object: Option<Arc<T>>) -> Known {
    object.map(|object| object as Arc<dyn Any + Send + Sync>)
}

/// A node at rest.
struct Rest {
    ground: Ground,
    /// Whom to ask for the node's health, and how.
    ask: Ask,
    since: Instant,
}

/// Whom to ask for a node's health, and how.
#[derive(Clone)]
pub struct Ask {
    /// The pod.
    pub pod: Arc<SeenPod>,
    /// How its sidecar is called.
    pub over: Arc<Transport>,
}

/// The nodes at rest.
#[derive(Default)]
pub struct Rests(Mutex<HashMap<Key, Rest>>);

impl Rests {
    /// Nothing was to be done for a node, on this ground.
    pub fn begin(&self, key: &Key, ground: Ground, ask: Ask) {
        let since = Instant::now();
        let rest = Rest { ground, ask, since };
        self.rests().insert(key.clone(), rest);
    }

    /// Whom to ask for the health of a node that rests, if what is known now is no other ground.
    pub fn ask(&self, key: &Key, now: &Ground) -> Option<Ask> {
        let rests = self.rests();
        let rest = rests.get(key)?;
        let holds = rest.since.elapsed() < REST && rest.ground.is_same(now);
        holds.then(|| rest.ask.clone())
    }

    /// The node rests no longer.
    pub fn end(&self, key: &Key) {
        self.rests().remove(key);
    }

    fn rests(&self) -> MutexGuard<'_, HashMap<Key, Rest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
