//! What to look at next: many looks at once, each key by one of them, none forgotten.
//!
//! Keys come in when something happened (`add`, or `add_first` where somebody waits) or when it is
//! time (`add_after`); [`Queue::work`] looks at them. Which key waits, is due or is being looked at is
//! decided in [`schedule`]; here are the clock and the waiting. What a look does, and how long an error
//! is waited for, is the controller's.

mod schedule;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use schedule::Schedule;
use std::future::Future;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The keys to look at, shared by those who add and those who look.
pub struct Queue<K> {
    inner: Arc<Inner<K>>,
}

struct Inner<K> {
    schedule: Mutex<Schedule<K>>,
    changed: Notify,
}

impl<K> Clone for Queue<K> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
        }
    }
}

impl<K: Clone + Eq + Hash + Ord> Default for Queue<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: Clone + Eq + Hash + Ord> Queue<K> {
    /// An empty queue.
    pub fn new() -> Self {
        Self {
            inner: Arc::new(Inner {
                schedule: Mutex::new(Schedule::default()),
                changed: Notify::new(),
            }),
        }
    }

    /// Look at this key as soon as there is a free worker; once more afterwards, if it is being
    /// looked at now.
    pub fn add(&self, key: K) {
        self.schedule().add(key);
        self.inner.changed.notify_one();
    }

    /// The same, before all keys that were merely added: somebody waits for this one.
    pub fn add_first(&self, key: K) {
        self.schedule().add_first(key);
        self.inner.changed.notify_one();
    }

    /// Look at this key after a while. Of several times the earliest holds.
    pub fn add_after(&self, key: K, after: Duration) {
        let now = Instant::now();
        self.schedule().add_at(key, now + after, now);
        self.inner.changed.notify_one();
    }

    /// Looks at keys for ever, at up to `workers` of them at the same time. A look may say when to
    /// look again. All looks run in the caller's task: when this is dropped they end at once, and
    /// their keys are back in the queue.
    pub async fn work<F>(&self, workers: usize, run: impl Fn(K) -> F)
    where
        F: Future<Output = Option<Duration>>,
    {
        let mut looks = FuturesUnordered::new();
        loop {
            while looks.len() < workers.max(1) {
                let Some(key) = self.schedule().take(Instant::now()) else {
                    break;
                };
                let held = Held {
                    queue: self.clone(),
                    key: Some(key.clone()),
                };
                let look = run(key);
                looks.push(async move { held.finish(look.await) });
            }
            let free = looks.len() < workers.max(1);
            tokio::select! {
                Some(()) = looks.next(), if !looks.is_empty() => {}
                () = self.something_to_do(), if free => {}
            }
        }
    }

    /// How many keys wait for a free worker, those whose time has come included.
    pub fn len(&self) -> usize {
        self.schedule().ready(Instant::now())
    }

    /// Whether no key waits for a free worker.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many keys wait for their time.
    pub fn waiting(&self) -> usize {
        self.schedule().waiting(Instant::now())
    }

    /// How many keys are being looked at.
    pub fn working(&self) -> usize {
        self.schedule().working()
    }

    async fn something_to_do(&self) {
        let due = self.schedule().next_due();
        match due {
            Some(due) => tokio::select! {
                () = self.inner.changed.notified() => {}
                () = sleep_until(due) => {}
            },
            None => self.inner.changed.notified().await,
        }
    }

    fn schedule(&self) -> MutexGuard<'_, Schedule<K>> {
        let schedule = &self.inner.schedule;
        schedule.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A key that is being looked at. However the look ends, the queue learns of it.
struct Held<K: Clone + Eq + Hash + Ord> {
    queue: Queue<K>,
    key: Option<K>,
}

impl<K: Clone + Eq + Hash + Ord> Held<K> {
    fn finish(mut self, again: Option<Duration>) {
        if let Some(key) = self.key.take() {
            let now = Instant::now();
            let at = again.map(|after| now + after);
            self.queue.schedule().done(key, at, now);
        }
    }
}

impl<K: Clone + Eq + Hash + Ord> Drop for Held<K> {
    fn drop(&mut self) {
        if let Some(key) = self.key.take() {
            let mut schedule = self.queue.schedule();
            schedule.add(key.clone());
            schedule.done(key, None, Instant::now());
            drop(schedule);
            self.queue.inner.changed.notify_one();
        }
    }
}
