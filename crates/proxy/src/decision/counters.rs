//! What an engine has done, in numbers that only grow.
//!
//! One [`Counters`] per engine, so per API. Gauges (entries, bytes, breaker) are asked of the engine
//! itself; names, labels and the text format are the metrics layer's.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// One more.
    pub(super) fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// How many so far.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of one engine.
#[derive(Debug, Default)]
pub struct Counters {
    /// Decisions from a remembered answer in its lifetime.
    pub hits: Counter,
    /// Decisions that had no such answer, however they ended.
    pub misses: Counter,
    /// Misses that joined a review already on its way.
    pub coalesced: Counter,
    /// Answers pushed out, or not let in, for want of room.
    pub evictions: Counter,
    /// Reviews begun ahead of the end of an answer in use.
    pub refreshes: Counter,
    /// Decisions from an answer past its end while the API server was down.
    pub stale: Counter,
    /// Calls made to the API server, retries and probes included.
    pub calls: Counter,
    /// Calls that failed for reasons of infrastructure.
    pub failures: Counter,
    /// How often the breaker has opened.
    pub opened: Counter,
    /// Misses refused because the breaker was open.
    pub unavailable: Counter,
    /// Misses refused because too many waited.
    pub overloaded: Counter,
    /// Misses refused because their source had caused too many reviews.
    pub throttled: Counter,
    /// Misses refused because the token itself said it was over.
    pub expired: Counter,
}
