//! Which key is looked at when. Pure: time is told, nothing waits.
//!
//! A key is ready, or being looked at, or neither; beside that it may have one time at which it
//! becomes ready. A key that becomes ready while it is looked at is ready again afterwards.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::Hash;
use tokio::time::Instant;

/// The keys and where each of them is.
#[derive(Debug)]
pub(super) struct Schedule<K> {
    /// In the order they became ready. Who is not among `is_ready` was taken from the other one.
    ready: VecDeque<K>,
    /// Those to take before all of these.
    first: VecDeque<K>,
    is_ready: HashSet<K>,
    /// Being looked at, and whether to look once more afterwards.
    working: HashMap<K, Again>,
    /// The earliest time asked for, for each key that has one; and the same by time.
    due: HashMap<K, Instant>,
    by_time: BTreeSet<(Instant, K)>,
}

/// Whether to look at a key once more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Again {
    No,
    Last,
    First,
}

impl<K> Default for Schedule<K> {
    fn default() -> Self {
        Self {
            ready: VecDeque::new(),
            first: VecDeque::new(),
            is_ready: HashSet::new(),
            working: HashMap::new(),
            due: HashMap::new(),
            by_time: BTreeSet::new(),
        }
    }
}

impl<K: Clone + Eq + Hash + Ord> Schedule<K> {
    pub(super) fn add(&mut self, key: K) {
        if let Some(again) = self.working.get_mut(&key) {
            *again = (*again).max(Again::Last);
        } else if self.is_ready.insert(key.clone()) {
            self.ready.push_back(key);
        }
    }

    /// The same, before all that were merely added.
    pub(super) fn add_first(&mut self, key: K) {
        if let Some(again) = self.working.get_mut(&key) {
            *again = Again::First;
        } else {
            self.is_ready.insert(key.clone());
            self.first.push_back(key);
        }
    }

    /// A time for a key. One that has come already is not the earliest of those to come.
    pub(super) fn add_at(&mut self, key: K, at: Instant, now: Instant) {
        self.ripen(now);
        if let Some(known) = self.due.get(&key) {
            if *known <= at {
                return;
            }
            self.by_time.remove(&(*known, key.clone()));
        }
        self.due.insert(key.clone(), at);
        self.by_time.insert((at, key));
    }

    /// Keys whose time has come are ready.
    fn ripen(&mut self, now: Instant) {
        while self.by_time.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, key)) = self.by_time.pop_first() {
                self.due.remove(&key);
                self.add(key);
            }
        }
    }

    /// The next key to look at, if one is ready.
    pub(super) fn take(&mut self, now: Instant) -> Option<K> {
        self.ripen(now);
        loop {
            let next = self.first.pop_front();
            let key = next.or_else(|| self.ready.pop_front())?;
            if self.is_ready.remove(&key) {
                self.working.insert(key.clone(), Again::No);
                return Some(key);
            }
        }
    }

    /// A look has ended, and wants another at this time.
    pub(super) fn done(&mut self, key: K, again_at: Option<Instant>, now: Instant) {
        let again = self.working.remove(&key).unwrap_or(Again::No);
        if let Some(at) = again_at {
            self.add_at(key.clone(), at, now);
        }
        match again {
            Again::No => {}
            Again::Last => self.add(key),
            Again::First => self.add_first(key),
        }
    }

    pub(super) fn next_due(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }

    pub(super) fn ready(&mut self, now: Instant) -> usize {
        self.ripen(now);
        self.is_ready.len()
    }

    pub(super) fn waiting(&mut self, now: Instant) -> usize {
        self.ripen(now);
        self.by_time.len()
    }

    pub(super) fn working(&self) -> usize {
        self.working.len()
    }
}
