//! The engine: whoever calls names a task by an id of their own, and the engine sees to it that it is
//! carried out, once, whatever happens to the process.
//!
//! Decisions are pure and stand in [`decide`], [`recover`] and [`policy`]; what is durable is the
//! store's; what a task does is behind [`Perform`]. The engine holds the three together: it writes
//! before it begins, it begins nothing twice, and it writes what came of it.
//!
//! A task that is cancelled leaves its row as it is: if the sidecar is ending, the next one takes the
//! task up again; if the task was deleted, the row is gone anyway.

pub mod decide;
mod execute;
mod ledger;
mod locks;
pub mod policy;
pub mod recover;

pub use ledger::Ledger;
pub use locks::Locks;

use crate::gate::{Evidence, Gate, Reason};
use crate::metrics::Metrics;
use crate::store::{Incoming, Store, StoreError};
use crate::work::{Done, Run};
use decide::{Conflict, Verdict};
use execute::Slots;
use futures::future::BoxFuture;
use jiff::Timestamp;
use keelson_wire::{Task, TaskResult, TaskStatus, TaskType};
use recover::{Hold, Step};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// How long a deletion waits for the work to end before it forgets the task all the same.
const DELETE_GRACE: Duration = Duration::from_secs(5);

/// Which task it is that is carried out.
#[derive(Clone, Debug)]
pub struct Order {
    /// The id.
    pub id: String,
    /// When it was submitted.
    pub submitted_at: Timestamp,
}

/// Carries tasks out.
pub trait Perform: Send + Sync + 'static {
    /// Carries one out.
    fn perform(&self, task: Task, order: Order, run: Run) -> BoxFuture<'static, Done>;
}

/// Why a submission is not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejection {
    /// The id names something else.
    #[error("{0}")]
    Conflict(Conflict),
    /// Nothing can be written now.
    #[error("{0}")]
    Store(#[from] StoreError),
    /// The sidecar is ending.
    #[error("the sidecar is ending: submit the task again when it is back")]
    Ending,
}

/// The engine.
pub struct Engine {
    store: Store,
    ledger: Arc<Ledger>,
    tasks: Arc<dyn Perform>,
    locks: Arc<Locks>,
    slots: Slots,
    metrics: Arc<Metrics>,
    end: CancellationToken,
    tracker: TaskTracker,
    upload_deadline: Duration,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").finish_non_exhaustive()
    }
}

impl Engine {
    /// An engine that keeps its tasks in this store.
    pub fn new(
        ledger: Arc<Ledger>,
        tasks: Arc<dyn Perform>,
        locks: Arc<Locks>,
        metrics: Arc<Metrics>,
        upload_deadline: Duration,
    ) -> Arc<Self> {
        Arc::new(Self {
            store: ledger.store().clone(),
            ledger,
            tasks,
            locks,
            slots: Slots::default(),
            metrics,
            end: CancellationToken::new(),
            tracker: TaskTracker::new(),
            upload_deadline,
        })
    }

    /// Accepts a task and sees to it. Goes on to its end even if whoever asked has gone: a task that
    /// is written is also begun.
    pub async fn submit(self: &Arc<Self>, incoming: Incoming) -> Result<(), Rejection> {
        let engine = Arc::clone(self);
        let accepting = tokio::spawn(async move { engine.accept(incoming).await });
        accepting.await.unwrap_or(Err(Rejection::Ending))
    }

    async fn accept(self: Arc<Self>, incoming: Incoming) -> Result<(), Rejection> {
        let mut registry = self.ledger.lock().await;
        if self.end.is_cancelled() {
            return Err(Rejection::Ending);
        }
        let at_work = registry.is_at_work(&incoming.id);
        match self.store.submit(incoming.clone(), at_work).await? {
            Verdict::Same => Ok(()),
            Verdict::Conflict(conflict) => Err(Rejection::Conflict(conflict)),
            Verdict::Start { run } => {
                self.metrics.submitted(incoming.type_);
                let user = incoming.by.as_deref().unwrap_or("-");
                tracing::info!(id = incoming.id, r#type = %incoming.type_, run, user, "task accepted");
                let task = begun(incoming, run);
                self.begin(&mut registry, task);
                Ok(())
            }
        }
    }

    /// Registers a task and lets it run.
    fn begin(self: &Arc<Self>, registry: &mut ledger::Registry<'_>, task: TaskResult) {
        let ticket = registry.register(&task, self.end.child_token());
        let engine = Arc::clone(self);
        self.tracker
            .spawn(async move { engine.carry_out(task, ticket).await });
    }

    /// Cancels a task that runs and forgets it; says whether there was one.
    pub async fn delete(self: &Arc<Self>, id: &str) -> Result<bool, StoreError> {
        let (engine, id) = (Arc::clone(self), id.to_owned());
        let deleting = tokio::spawn(async move { engine.forget(&id).await });
        deleting.await.unwrap_or(Err(StoreError::Closed))
    }

    async fn forget(&self, id: &str) -> Result<bool, StoreError> {
        let ended = self.ledger.lock().await.cancel(id);
        if let Some(ended) = ended {
            let waited = timeout(DELETE_GRACE, ended.cancelled()).await;
            if waited.is_err() {
                tracing::warn!(id, "the task is deleted though its work has not ended yet");
            }
        }
        let mut registry = self.ledger.lock().await;
        let existed = self.store.delete(id).await?;
        registry.remove(id);
        if existed {
            tracing::info!(id, "task deleted");
        }
        Ok(existed)
    }

    /// One task, with how far it is where it runs.
    pub async fn get(&self, id: &str) -> Result<Option<TaskResult>, StoreError> {
        let found = self.store.get(id).await?;
        Ok(match found {
            Some(task) => self.with_progress(vec![task]).pop(),
            None => None,
        })
    }

    /// The latest tasks, newest first.
    pub async fn list(&self, limit: usize) -> Result<Vec<TaskResult>, StoreError> {
        let tasks = self.store.list(limit).await?;
        Ok(self.with_progress(tasks))
    }

    fn with_progress(&self, mut tasks: Vec<TaskResult>) -> Vec<TaskResult> {
        for task in &mut tasks {
            if task.status == TaskStatus::Running {
                task.result = self.ledger.progress(&task.id);
            }
        }
        tasks
    }

    /// Takes up what the last sidecar left: first the holds, then the gate decides for itself, then
    /// everything else. To be called before anyone may submit.
    pub async fn recover(self: &Arc<Self>, gate: &Arc<Gate>) -> Result<(), StoreError> {
        let mut rows = self.store.running().await?;
        let holds = recover::holds(&rows);
        for hold in &holds {
            self.hold_now(hold.clone()).await?;
        }
        if !holds.is_empty() {
            rows = self.store.running().await?;
        }
        let latest = self.store.latest(TaskType::MarkNotReady).await;
        let hold = match &latest {
            Ok(Some(hold)) => Hold::At(hold.submitted_at),
            Ok(None) => Hold::Never,
            Err(_) => Hold::Unknown,
        };
        self.approve_again(gate, &rows, hold).await;
        for step in recover::recover(rows, hold) {
            match step {
                Step::Fail { mut task, why } => {
                    tracing::warn!(id = task.id, r#type = task.type_, why, "task cannot go on");
                    task.status = TaskStatus::Failed;
                    task.error = why.to_owned();
                    task.completed_at = Some(Timestamp::now());
                    self.store.finish(task).await?;
                }
                Step::Resume(task) => {
                    tracing::info!(
                        id = task.id,
                        r#type = task.type_,
                        run = task.run,
                        "task goes on"
                    );
                    let mut registry = self.ledger.lock().await;
                    self.begin(&mut registry, task);
                }
            }
        }
        Ok(())
    }

    /// A hold that was stranded is carried out before anything else may open the gate.
    async fn hold_now(self: &Arc<Self>, task: TaskResult) -> Result<(), StoreError> {
        let ticket = {
            let mut registry = self.ledger.lock().await;
            registry.register(&task, self.end.child_token())
        };
        Arc::clone(self).carry_out(task, ticket).await;
        Ok(())
    }

    async fn approve_again(&self, gate: &Arc<Gate>, rows: &[TaskResult], hold: Hold) {
        let evidence = Evidence {
            held_since: hold,
            unfinished: rows
                .iter()
                .filter_map(|row| Task::type_of(&row.type_))
                .find(|type_| policy::of(*type_).effect == policy::Effect::Closes),
        };
        let gate = Arc::clone(gate);
        let approved = tokio::task::spawn_blocking(move || gate.restore(&evidence)).await;
        match approved {
            Ok(Ok(())) => {
                tracing::info!("the gate is open: the approval on the volume still holds")
            }
            Ok(Err(Reason::NoRecord)) => {
                tracing::info!("the gate is closed: nothing was approved yet")
            }
            Ok(Err(reason)) => tracing::info!(%reason, "the gate is closed"),
            Err(error) => {
                tracing::error!(%error, "the gate is closed: looking at the approval failed")
            }
        }
    }

    /// Tells every task to stop, and waits until they have, or until time is up; says whether all did.
    pub async fn drain(&self, limit: Duration) -> bool {
        self.end.cancel();
        self.tracker.close();
        timeout(limit, self.tracker.wait()).await.is_ok()
    }
}

fn begun(incoming: Incoming, run: u32) -> TaskResult {
    TaskResult {
        id: incoming.id,
        type_: incoming.type_.to_string(),
        status: TaskStatus::Running,
        run,
        params: incoming.params,
        result: None,
        error: String::new(),
        submitted_by: incoming.by,
        submitted_at: incoming.at,
        completed_at: None,
    }
}
