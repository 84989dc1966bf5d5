//! The remembered answers: two bounded caches, one for each verdict.
//!
//! A key is in at most one of them for longer than an instant, since storing an answer removes its
//! opposite. Which entries stay when room runs out is `quick_cache`'s policy: those used more than
//! once are not pushed out by those used once. Whether an entry may be used is the entry's word.

use super::{
    Answer, Counters, Key, Verdict,
    entry::Entry,
    settings::{Bounds, Settings},
};
use quick_cache::{DefaultHashBuilder, Lifecycle, OptionsBuilder, Weighter, sync::Cache};
use std::sync::Arc;
use tokio::time::Instant;

type Shelf<K, A> = Cache<K, Arc<Entry<A>>, Share, DefaultHashBuilder, Evictions>;

pub(super) struct Store<K, A> {
    positives: Shelf<K, A>,
    negatives: Shelf<K, A>,
}

/// Fixed, so that a machine with many processors has no smaller shards than the tests have seen.
const SHARDS: usize = 8;

impl<K: Key, A: Answer> Store<K, A> {
    pub(super) fn new(settings: &Settings, counters: &Arc<Counters>) -> Self {
        Store {
            positives: shelf(settings.positives, counters),
            negatives: shelf(settings.negatives, counters),
        }
    }

    /// The answer to give without asking, and a note that it was in use.
    pub(super) fn valid(&self, key: &K, now: Instant) -> Option<Arc<Entry<A>>> {
        let usable = |entry: &Arc<Entry<A>>| entry.valid(now);
        self.positives
            .get(key)
            .filter(usable)
            .or_else(|| self.negatives.get(key).filter(usable))
    }

    /// The last positive answer, whatever its age, unless a negative one has followed.
    pub(super) fn positive(&self, key: &K) -> Option<Arc<Entry<A>>> {
        self.positives.peek(key)
    }

    pub(super) fn forget_positive(&self, key: &K) {
        self.positives.remove(key);
    }

    pub(super) fn put(&self, key: &K, entry: &Arc<Entry<A>>, now: Instant) {
        let (home, opposite) = match entry.answer.verdict() {
            Verdict::Positive => (&self.positives, &self.negatives),
            Verdict::Negative => (&self.negatives, &self.positives),
        };
        opposite.remove(key);
        if entry.valid(now) || entry.stands_in(now) {
            home.insert(key.clone(), entry.clone());
        } else {
            home.remove(key);
        }
    }

    /// Entries and estimated bytes held, by verdict.
    pub(super) fn held(&self, verdict: Verdict) -> Bounds {
        let shelf = match verdict {
            Verdict::Positive => &self.positives,
            Verdict::Negative => &self.negatives,
        };
        Bounds {
            entries: shelf.len(),
            bytes: shelf.iter().map(|(_, entry)| entry.bytes()).sum(),
        }
    }
}

fn shelf<K: Key, A: Answer>(bounds: Bounds, counters: &Arc<Counters>) -> Shelf<K, A> {
    let entries = bounds.entries.max(1);
    let options = OptionsBuilder::new()
        .shards(SHARDS)
        .estimated_items_capacity(entries)
        .weight_capacity(bounds.bytes)
        .build()
        .expect("both capacities are set");
    let share = Share(bounds.bytes.div_ceil(entries as u64).max(1));
    Cache::with_options(
        options,
        share,
        DefaultHashBuilder::default(),
        Evictions(counters.clone()),
    )
}

/// An entry weighs its bytes, but no less than its share of the room: one bound on the weight is a
/// bound on the bytes and on the count.
#[derive(Clone)]
struct Share(u64);

impl<K, A> Weighter<K, Arc<Entry<A>>> for Share {
    fn weight(&self, _key: &K, entry: &Arc<Entry<A>>) -> u64 {
        entry.bytes().max(self.0)
    }
}

#[derive(Clone)]
struct Evictions(Arc<Counters>);

impl<K, V> Lifecycle<K, V> for Evictions {
    type RequestState = ();

    // Not `on_evict`, which is called for replaced answers too.
    fn before_evict(&self, _state: &mut (), _key: &K, _value: &mut V) {
        self.0.evictions.add();
    }
}
