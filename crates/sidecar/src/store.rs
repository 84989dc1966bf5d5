//! Tasks on disk: `<home>/sidecar.db`, the original's file with the original's columns, so that
//! either sidecar may open what the other left.
//!
//! One connection on a thread of its own does all reading and writing, one job after the other; what
//! is asked of it comes back through a channel. What is to be written is decided elsewhere
//! ([`crate::engine`]); here it is only made durable. Writes are synchronous to the disk
//! (`synchronous=FULL`; the original's `NORMAL` may lose the last transactions of a write-ahead log
//! in a power cut): a submission that was answered with 201 must not be forgotten, because its caller
//! will not send it again.

mod error;
mod row;
mod schema;
mod write;

pub use error::{OpenError, StoreError};
pub use row::{Incoming, time_text};
pub use schema::VERSION;
pub use write::KEEP;

use crate::engine::decide::Verdict;
use keelson_wire::{TaskResult, TaskType};
use rusqlite::Connection;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use tokio::sync::oneshot;

type Job = Box<dyn FnOnce(&mut Connection) + Send>;

enum Message {
    Do(Job),
    Stop,
}

/// The store; clones are the same one.
#[derive(Clone)]
pub struct Store {
    messages: mpsc::Sender<Message>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Store")
    }
}

impl Store {
    /// Opens the store, brings an older one up to date, and forgets what is too old.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let mut connection = schema::open(path)?;
        let (messages, inbox) = mpsc::channel();
        let work = move || {
            while let Ok(Message::Do(job)) = inbox.recv() {
                job(&mut connection);
            }
            // Closing brings the log back into the file; failing to is no loss.
            let _ = connection.close();
        };
        let thread = std::thread::Builder::new()
            .name("store".into())
            .spawn(work)
            .map_err(|error| OpenError::no_thread(path, &error))?;
        Ok(Self {
            messages,
            thread: Arc::new(Mutex::new(Some(thread))),
        })
    }

    /// Finishes what was asked, closes the file, and refuses from then on.
    pub fn close(&self) {
        let _ = self.messages.send(Message::Stop);
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    fn send<T: Send + 'static>(
        &self,
        doing: &'static str,
        job: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> oneshot::Receiver<Result<T, StoreError>> {
        let (answer, answered) = oneshot::channel();
        let job = Box::new(move |connection: &mut Connection| {
            let done = job(connection).map_err(|error| StoreError::failed(doing, &error));
            // Whoever asked may have gone; what was done is done.
            let _ = answer.send(done);
        });
        // A closed store drops the job, and with it the answer.
        let _ = self.messages.send(Message::Do(job));
        answered
    }

    async fn ask<T: Send + 'static>(
        &self,
        doing: &'static str,
        job: impl FnOnce(&mut Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let answered = self.send(doing, job).await;
        answered.unwrap_or(Err(StoreError::Closed))
    }

    /// Decides on a submission and makes the decision durable, as one.
    pub async fn submit(&self, incoming: Incoming, at_work: bool) -> Result<Verdict, StoreError> {
        self.ask("submitting a task", move |connection| {
            write::submit(connection, &incoming, at_work)
        })
        .await
    }

    /// Writes what came of a task; says whether the task was still there.
    pub async fn finish(&self, row: TaskResult) -> Result<bool, StoreError> {
        self.ask("recording a result", move |connection| {
            write::finish(connection, &row)
        })
        .await
    }

    /// One task.
    pub async fn get(&self, id: &str) -> Result<Option<TaskResult>, StoreError> {
        let id = id.to_owned();
        self.ask("reading a task", move |connection| {
            row::get(connection, &id)
        })
        .await
    }

    /// The latest tasks, newest first.
    pub async fn list(&self, limit: usize) -> Result<Vec<TaskResult>, StoreError> {
        self.ask("listing tasks", move |connection| {
            row::list(connection, limit)
        })
        .await
    }

    /// Tasks that have begun and not ended, oldest first.
    pub async fn running(&self) -> Result<Vec<TaskResult>, StoreError> {
        self.ask("listing running tasks", |connection| {
            row::running(connection)
        })
        .await
    }

    /// The newest task of a type, whatever became of it.
    pub async fn latest(&self, type_: TaskType) -> Result<Option<TaskResult>, StoreError> {
        self.ask("looking for the newest task of a type", move |connection| {
            row::latest(connection, type_.as_str())
        })
        .await
    }

    /// Forgets a task; says whether it was there.
    pub async fn delete(&self, id: &str) -> Result<bool, StoreError> {
        let id = id.to_owned();
        self.ask("deleting a task", move |connection| {
            write::delete(connection, &id)
        })
        .await
    }

    /// Forgets every task of a type. Waits on the calling thread, which must not be one that serves.
    pub fn purge_blocking(&self, type_: TaskType) -> Result<usize, StoreError> {
        let answered = self.send("purging tasks of a type", move |connection| {
            write::purge(connection, type_.as_str())
        });
        answered.blocking_recv().unwrap_or(Err(StoreError::Closed))
    }

    /// Writes a few bytes, to see whether that can be done.
    pub async fn beat(&self) -> Result<(), StoreError> {
        self.ask("writing a heartbeat", write::beat).await
    }
}
