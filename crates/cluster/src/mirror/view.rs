//! Which state of an object counts: events, lists and the answers to our own writes come in any
//! order. Pure.
//!
//! Resource versions of one type grow, so of two states of an object the one with the larger
//! version is the newer; where one is no number, the later arrival is. Whoever follows the events
//! is told of each change once, with what they were told before, whether or not a write of our own
//! was known in between.

use super::Key;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A change to tell of: before and after.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change<V> {
    pub(super) key: Key,
    pub(super) before: Option<Arc<V>>,
    pub(super) after: Option<Arc<V>>,
}

/// Which object, and which state of it.
#[derive(Debug)]
pub(super) struct State {
    pub(super) version: String,
    pub(super) uid: String,
    /// Whether it is being deleted, and something holds it.
    pub(super) leaving: bool,
}

struct Entry<V> {
    version: Option<u64>,
    /// None: we deleted it.
    value: Option<Arc<V>>,
    /// The uid of what we deleted.
    gone: Option<String>,
    /// What was told last, where that is not `value`.
    told: Option<Option<Arc<V>>>,
}

impl<V> Entry<V> {
    fn told(self) -> Option<Arc<V>> {
        self.told.unwrap_or(self.value)
    }
}

/// What is known.
pub(super) struct View<V> {
    entries: HashMap<Key, Entry<V>>,
    /// The newest version that an event spoke of.
    newest: Option<u64>,
    /// The keys of a list that is under way.
    listed: Option<HashSet<Key>>,
}

impl<V> Default for View<V> {
    fn default() -> Self {
        Self {
            entries: HashMap::new(),
            newest: None,
            listed: None,
        }
    }
}

impl<V> View<V> {
    pub(super) fn get(&self, key: &Key) -> Option<Arc<V>> {
        self.entries.get(key)?.value.clone()
    }

    pub(super) fn all(&self) -> Vec<(Key, Arc<V>)> {
        let known = self.entries.iter();
        known
            .filter_map(|(key, entry)| Some((key.clone(), entry.value.clone()?)))
            .collect()
    }

    pub(super) fn len(&self) -> usize {
        let known = self.entries.values();
        known.filter(|entry| entry.value.is_some()).count()
    }

    /// The answer to a write of our own.
    pub(super) fn note(&mut self, key: Key, version: &str, value: V) {
        let version = version.parse().ok();
        let told = match self.entries.get(&key) {
            Some(known) if newer(known.version, version) => return,
            // Events have got further than this write and do not know the object: it is deleted.
            None if self.listed.is_none() && reached(self.newest, version) => return,
            Some(known) => known.told.clone().unwrap_or_else(|| known.value.clone()),
            None => None,
        };
        let entry = Entry {
            version,
            value: Some(Arc::new(value)),
            gone: None,
            told: Some(told),
        };
        self.entries.insert(key, entry);
    }

    /// A delete of our own.
    pub(super) fn gone(&mut self, key: &Key, uid: &str) {
        if let Some(entry) = self.entries.get_mut(key) {
            entry.gone = Some(uid.to_owned());
            let value = entry.value.take();
            entry.told.get_or_insert(value);
        }
    }

    /// An event: the object is now this, or is gone or not worth keeping.
    pub(super) fn event(
        &mut self,
        key: Key,
        state: &State,
        value: Option<V>,
        exists: bool,
    ) -> Option<Change<V>> {
        let version: Option<u64> = state.version.parse().ok();
        self.newest = self.newest.max(version);
        if exists && let Some(listed) = &mut self.listed {
            listed.insert(key.clone());
        }
        if let Some(known) = self.entries.get(&key)
            && (newer(known.version, version) || exists && deleted(known, state))
        {
            return None;
        }
        let before = self.entries.remove(&key).and_then(Entry::told);
        let after = value.map(Arc::new);
        if let Some(after) = &after {
            let entry = Entry {
                version,
                value: Some(after.clone()),
                gone: None,
                told: None,
            };
            self.entries.insert(key.clone(), entry);
        }
        change(key, before, after)
    }

    /// The server says that events are complete up to here.
    pub(super) fn reached(&mut self, version: &str) {
        self.newest = self.newest.max(version.parse().ok());
    }

    /// A list begins; its objects come as events.
    pub(super) fn list(&mut self) {
        self.listed = Some(HashSet::new());
    }

    /// The list was complete at this version: what it did not mention is gone, but for what we
    /// wrote later.
    pub(super) fn listed(&mut self, version: &str) -> Vec<Change<V>> {
        let version = version.parse().ok();
        self.newest = self.newest.max(version);
        let listed = self.listed.take().unwrap_or_default();
        let vanished: Vec<Key> = self
            .entries
            .iter()
            .filter(|(key, entry)| !listed.contains(*key) && !newer(entry.version, version))
            .map(|(key, _)| key.clone())
            .collect();
        vanished
            .into_iter()
            .filter_map(|key| {
                let before = self.entries.remove(&key)?.told();
                change(key, before, None)
            })
            .collect()
    }
}

fn change<V>(key: Key, before: Option<Arc<V>>, after: Option<Arc<V>>) -> Option<Change<V>> {
    (before.is_some() || after.is_some()).then_some(Change { key, before, after })
}

/// Whether what is known is certainly newer than what comes.
fn newer(known: Option<u64>, comes: Option<u64>) -> bool {
    matches!((known, comes), (Some(known), Some(comes)) if known > comes)
}

/// Whether events have certainly got to this version.
fn reached(newest: Option<u64>, version: Option<u64>) -> bool {
    matches!((newest, version), (Some(newest), Some(version)) if newest >= version)
}

/// Whether this is the object that we deleted, as it was before: somebody may have written it between the
/// last state we saw and our delete.
fn deleted<V>(known: &Entry<V>, comes: &State) -> bool {
    known.gone.as_ref() == Some(&comes.uid) && !comes.leaving
}

#[cfg(test)]
mod tests;
