//! The controllers of NMStates and of policies in the process: under a lease of their own, beside that of
//! SeiNodes.
//!
//! It runs where it was told an image for the host components. Where the types of `nmstate.io` are
//! not installed it waits for them, and says so in the log alone: whoever runs only SeiNodes is ready
//! without them. A lease that is lost ends the work, not the process, and is asked for again.

use std::time::Duration;

use futures::future::join;
use keelson_api::names::{FieldManager, Lease as LeaseName};
use keelson_cluster::{Calls, Lease, Led, Standing, lead};
use kube::Client;
use tokio_util::sync::CancellationToken;

use super::controller::Controller;
use super::policies;
use super::settings::Settings;
use super::world::World;

/// How long to leave the API server alone after a lease was lost.
const AGAIN: Duration = Duration::from_secs(2);

/// Who runs, and where its lease is.
#[derive(Clone, Debug)]
pub struct Who {
    /// The operator's own namespace.
    pub namespace: String,
    /// One name for each process.
    pub identity: String,
    /// Whether there is a lease at all.
    pub elects: bool,
}

/// Looks after NMStates and policies until it is told to stop.
pub async fn run(client: Client, settings: Settings, who: Who, stop: CancellationToken) {
    let lease = Lease {
        namespace: who.namespace,
        name: LeaseName::Nmstate.to_string(),
        identity: who.identity,
    };
    while !stop.is_cancelled() {
        let work = work(client.clone(), settings.clone());
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
        tokio::select! {
            () = stop.cancelled() => {}
            () = tokio::time::sleep(AGAIN) => {}
        }
    }
}

async fn work(client: Client, settings: Settings) {
    let world = World::new();
    let watches = world.watch(&client, &settings.namespace);
    let calls = Calls::new(client, FieldManager::Nmstate);
    let policies = policies::controller::Controller::new(calls.clone(), world.clone());
    let nmstates = Controller::new(settings, calls, world);
    join(nmstates.run(), policies.run()).await;
    drop(watches);
}
