//! A remembered answer.
//!
//! Immutable but for two marks: when a use may ask for the successor, and whether the answer may
//! still stand in for one that cannot be had. It is marked in place and never stored again, so that
//! marking cannot bring back an answer that a later review has removed.

use super::{
    Answer,
    lifetime::{Lifetime, Review},
};
use std::{
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Duration,
};
use tokio::time::Instant;

#[derive(Debug)]
pub(super) struct Entry<A> {
    pub(super) answer: A,
    pub(super) asked: Instant,
    lifetime: Lifetime,
    bytes: u64,
    /// Nanoseconds after `asked`; all ones for never.
    refresh_due: AtomicU64,
    grace_lost: AtomicBool,
}

/// The table around an entry: map, list and ghost of the cache, and the counts of the `Arc`.
const OVERHEAD: usize = 64;

/// A refresh that failed is not tried again by every request that follows.
const REFRESH_PAUSE: Duration = Duration::from_secs(1);

impl<A: Answer> Entry<A> {
    pub(super) fn new<K>(answer: A, review: Review, lifetime: Lifetime) -> Self {
        let bytes = size_of::<K>() + size_of::<Self>() + OVERHEAD + answer.bytes();
        let due = lifetime
            .refresh_from
            .map_or(u64::MAX, |from| nanos(from - review.asked));
        Entry {
            answer,
            asked: review.asked,
            lifetime,
            bytes: bytes as u64,
            refresh_due: AtomicU64::new(due),
            grace_lost: AtomicBool::new(false),
        }
    }
}

impl<A> Entry<A> {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn valid(&self, now: Instant) -> bool {
        self.lifetime.valid(now)
    }

    pub(super) fn stands_in(&self, now: Instant) -> bool {
        self.lifetime.stands_in(now) && !self.grace_lost.load(Ordering::Relaxed)
    }

    /// The API server has said something else since, if nothing usable.
    pub(super) fn lose_grace(&self) {
        self.grace_lost.store(true, Ordering::Relaxed);
    }

    /// Whether the caller is the one to ask for the successor.
    pub(super) fn claim_refresh(&self, now: Instant) -> bool {
        let due = self.refresh_due.load(Ordering::Relaxed);
        let age = nanos(now.saturating_duration_since(self.asked));
        age >= due
            && self
                .refresh_due
                .compare_exchange(
                    due,
                    age.saturating_add(nanos(REFRESH_PAUSE)),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                )
                .is_ok()
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::{Verdict, lifetime::Terms};

    struct Yes;

    impl Answer for Yes {
        fn verdict(&self) -> Verdict {
            Verdict::Positive
        }

        fn bytes(&self) -> usize {
            1000
        }
    }

    fn entry(refresh_window: f64) -> Entry<Yes> {
        let terms = Terms {
            positive_ttl: Duration::from_secs(100),
            negative_ttl: Duration::ZERO,
            refresh_window,
            stale_if_error: Duration::from_secs(100),
        };
        let now = Instant::now();
        let review = Review {
            asked: now,
            answered: now,
        };
        let lifetime = Lifetime::of(&terms, Verdict::Positive, review, None);
        Entry::new::<[u8; 32]>(Yes, review, lifetime)
    }

    #[test]
    fn one_use_in_the_window_claims_the_refresh_and_one_a_second_later_may_try_again() {
        let entry = entry(0.25);
        for (at, expected) in [
            (74_999, false),
            (75_000, true),
            (75_000, false),
            (75_999, false),
            (76_000, true),
            (76_001, false),
        ] {
            let now = entry.asked + Duration::from_millis(at);
            assert_eq!(entry.claim_refresh(now), expected, "at {at} ms");
        }
    }

    #[test]
    fn an_answer_without_a_window_is_never_refreshed() {
        let entry = entry(0.0);
        assert!(!entry.claim_refresh(entry.asked + Duration::from_secs(99)));
    }

    #[test]
    fn an_answer_that_lost_its_grace_is_good_to_its_end_and_no_longer() {
        let entry = entry(0.25);
        let [within, beyond] = [50, 150].map(|at| entry.asked + Duration::from_secs(at));
        assert!(entry.stands_in(beyond));
        entry.lose_grace();
        assert!(!entry.stands_in(beyond));
        assert!(entry.valid(within));
    }

    #[test]
    fn the_estimate_counts_the_answer_the_key_and_the_table() {
        assert!(entry(0.25).bytes() > 1000 + 32 + 64);
    }
}
