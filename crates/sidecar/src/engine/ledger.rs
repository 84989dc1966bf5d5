//! Which tasks are at work, and how far they are.
//!
//! Whoever changes what is at work or what is written of it takes the ledger's turn first
//! ([`Ledger::lock`]): looking, writing and registering are one. Reading how far tasks are takes no
//! turn, so that a slow disk does not keep anyone from looking.

use crate::store::{Store, StoreError};
use crate::work::Progress;
use keelson_wire::{TaskResult, TaskType};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::MutexGuard as Turn;
use tokio_util::sync::CancellationToken;

/// Tasks at work, over the store that remembers them.
#[derive(Debug)]
pub struct Ledger {
    store: Store,
    turn: tokio::sync::Mutex<()>,
    entries: Mutex<HashMap<String, Entry>>,
    generations: AtomicU64,
}

#[derive(Clone, Debug)]
struct Entry {
    generation: u64,
    type_: String,
    ticket: Ticket,
}

/// What the engine has in hand of a task at work.
#[derive(Clone, Debug)]
pub(super) struct Ticket {
    /// Unlike any other of this process: a late end of one run never touches the next.
    pub(super) generation: u64,
    /// Cancelled by deletion and by the sidecar's end.
    pub(super) cancel: CancellationToken,
    /// Cancelled when the work has ended.
    pub(super) ended: CancellationToken,
    /// How far the work is.
    pub(super) progress: Progress,
    /// What it waits for, before it is at work; and since when.
    pub(super) stage: Arc<Mutex<(Option<&'static str>, Instant)>>,
}

impl Ticket {
    /// Says what the task waits for now, or that it waits no more.
    pub(super) fn waits_for(&self, what: Option<&'static str>) {
        *lock(&self.stage) = (what, Instant::now());
    }

    /// What it waits for, or how far it is.
    fn shown(&self) -> Option<Value> {
        let (waiting, since) = *lock(&self.stage);
        if let Some(what) = waiting {
            let seconds = since.elapsed().as_secs();
            return Some(json!({ "waitingFor": what, "seconds": seconds }));
        }
        let (amount, elapsed) = (self.progress.amount(), self.progress.elapsed(since));
        let counted = (amount != Default::default()).then(|| pace(amount, elapsed));
        let mut shown = serde_json::Map::new();
        if let Some(progress) = self.progress.seen().or(counted) {
            shown.insert("progress".into(), progress);
        }
        if let Some(last) = self.progress.last() {
            shown.insert("last".into(), last);
        }
        (!shown.is_empty()).then_some(Value::Object(shown))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Ledger {
    /// An empty ledger over a store.
    pub fn new(store: Store) -> Arc<Self> {
        Arc::new(Self {
            store,
            turn: tokio::sync::Mutex::default(),
            entries: Mutex::default(),
            generations: AtomicU64::new(1),
        })
    }

    /// The store.
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Waits for the turn.
    pub(super) async fn lock(&self) -> Registry<'_> {
        Registry {
            _turn: self.turn.lock().await,
            ledger: self,
        }
    }

    /// Forgets every task of a type and cancels those at work; none of them writes anything any
    /// more. Waits on the calling thread, which must not be one that serves.
    pub fn purge_blocking(&self, type_: TaskType) -> Result<usize, StoreError> {
        let _turn = self.turn.blocking_lock();
        let purged = self.store.purge_blocking(type_)?;
        lock(&self.entries).retain(|_, entry| {
            let stays = entry.type_ != type_.as_str();
            if !stays {
                entry.ticket.cancel.cancel();
            }
            stays
        });
        Ok(purged)
    }

    /// What a task that runs shows as its result: what it waits for, or how far it is.
    pub(super) fn progress(&self, id: &str) -> Option<Value> {
        let ticket = lock(&self.entries).get(id)?.ticket.clone();
        ticket.shown()
    }

    /// Running tasks by type, with the bytes they have done and have to do.
    pub(crate) fn by_type(&self) -> HashMap<String, (u64, crate::work::Amount)> {
        let mut sums: HashMap<String, (u64, crate::work::Amount)> = HashMap::new();
        for entry in lock(&self.entries).values() {
            let (count, sum) = sums.entry(entry.type_.clone()).or_default();
            let amount = entry.ticket.progress.amount();
            *count += 1;
            sum.bytes += amount.bytes;
            if let Some(total) = amount.total {
                sum.total = Some(sum.total.unwrap_or_default() + total);
            }
        }
        sums
    }
}

/// The ledger, for whose turn it is.
pub(super) struct Registry<'a> {
    _turn: Turn<'a, ()>,
    ledger: &'a Ledger,
}

impl Registry<'_> {
    pub(super) fn is_at_work(&self, id: &str) -> bool {
        lock(&self.ledger.entries).contains_key(id)
    }

    pub(super) fn is_current(&self, id: &str, ticket: &Ticket) -> bool {
        let entries = lock(&self.ledger.entries);
        entries
            .get(id)
            .is_some_and(|entry| entry.generation == ticket.generation)
    }

    pub(super) fn register(&mut self, task: &TaskResult, cancel: CancellationToken) -> Ticket {
        let ticket = Ticket {
            generation: self.ledger.generations.fetch_add(1, Ordering::Relaxed),
            cancel,
            ended: CancellationToken::new(),
            progress: Progress::default(),
            stage: Arc::new(Mutex::new((None, Instant::now()))),
        };
        let entry = Entry {
            generation: ticket.generation,
            type_: task.type_.clone(),
            ticket: ticket.clone(),
        };
        lock(&self.ledger.entries).insert(task.id.clone(), entry);
        ticket
    }

    /// Takes a run out, unless the id is already another's.
    pub(super) fn retire(&mut self, id: &str, ticket: &Ticket) {
        if self.is_current(id, ticket) {
            lock(&self.ledger.entries).remove(id);
        }
    }

    /// Tells a task to stop; what comes back is cancelled when it has.
    pub(super) fn cancel(&mut self, id: &str) -> Option<CancellationToken> {
        let entries = lock(&self.ledger.entries);
        let ticket = &entries.get(id)?.ticket;
        ticket.cancel.cancel();
        Some(ticket.ended.clone())
    }

    /// Takes out whatever runs under an id.
    pub(super) fn remove(&mut self, id: &str) {
        if let Some(entry) = lock(&self.ledger.entries).remove(id) {
            entry.ticket.cancel.cancel();
        }
    }
}

/// An amount with its rate, and when it will be done at that rate.
pub(super) fn pace(amount: crate::work::Amount, elapsed: std::time::Duration) -> Value {
    let millis = u64::try_from(elapsed.as_millis())
        .unwrap_or(u64::MAX)
        .max(1);
    let rate = amount.bytes.saturating_mul(1000) / millis;
    let mut pace = json!({ "bytes": amount.bytes, "bytesPerSecond": rate });
    if let Some(total) = amount.total {
        pace["total"] = total.into();
        if let Some(eta) = total.saturating_sub(amount.bytes).checked_div(rate) {
            pace["etaSeconds"] = eta.into();
        }
    }
    pace
}
