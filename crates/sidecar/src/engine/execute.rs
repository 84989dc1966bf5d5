//! One run of a task, from its locks to its row.

use super::ledger::{Ticket, pace};
use super::locks::Held;
use super::policy::{self, Class, Deadline, Lock};
use super::{Engine, Order};
use crate::work::{Done, Run, Trouble};
use jiff::Timestamp;
use keelson_wire::{Failure, Task, TaskResult, TaskStatus, TaskType, UploadOutcome};
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinHandle};
use tokio::time::{sleep, timeout};

/// Tasks that work at once. More than a disk and a network can serve anyway.
const WORKERS: usize = 8;
/// Tasks that wait at once.
const WATCHERS: usize = 64;
/// How long a task that is told to stop may take to do so.
const STOP_GRACE: Duration = Duration::from_secs(10);
/// How often the log says how far a task is.
const TELL_EVERY: Duration = Duration::from_secs(30);

/// Room for tasks to run.
#[derive(Debug)]
pub(super) struct Slots {
    work: Arc<Semaphore>,
    watch: Arc<Semaphore>,
}

impl Default for Slots {
    fn default() -> Self {
        Self {
            work: Arc::new(Semaphore::new(WORKERS)),
            watch: Arc::new(Semaphore::new(WATCHERS)),
        }
    }
}

/// How a run ended.
enum Ending {
    /// By itself.
    Done(Done),
    /// It was given something it cannot read.
    Refused(String),
    /// It panicked.
    Panicked(String),
    /// Its time was up.
    Late(Duration),
    /// It was told to stop.
    Stopped,
}

impl Engine {
    /// Carries a task out and records what came of it.
    pub(super) async fn carry_out(self: Arc<Self>, mut task: TaskResult, ticket: Ticket) {
        let ending = self.work_on(&task, &ticket).await;
        let stopped = match &ending {
            Ending::Stopped => true,
            Ending::Done(done) => done.is_err() && ticket.cancel.is_cancelled(),
            _ => false,
        };
        if stopped {
            tracing::info!(
                id = task.id,
                r#type = task.type_,
                run = task.run,
                "task stopped"
            );
            self.ledger.lock().await.retire(&task.id, &ticket);
        } else {
            settle(&mut task, ending);
            self.record(task, &ticket).await;
        }
        ticket.ended.cancel();
    }

    async fn work_on(&self, task: &TaskResult, ticket: &Ticket) -> Ending {
        let Some(type_) = Task::type_of(&task.type_) else {
            return Ending::Refused(super::recover::NO_HANDLER.to_owned());
        };
        let asked = match Task::decode(type_, &task.params) {
            Some(Ok(asked)) => asked,
            Some(Err(bad)) => return Ending::Refused(bad.to_string()),
            None => return Ending::Refused(super::recover::NO_HANDLER.to_owned()),
        };
        if let Err(invalid) = asked.check() {
            return Ending::Refused(invalid.to_string());
        }
        let policy = policy::of(type_);
        let held = tokio::select! {
            biased;
            () = ticket.cancel.cancelled() => return Ending::Stopped,
            held = self.room_for(policy, ticket) => held,
        };
        ticket.waits_for(None);
        tracing::info!(
            id = task.id,
            r#type = task.type_,
            run = task.run,
            "task begins"
        );
        let begun = Instant::now();
        let ending = self.perform(asked, task, ticket, policy.deadline).await;
        drop(held);
        match &ending {
            Ending::Done(done) if !(done.is_err() && ticket.cancel.is_cancelled()) => {
                self.metrics.executed(type_, done.is_ok(), begun.elapsed());
            }
            Ending::Late(_) => self.metrics.executed(type_, false, begun.elapsed()),
            Ending::Panicked(_) => self.metrics.panicked(type_),
            _ => {}
        }
        ending
    }

    /// Waits for what the task needs for itself, and then for room. Who waits for a lock takes no
    /// room from others.
    async fn room_for(
        &self,
        policy: policy::Policy,
        ticket: &Ticket,
    ) -> (Vec<Held>, Option<OwnedSemaphorePermit>) {
        let mut locks = Vec::with_capacity(policy.locks.len());
        for lock in policy.locks {
            ticket.waits_for(Some(match lock {
                Lock::Data => "a task that has the data folder",
                Lock::Configuration => "a task that has the configuration files",
                Lock::Process => "a task that has the process of seid",
                Lock::Upload => "an upload that is at work",
            }));
            locks.push(self.locks.take(*lock).await);
        }
        let slots = match policy.class {
            Class::Gate => return (locks, None),
            Class::Work => &self.slots.work,
            Class::Watch => &self.slots.watch,
        };
        ticket.waits_for(Some("other tasks to end"));
        // A semaphore that is never closed always has a permit in the end.
        let slot = Arc::clone(slots).acquire_owned().await.ok();
        (locks, slot)
    }

    async fn perform(
        &self,
        asked: Task,
        task: &TaskResult,
        ticket: &Ticket,
        deadline: Deadline,
    ) -> Ending {
        let order = Order {
            id: task.id.clone(),
            submitted_at: task.submitted_at,
        };
        // A child: a deadline stops the work without looking like a deletion.
        let run = Run {
            cancel: ticket.cancel.child_token(),
            progress: ticket.progress.clone(),
        };
        let stop = run.cancel.clone();
        // On a task of its own, so that a panic ends it and nothing else.
        let mut work = tokio::spawn(self.tasks.perform(asked, order, run));
        let limit = match deadline {
            Deadline::After(limit) => Some(limit),
            Deadline::Upload => Some(self.upload_deadline),
            Deadline::Never => None,
        };
        let time_up = async {
            match limit {
                Some(limit) => sleep(limit).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            done = &mut work => return ended(done),
            () = tell(task, ticket) => unreachable!("telling never ends"),
            () = ticket.cancel.cancelled() => {}
            () = time_up => {
                stop.cancel();
                let _ = stop_work(work).await;
                return Ending::Late(limit.unwrap_or_default());
            }
        }
        stop_work(work).await.unwrap_or(Ending::Stopped)
    }

    /// Writes what came of a task, and goes on trying while the store refuses: what was done must not
    /// be done again only because it could not be written down at once.
    async fn record(&self, task: TaskResult, ticket: &Ticket) {
        let mut pause = Duration::from_millis(200);
        loop {
            let mut registry = self.ledger.lock().await;
            if !registry.is_current(&task.id, ticket) {
                return;
            }
            match self.store.finish(task.clone()).await {
                Ok(_) => {
                    registry.retire(&task.id, ticket);
                    tell_end(&task);
                    return;
                }
                Err(error) => {
                    tracing::error!(id = task.id, %error, "what came of the task cannot be written yet");
                }
            }
            drop(registry);
            tokio::select! {
                () = ticket.cancel.cancelled() => {
                    self.ledger.lock().await.retire(&task.id, ticket);
                    return;
                }
                () = sleep(pause) => pause = (pause * 2).min(Duration::from_secs(5)),
            }
        }
    }
}

fn tell_end(task: &TaskResult) {
    let (id, type_, run) = (&task.id, &task.type_, task.run);
    match task.status {
        TaskStatus::Failed => {
            tracing::warn!(id, r#type = type_, run, error = task.error, "task failed");
        }
        _ => tracing::info!(id, r#type = type_, run, "task completed"),
    }
}

/// Waits for work that was told to stop, and ends it where it does not listen.
async fn stop_work(mut work: JoinHandle<Done>) -> Option<Ending> {
    match timeout(STOP_GRACE, &mut work).await {
        Ok(done) => Some(ended(done)),
        Err(_) => {
            work.abort();
            let _ = work.await;
            None
        }
    }
}

fn ended(done: Result<Done, JoinError>) -> Ending {
    let panic = match done {
        Ok(done) => return Ending::Done(done),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => panic,
            Err(_) => return Ending::Stopped,
        },
    };
    let text = panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned());
    Ending::Panicked(text.unwrap_or_else(|| "without a word".into()))
}

/// Says in the log how far a task is, every so often, for ever.
async fn tell(task: &TaskResult, ticket: &Ticket) {
    let begun = Instant::now();
    loop {
        sleep(TELL_EVERY).await;
        let amount = ticket.progress.amount();
        let elapsed = ticket.progress.elapsed(begun);
        let counted = (amount != Default::default()).then(|| pace(amount, elapsed));
        if let Some(progress) = ticket.progress.seen().or(counted) {
            let progress = progress.to_string();
            tracing::info!(id = task.id, r#type = task.type_, progress, "task goes on");
        }
    }
}

/// What a row says of an ending.
fn settle(task: &mut TaskResult, ending: Ending) {
    task.completed_at = Some(Timestamp::now());
    task.status = TaskStatus::Failed;
    match ending {
        Ending::Done(Ok(result)) => {
            task.status = TaskStatus::Completed;
            task.result = result;
        }
        Ending::Done(Err(trouble)) => {
            task.result = failure(&trouble);
            task.error = trouble.to_string();
        }
        Ending::Refused(problem) => task.error = problem,
        Ending::Panicked(text) => task.error = format!("task handler panicked: {text}"),
        Ending::Late(limit) => {
            let (type_, seconds) = (&task.type_, limit.as_secs());
            task.error = format!("{type_}: deadline exceeded: it was not done within {seconds} s");
        }
        // Stopped tasks leave their row as it is and never come here.
        Ending::Stopped => {}
    }
    if task.status == TaskStatus::Failed && task.type_ == TaskType::SnapshotUploadOnce.as_str() {
        // Who reads outcomes finds one, in whatever way it failed.
        let result = task.result.get_or_insert_with(|| json!({}));
        result["outcome"] = json!(UploadOutcome::Error);
    }
}

fn failure(trouble: &Trouble) -> Option<serde_json::Value> {
    let failure = Failure {
        retryable: trouble.retryable,
        operation: trouble.operation.to_owned(),
    };
    serde_json::to_value(failure).ok()
}
