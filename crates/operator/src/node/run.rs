//! The controller of SeiNodes in the process: under a lease of its own, beside that of NMStates.
//!
//! Readiness asks whether it has the rights it needs and knows what it watches. Whoever stands by
//! watches nothing, and is ready to take over. A lease that is lost ends the process: another one works
//! by then, and a start is what takes up everything.

use std::sync::Arc;

use keelson_api::names::{FieldManager, Lease as LeaseName};
use keelson_cluster::{Calls, Lease, Led, Needed, Readiness, Recorder, Standing, lead};
use kube::Client;
use prometheus_client::registry::Registry;
use tokio_util::sync::CancellationToken;

use super::controller::Controller;
use super::points::Points;
use super::world::{Scope, World};
use crate::controllers::Who;
use crate::metrics::Metrics;
use crate::platform::Settings;
use crate::rights;
use crate::sidecar::Sidecars;

/// The controller, before it runs.
pub struct Nodes {
    client: Client,
    settings: Settings,
    sidecars: Sidecars,
    scope: Scope,
    who: Who,
    world: World,
    standing: Standing,
    metrics: Metrics,
}

impl Nodes {
    /// Everything it needs; nothing is asked for yet.
    pub fn new(
        client: Client,
        settings: Settings,
        sidecars: Sidecars,
        scope: Scope,
        who: Who,
    ) -> Self {
        let world = World::new();
        let standing = match who.elects {
            true => Standing::new(),
            false => Standing::alone(),
        };
        Self {
            metrics: Metrics::new(world.clone(), standing.clone()),
            client,
            settings,
            sidecars,
            scope,
            who,
            world,
            standing,
        }
    }

    /// Puts what it counts on a page.
    pub fn register(&self, registry: &mut Registry) {
        self.metrics.register(registry);
    }

    /// Has readiness wait for it. Where SeiNodes were not asked for by name, a cluster without them is
    /// one that has none to look after.
    pub fn count_for(&self, readiness: &Readiness, by_name: bool, stop: &CancellationToken) {
        let rules = rights::rules(&self.settings.namespace, &self.settings.sidecar_client);
        rights::watch("rights", self.client.clone(), rules, readiness, stop);
        let (world, standing) = (self.world.clone(), self.standing.clone());
        let policies = self.settings.render.access.is_some();
        readiness.add("watches", move || {
            if !standing.leading() || (world.nodes.is_absent() && !by_name) {
                return Ok(());
            }
            Needed::readiness(world.needed(policies))
        });
    }

    /// Looks after SeiNodes until it is told to stop, or the lease is lost.
    pub async fn run(self, stop: &CancellationToken) -> Result<(), String> {
        let lease = Lease {
            namespace: self.who.namespace.clone(),
            name: LeaseName::Sei.to_string(),
            identity: self.who.identity.clone(),
        };
        let (client, standing, elects) =
            (self.client.clone(), self.standing.clone(), self.who.elects);
        let work = self.work();
        if !elects {
            tokio::select! {
                () = stop.cancelled() => {}
                () = work => {}
            }
            return Ok(());
        }
        let led = Box::pin(lead(client, lease, &standing, stop.cancelled(), work));
        match led.await {
            Ok(Led::Done(()) | Led::Stopped) => Ok(()),
            Ok(Led::Lost(why)) => Err(format!("the lease was lost, so this process ends: {why}")),
            Err(error) => Err(error.to_string()),
        }
    }

    async fn work(self) {
        let manager = FieldManager::Node;
        let (recorder, scribe) =
            Recorder::new(self.client.clone(), manager.as_str(), self.who.identity);
        let policies = self.settings.render.access.is_some();
        let watches = self.world.watch(&self.client, &self.scope, policies);
        let controller = Controller::new(
            Arc::new(self.settings),
            Calls::new(self.client, manager),
            self.world,
            self.sidecars,
            recorder,
            self.metrics,
            Points::default(),
        );
        tokio::join!(scribe, controller.run());
        drop(watches);
    }
}
