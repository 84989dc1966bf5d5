//! The controllers of NMStates and of policies in the process: under a lease of their own, beside that of
//! SeiNodes.
//!
//! Where the types of `nmstate.io` are not installed it waits for them. That counts for readiness only
//! where NMStates were asked for by name ([`count_for`]): whoever runs SeiNodes is ready without them. A
//! lease that is lost ends the work, not the process, and is asked for again.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join;
use keelson_api::names::{FieldManager, Lease as LeaseName};
use keelson_cluster::{Calls, Lease, Led, Needed, Readiness, Standing, lead};
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::controller::Controller;
use super::policies;
use super::settings::Settings;
use super::world::World;
use crate::controllers::Who;
use crate::rights;

/// How long to leave the API server alone after a lease was lost.
const AGAIN: Duration = Duration::from_secs(2);

/// What is known of the cluster while this process leads. Clones share it.
#[derive(Clone, Default)]
pub struct Watched(Arc<Mutex<Option<World>>>);

impl Watched {
    fn set(&self, world: Option<World>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = world;
    }

    /// Whether everything is known that is needed; while another process leads, nothing is.
    fn readiness(&self) -> Result<(), String> {
        let world = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(world) = world.as_ref() else {
            return Ok(());
        };
        Needed::readiness(world.needed().into_iter().chain(world.policies.needed()))
    }
}

/// Has readiness wait for it.
pub fn count_for(
    readiness: &Readiness,
    client: &Client,
    settings: &Settings,
    who: &Who,
    watched: &Watched,
    stop: &CancellationToken,
) {
    let rules = rights::host::rules(&who.namespace, &settings.namespace);
    rights::watch(
        "rights for NMStates",
        client.clone(),
        rules,
        readiness,
        stop,
    );
    let watched = watched.clone();
    readiness.add("watches for NMStates", move || watched.readiness());
}

/// Looks after NMStates and policies until it is told to stop.
pub async fn run(
    client: Client,
    settings: Settings,
    who: Who,
    watched: Watched,
    stop: CancellationToken,
) {
    let lease = Lease {
        namespace: who.namespace,
        name: LeaseName::Nmstate.to_string(),
        identity: who.identity,
    };
    while !stop.is_cancelled() {
        let work = work(client.clone(), settings.clone(), &watched);
        if !who.elects {
            tokio::select! {
                () = stop.cancelled() => {}
                () = work => {}
            }
            return;
        }
        let standing = Standing::new();
        let led = lead(
            client.clone(),
            lease.clone(),
            &standing,
            stop.cancelled(),
            work,
        );
        match Box::pin(led).await {
            Ok(Led::Done(()) | Led::Stopped) => return,
            Ok(Led::Lost(why)) => tracing::warn!("the lease of NMStates was lost: {why}"),
            Err(error) => tracing::warn!("the lease of NMStates: {error}"),
        }
        watched.set(None);
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
}

async fn work(client: Client, settings: Settings, watched: &Watched) {
    let world = World::new();
    watched.set(Some(world.clone()));
    let watches = world.watch(&client, &settings.namespace);
    let calls = Calls::new(client, FieldManager::Nmstate);
    let policies = policies::controller::Controller::new(calls.clone(), world.clone());
    let nmstates = Controller::new(settings, calls, world);
    join(nmstates.run(), policies.run()).await;
    drop(watches);
}
