//! Reviews on their way: at most one for each key, and everybody else waits for it.
//!
//! A [`Flight`] belongs to the task that runs the review, not to the caller who caused it: callers
//! come and go through an [`Arrival`]. A flight that is dropped without an outcome, because its
//! task panicked or the runtime ends, tells its waiters so. What flies is not known here.

use super::Key;
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tokio::sync::watch;

type Line<T> = Arc<watch::Sender<Option<T>>>;

pub(super) struct Flights<K, T> {
    lines: Mutex<HashMap<K, Line<T>>>,
    waiters: usize,
}

/// What a caller who wants to fly meets.
pub(super) enum Boarding<K: Key, T> {
    /// A flight on its way, with a place on it.
    Joined(Arrival<T>),
    /// A flight that the caller must run.
    Departing(Arrival<T>, Flight<K, T>),
    /// The outcome, without a flight.
    Spared(T),
    /// A flight on its way, and no place on it.
    Full,
}

impl<K: Key, T: Clone> Flights<K, T> {
    pub(super) fn new(waiters: usize) -> Arc<Self> {
        Arc::new(Flights {
            lines: Mutex::default(),
            waiters,
        })
    }

    /// A seat on the flight for this key. If there is none, `spare` is told how many there are for
    /// other keys and may give the outcome without another.
    pub(super) fn board(
        self: &Arc<Self>,
        key: &K,
        spare: impl FnOnce(usize) -> Option<T>,
    ) -> Boarding<K, T> {
        let mut lines = self.lock();
        if let Some(line) = lines.get(key) {
            if line.receiver_count() >= self.waiters {
                return Boarding::Full;
            }
            return Boarding::Joined(Arrival(line.subscribe()));
        }
        if let Some(outcome) = spare(lines.len()) {
            return Boarding::Spared(outcome);
        }
        let (line, arrival) = watch::channel(None);
        let flight = self.take_off(&mut lines, key, line);
        Boarding::Departing(Arrival(arrival), flight)
    }

    /// A flight nobody waits for yet; none if there is one already.
    pub(super) fn depart_empty(self: &Arc<Self>, key: &K) -> Option<Flight<K, T>> {
        let mut lines = self.lock();
        if lines.contains_key(key) {
            return None;
        }
        Some(self.take_off(&mut lines, key, watch::Sender::new(None)))
    }

    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn take_off(
        self: &Arc<Self>,
        lines: &mut HashMap<K, Line<T>>,
        key: &K,
        line: watch::Sender<Option<T>>,
    ) -> Flight<K, T> {
        let line = Arc::new(line);
        lines.insert(key.clone(), line.clone());
        Flight {
            flights: self.clone(),
            key: key.clone(),
            line: Some(line),
        }
    }
}

impl<K, T> Flights<K, T> {
    /// Nothing is left half done under this lock, so a panic elsewhere does not spoil it.
    fn lock(&self) -> MutexGuard<'_, HashMap<K, Line<T>>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The one review for a key.
pub(super) struct Flight<K: Key, T> {
    flights: Arc<Flights<K, T>>,
    key: K,
    /// None once it has landed.
    line: Option<Line<T>>,
}

impl<K: Key, T> Flight<K, T> {
    pub(super) fn key(&self) -> &K {
        &self.key
    }

    /// Tells everybody who waits. From here on the key can fly again.
    pub(super) fn land(mut self, outcome: T) {
        if let Some(line) = self.leave() {
            line.send_replace(Some(outcome));
        }
    }

    /// Only once: afterwards there may be another flight for the key.
    fn leave(&mut self) -> Option<Line<T>> {
        let line = self.line.take()?;
        self.flights.lock().remove(&self.key);
        Some(line)
    }
}

impl<K: Key, T> Drop for Flight<K, T> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A caller's place. Dropping it gives it back and leaves the flight alone.
pub(super) struct Arrival<T>(watch::Receiver<Option<T>>);

impl<T: Clone> Arrival<T> {
    /// The outcome; none if the flight was lost.
    pub(super) async fn outcome(mut self) -> Option<T> {
        let outcome = self.0.wait_for(Option::is_some).await.ok()?;
        outcome.clone()
    }
}
