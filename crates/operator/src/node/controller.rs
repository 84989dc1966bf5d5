//! The controller: which node is looked at when, by how many at once, and what it needs for that.
//!
//! One look is a [`Pass`]; what happens in it is written there.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use keelson_api::SeiNode;
use keelson_api::condition::{Truth, truth};
use keelson_api::node_condition::NodeCondition;
use keelson_cluster::{Calls, Error, Key, Needed, Recorder};
use keelson_plan::Drift;
use keelson_render::names;

use super::bindings::Bindings;
use super::loading::Loading;
use super::pass::Pass;
use super::points::Points;
use super::rest::{Ground, Rests};
use super::share::Share;
use super::sight::{Eyes, at, whom};
use super::under_way::UnderWay;
use super::world::{World, is_awaited};
use crate::metrics::Metrics;
use crate::platform::Settings;
use crate::sidecar::Sidecars;

/// How often a node that is as it should be is asked for its health.
const SETTLED: Duration = Duration::from_secs(60);

/// How many nodes are looked at at once.
pub const WORKERS: usize = 64;

/// Nodes whose sidecars hang have this part of the workers.
const HANGING: usize = 2;

/// Which node takes what the platform changed for all.
struct Turn {
    key: Key,
    /// Whether it had nothing more to do when it was last looked at.
    through: bool,
}

/// The controller of SeiNodes.
pub struct Controller {
    /// The platform.
    pub settings: Arc<Settings>,
    /// Calls to the API server.
    pub calls: Calls,
    /// What is known of everything.
    pub world: World,
    /// For what is not watched.
    pub eyes: Eyes,
    /// Calls to sidecars.
    pub sidecars: Sidecars,
    /// Says what happened.
    pub recorder: Recorder,
    /// Counts what happened.
    pub metrics: Metrics,
    /// Where tests may stop it.
    pub points: Points,
    /// How many nodes are looked at at once.
    pub workers: usize,
    hanging: Share,
    pub(crate) bindings: Bindings,
    turn: Mutex<Option<Turn>>,
    /// Certificates that are not served yet.
    pub loading: Loading,
    trouble: Mutex<HashMap<Key, u32>>,
    pub(crate) under_way: UnderWay,
    pub(crate) rests: Rests,
}

impl Controller {
    /// A controller that has not looked at anything yet.
    pub fn new(
        settings: Arc<Settings>,
        calls: Calls,
        world: World,
        sidecars: Sidecars,
        recorder: Recorder,
        metrics: Metrics,
        points: Points,
    ) -> Self {
        Self {
            eyes: Eyes::new(calls.clone(), world.clone(), sidecars.clone()),
            settings,
            calls,
            world,
            sidecars,
            recorder,
            metrics,
            points,
            workers: WORKERS,
            hanging: Share::default(),
            bindings: Bindings::default(),
            loading: Loading::default(),
            turn: Mutex::default(),
            trouble: Mutex::default(),
            under_way: UnderWay::default(),
            rests: Rests::default(),
        }
    }

    /// Looks after all nodes, for ever. Begin to watch first.
    pub async fn run(&self) {
        let policies = self.settings.render.access.is_some();
        Needed::known(self.world.needed(policies)).await;
        self.world
            .queue
            .work(self.workers, |key| {
                Box::pin(async move { self.reconcile(&key).await })
            })
            .await;
    }

    /// Looks at one node, and says when to look again.
    pub async fn reconcile(&self, key: &Key) -> Option<Duration> {
        let Some(node) = self.world.nodes.get(key) else {
            self.forget(key);
            return None;
        };
        // Somebody waits for one that was edited, and the edit may be what ends the hanging.
        let _place = match self.hangs(key) && !is_awaited(&node) {
            true => {
                let most = self.workers / HANGING;
                let Some(place) = self.hanging.take(most, key, &self.world.queue) else {
                    return Some(self.settled(key));
                };
                Some(place)
            }
            false => None,
        };
        let ground = Ground::of(&self.world, key, &node);
        if self.rests(key, ground.as_ref()).await {
            return Some(self.settled(key));
        }
        match Box::pin(Pass::new(self, key, &node, ground).run()).await {
            Ok(after) => {
                self.trouble().remove(key);
                Some(after)
            }
            Err(error) => {
                self.metrics.troubled(key);
                Some(self.troubled(key, &error))
            }
        }
    }

    /// Whether a pod of a node did not answer in time when it was last asked.
    pub(crate) fn hangs(&self, key: &Key) -> bool {
        let own = self.world.pods.get(&at(key, names::pod(&key.name)));
        let mut pods = own.into_iter().chain(self.world.pods_beside(key));
        pods.any(|pod| pod.can_be_called() && self.sidecars.hangs(&whom(key, &pod)))
    }

    /// Whether a node rests: nothing that its last look was based on changed, and its sidecar still
    /// says that it is ready.
    async fn rests(&self, key: &Key, ground: Option<&Ground>) -> bool {
        let Some(ask) = ground.and_then(|ground| self.rests.ask(key, ground)) else {
            self.rests.end(key);
            return false;
        };
        let health = self.sidecars.health(&whom(key, &ask.pod), &ask.over).await;
        let rests = health == Ok(true);
        if rests {
            self.metrics.probed(key, Some(true));
        }
        rests
    }

    /// How long to leave a node alone after an error: not at all where someone else was faster,
    /// longer each time where the API server does not answer.
    fn troubled(&self, key: &Key, error: &Error) -> Duration {
        let mut trouble = self.trouble();
        let times = trouble.entry(key.clone()).or_default();
        *times = times.saturating_add(1);
        if error.is_conflict() {
            return Duration::from_millis(100 * u64::from((*times).min(20)));
        }
        tracing::warn!(node = %key, "the node was not looked after: {error}");
        Duration::from_secs(1 << (*times).min(5))
    }

    fn forget(&self, key: &Key) {
        self.eyes.forget(key);
        self.sidecars.forget_node(&key.namespace, &key.name);
        self.loading.over(key);
        self.trouble().remove(key);
        self.under_way.forget(key);
        self.rests.end(key);
        self.step_aside(key);
    }

    /// Whether it is this node's turn to take what the platform changed for all: the one before has
    /// to be through and well.
    pub(crate) fn may_follow_platform(&self, key: &Key) -> bool {
        let mut turn = self.turn();
        let free = match turn.as_ref() {
            // Nobody since this process started; one may have begun before.
            None => !self.is_anyone_following(key),
            Some(holder) => {
                holder.key == *key || {
                    let node = self.world.nodes.get(&holder.key);
                    node.is_none_or(|node| holder.through && is_well(&node))
                }
            }
        };
        if free {
            *turn = Some(Turn {
                key: key.clone(),
                through: false,
            });
        }
        free
    }

    /// Notes that a node has nothing more to do, so that the next may have its turn.
    pub(crate) fn is_through(&self, key: &Key) {
        let mut turn = self.turn();
        if let Some(turn) = turn.as_mut().filter(|turn| turn.key == *key) {
            turn.through = true;
        }
    }

    /// Gives a turn back that a node cannot use.
    pub(crate) fn step_aside(&self, key: &Key) {
        self.turn().take_if(|turn| turn.key == *key);
    }

    fn is_anyone_following(&self, but: &Key) -> bool {
        let mut nodes = self.world.nodes.all().into_iter();
        nodes.any(|(key, node)| key != *but && is_following(&node))
    }

    fn turn(&self) -> std::sync::MutexGuard<'_, Option<Turn>> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// When a settled node is looked at again: not all at the same moment.
    pub(crate) fn settled(&self, key: &Key) -> Duration {
        let mut hash = DefaultHasher::new();
        key.hash(&mut hash);
        SETTLED + Duration::from_millis(hash.finish() % 10_000)
    }

    fn trouble(&self) -> std::sync::MutexGuard<'_, HashMap<Key, u32>> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a node has nothing to do, its sidecar is ready and nothing holds it up.
fn is_well(node: &SeiNode) -> bool {
    let Some(status) = &node.status else {
        return true;
    };
    let is = |condition| truth(&status.conditions, condition) == Truth::True;
    status.plan.is_none() && is(NodeCondition::SidecarReady) && !is(NodeCondition::Stalled)
}

/// Whether a node is taking another image in place, or could not.
fn is_following(node: &SeiNode) -> bool {
    let Some(status) = &node.status else {
        return false;
    };
    let images = [Drift::SidecarImage.as_str(), Drift::ProxyImage.as_str()];
    let takes = status.plan.as_ref().is_some_and(|plan| {
        let mut causes = plan.causes.iter();
        causes.all(|cause| images.contains(&cause.as_str()))
    });
    takes || !status.put_back.is_empty()
}
