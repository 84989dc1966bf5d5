//! What tasks do: one table from each task to the function that does it.
//!
//! A task is given what it needs to know of the node ([`Site`]) and its own run ([`Run`]); locks,
//! deadlines and rows are the engine's. Every one of them can be run again from the beginning: that
//! is how it goes on after a crash.

pub mod condition;
pub mod config;
pub mod gate;
pub mod genesis;
pub mod peers;
pub mod process;
pub mod reset;
pub mod snapshot;
pub mod state_sync;
pub mod upload;

use crate::disk;
use crate::engine::{Ledger, Order, Perform};
use crate::site::Site;
use crate::work::{Done, Run, Trouble};
use futures::future::BoxFuture;
use keelson_wire::Task;
use std::sync::Arc;

/// All tasks of a node.
#[derive(Clone, Debug)]
pub struct Tasks {
    /// The node.
    pub site: Site,
    /// What a hold forgets releases in.
    pub ledger: Arc<Ledger>,
}

impl Perform for Tasks {
    fn perform(&self, task: Task, order: Order, run: Run) -> BoxFuture<'static, Done> {
        let tasks = self.clone();
        Box::pin(async move { tasks.dispatch(task, order, run).await })
    }
}

impl Tasks {
    async fn dispatch(&self, task: Task, order: Order, run: Run) -> Done {
        let (site, run) = (&self.site, &run);
        match task {
            Task::SnapshotRestore(params) => snapshot::restore(params, site, run).await,
            Task::ConfigureGenesis(params) => genesis::configure(params, site, run).await,
            Task::ConfigApply(params) => config::apply(params, site, run).await,
            Task::ConfigPatch(params) => config::patch(params, site, run).await,
            Task::ConfigValidate => config::validate(site, run).await,
            Task::DiscoverPeers(params) => peers::discover(params, site, run).await,
            Task::ConfigureStateSync(params) => state_sync::configure(params, site, run).await,
            Task::MarkReady => gate::mark_ready(&order, site, run).await,
            Task::MarkNotReady => gate::mark_not_ready(&self.ledger, site).await,
            Task::StopSeid => process::stop(site, run).await,
            Task::RestartSeid => process::restart(order.submitted_at, site, run).await,
            Task::ResetData => reset::reset(site, run).await,
            Task::SnapshotUpload => upload::upload(site, run).await,
            Task::SnapshotUploadOnce => upload::upload_once(site, run).await,
            Task::AwaitCondition(params) => condition::wait(params, site, run).await,
        }
    }
}

/// Does something with files where nobody waits for the disk.
async fn on_disk<T: Send + 'static>(
    task: &'static str,
    operation: &'static str,
    act: impl FnOnce() -> Result<T, disk::Trouble> + Send + 'static,
) -> Result<T, Trouble> {
    let problem = match tokio::task::spawn_blocking(act).await {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    Err(Trouble::passing(task, operation, problem))
}
