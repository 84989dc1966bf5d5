//! Everything about an engine that can be configured, with the defaults of the two there are.
//!
//! Plain values; flags and the configuration file fill them in elsewhere.

use super::{breaker, lifetime::Terms, limiter::Rate, retry};
use std::time::Duration;

/// How much a cache may hold. Both bounds hold at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// By count.
    pub entries: usize,
    /// By estimated bytes.
    pub bytes: u64,
}

/// How one engine behaves.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// How long answers live.
    pub terms: Terms,
    /// Room for answers that open the door.
    pub positives: Bounds,
    /// Room for the others: apart, so that guessing tokens pushes out nothing but other guesses.
    pub negatives: Bounds,
    /// A review that takes longer than this, waiting and retries included, has failed.
    pub deadline: Duration,
    /// Callers that may wait for one review.
    pub waiters: usize,
    /// Reviews at the API server at once.
    pub in_flight: usize,
    /// Reviews that may wait for their turn beyond those.
    pub queued: usize,
    /// Reviews one source address may cause; none for no such limit.
    pub per_source: Option<Rate>,
    /// When to stop asking.
    pub breaker: breaker::Policy,
    /// When to ask again.
    pub retry: retry::Policy,
}

const MIB: u64 = 1024 * 1024;

impl Settings {
    /// For TokenReview: two minutes, two seconds for a refusal, sources limited.
    pub fn tokens() -> Settings {
        Settings {
            terms: Terms {
                positive_ttl: Duration::from_secs(2 * 60),
                negative_ttl: Duration::from_secs(2),
                ..terms()
            },
            positives: Bounds {
                entries: 4096,
                bytes: 8 * MIB,
            },
            // A thousand new tokens at once are a gateway in front of many; a kube-rbac-proxy asks
            // five a second by default.
            per_source: Some(Rate {
                per_second: 100.0,
                burst: 1000,
            }),
            ..common()
        }
    }

    /// For SubjectAccessReview: five minutes, half a minute for a refusal. Who asks is known by
    /// then, so sources are not limited.
    pub fn access() -> Settings {
        Settings {
            terms: Terms {
                positive_ttl: Duration::from_secs(5 * 60),
                negative_ttl: Duration::from_secs(30),
                ..terms()
            },
            positives: Bounds {
                entries: 8192,
                bytes: 8 * MIB,
            },
            per_source: None,
            ..common()
        }
    }
}

fn terms() -> Terms {
    Terms {
        positive_ttl: Duration::ZERO,
        negative_ttl: Duration::ZERO,
        refresh_window: 0.25,
        stale_if_error: Duration::ZERO,
    }
}

fn common() -> Settings {
    Settings {
        terms: terms(),
        positives: Bounds {
            entries: 0,
            bytes: 0,
        },
        negatives: Bounds {
            entries: 1024,
            bytes: MIB,
        },
        deadline: Duration::from_secs(10),
        waiters: 1024,
        in_flight: 64,
        queued: 1024,
        per_source: None,
        breaker: breaker::Policy {
            failures: 3,
            probe_every: Duration::from_secs(1),
        },
        retry: retry::Policy {
            budget: Duration::from_secs(3),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_defaults_are_those_of_the_specification() {
        let seconds = Duration::from_secs;
        for (settings, positive, negative, entries) in [
            (Settings::tokens(), 120, 2, 4096),
            (Settings::access(), 300, 30, 8192),
        ] {
            assert_eq!(settings.terms.positive_ttl, seconds(positive));
            assert_eq!(settings.terms.negative_ttl, seconds(negative));
            assert_eq!(settings.terms.refresh_window, 0.25);
            assert_eq!(settings.terms.stale_if_error, Duration::ZERO);
            assert_eq!(settings.positives.entries, entries);
            assert_eq!(settings.positives.bytes, 8 * MIB);
            assert!(settings.negatives.entries < entries);
            assert_eq!(settings.deadline, seconds(10));
            assert_eq!((settings.waiters, settings.in_flight), (1024, 64));
            assert_eq!(settings.breaker.failures, 3);
            assert_eq!(settings.breaker.probe_every, seconds(1));
            assert_eq!(settings.retry.budget, seconds(3));
        }
    }
}
