//! The controller of policies: says in a policy's status how it stands, and clears up after those that
//! are gone.
//!
//! What the status says is worked out in [`policies`](super); it is written over the version it was
//! worked out from, and only where it says something else. Where there is neither an NMState nor a
//! handler, policies are left alone, and so are they while the original's operator runs, whose handlers
//! write it themselves.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use keelson_api::NodeNetworkConfigurationPolicy;
use keelson_api::enactment::enactment_name;
use keelson_api::policy::NodeNetworkConfigurationPolicyStatus as Status;
use keelson_cluster::{Calls, Error, Key, Needed};
use kube::api::ApiResource;
use serde_json::{Map, Value, json};

use super::farewells::Farewells;
use super::known::{Subject, handles};
use super::seen::Policy;
use super::{Host, status, sweep};
use crate::host::world::World;

/// How many policies are looked at at the same time.
const WORKERS: usize = 4;

/// How soon to look again where somebody else wrote first.
const AT_ONCE: Duration = Duration::from_millis(200);

/// How soon to look again after a failure.
const SOON: Duration = Duration::from_secs(2);

/// The controller of policies.
pub struct Controller {
    pub(super) calls: Calls,
    pub(super) world: World,
    pub(super) farewells: Farewells,
}

impl Controller {
    /// A controller that has not looked at anything yet.
    pub fn new(calls: Calls, world: World) -> Self {
        Self {
            calls,
            world,
            farewells: Farewells::default(),
        }
    }

    /// Looks after policies, for ever. Begin to watch first.
    pub async fn run(&self) {
        self.begin().await;
        let queue = &self.world.policies.queue;
        let look = |subject: Subject| Box::pin(async move { self.look(&subject).await });
        queue.work(WORKERS, look).await;
    }

    /// Waits until enough is known for a first look.
    pub async fn begin(&self) {
        let world = &self.world;
        let others = [
            world.nmstates.listed(),
            world.nodes.listed(),
            world.pods.listed(),
            world.originals.listed(),
        ];
        Needed::known(world.policies.needed().into_iter().chain(others)).await;
    }

    /// One look; gives when to look again.
    pub async fn look(&self, subject: &Subject) -> Option<Duration> {
        if !self.world.originals.is_empty() {
            return None;
        }
        let done = match subject {
            Subject::Policy(name) => match self.world.policies.policies.get(&key(name)) {
                Some(policy) => self.report(&policy).await,
                None => sweep::enactments(self, name).await,
            },
            Subject::Claims => sweep::claims(self).await,
        };
        match done {
            Ok(again) => again,
            Err(error) if error.is_conflict() => Some(AT_ONCE),
            Err(error) => {
                tracing::warn!("policies were not looked after: {error}");
                Some(SOON)
            }
        }
    }

    async fn report(&self, policy: &Policy) -> Result<Option<Duration>, Error> {
        let (hosts, until) = self.hosts();
        if self.world.nmstates.is_empty() && !hosts.iter().any(|it| it.handled) {
            return Ok(None);
        }
        let known = &self.world.policies;
        let selected = hosts.iter().filter(|it| it.is_for(policy));
        let name = |it: &Host| enactment_name(&it.node.name, &policy.name);
        let enactments: Vec<_> = selected
            .filter_map(|it| known.enactments.get(&key(&name(it))))
            .collect();
        let claimed = known.claimed().and_then(|(_, it)| it.claims.clone());
        let after = status(
            policy,
            &hosts,
            enactments.iter().map(AsRef::as_ref),
            claimed.unwrap_or_default().counts(&policy.uid),
            Timestamp::now(),
        );
        if let Some(after) = after {
            self.write(policy, &after).await?;
        }
        Ok(until)
    }

    /// Every node, and whether it has a handler; and how long that counts, if it does for a while.
    fn hosts(&self) -> (Vec<Host>, Option<Duration>) {
        let pods = self.world.pods.all();
        let (left, until) = self.world.policies.left_lately();
        let handled: BTreeSet<&str> = pods
            .iter()
            .filter_map(|(_, pod)| handles(pod))
            .chain(left.iter().map(String::as_str))
            .collect();
        let nodes = self.world.nodes.all().into_iter();
        let hosts = nodes.map(|(_, node)| Host {
            handled: handled.contains(node.name.as_str()),
            node,
        });
        (hosts.collect(), until)
    }

    /// The nodes that a handler looks after by itself.
    pub(super) fn attended(&self) -> BTreeSet<String> {
        let (hosts, _) = self.hosts();
        let attended = hosts.iter().filter(|it| it.handled && it.node.ready);
        attended.map(|it| it.node.name.clone()).collect()
    }

    async fn write(&self, policy: &Policy, status: &Status) -> Result<(), Error> {
        let patch = json!({
            "metadata": {"resourceVersion": policy.version, "uid": policy.uid},
            "status": patch(&policy.status, status),
        });
        let resource = ApiResource::erase::<NodeNetworkConfigurationPolicy>(&());
        let at = key(&policy.name);
        let written = self.calls.merge_status_as(&resource, &at, &patch).await?;
        let written = written.and_then(|it| it.try_parse().ok());
        if let Some(written) = written.map(Policy::read) {
            let version = written.version.clone();
            self.world.policies.policies.note(at, &version, written);
        }
        Ok(())
    }
}

/// What makes one status of the other, as a merge patch: an entry of a map goes where it is said to.
fn patch(before: &Status, after: &Status) -> Value {
    const COUNTS: &str = "unavailableNodeCountMap";
    let mut patch = serde_json::to_value(after).unwrap_or_default();
    let gone = before.unavailable_node_count_map.keys();
    let gone = gone.filter(|it| !after.unavailable_node_count_map.contains_key(*it));
    let gone: Map<String, Value> = gone.map(|it| (it.clone(), Value::Null)).collect();
    if !gone.is_empty() {
        match patch.get_mut(COUNTS).and_then(Value::as_object_mut) {
            Some(counts) => counts.extend(gone),
            None => patch[COUNTS] = Value::Object(gone),
        }
    }
    patch
}

/// The key of an object of the whole cluster.
pub(super) fn key(name: &str) -> Key {
    Key {
        namespace: String::new(),
        name: name.to_owned(),
    }
}
