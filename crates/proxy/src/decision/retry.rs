//! Whether a failed review is worth another try, and after how long.
//!
//! Pure: the failure, the tries so far and the time spent in, a pause out. The classes are
//! kube-rbac-proxy's, the budget is shorter, and a refused connection gets two quick tries more,
//! which is what the restart of a single API server needs.

use super::Failure;
use std::time::Duration;

/// The bounds of trying again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// No pause ends later than this after the first try began. Zero: never again.
    pub budget: Duration,
}

const REFUSED: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(200)];
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const GROWTH: f64 = 1.5;
const JITTER: f64 = 0.2;

/// The review as it stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tries {
    /// Tries that failed, this one included.
    pub failed: u32,
    /// Since the first try began.
    pub spent: Duration,
    /// From 0 to 1: keeps a thousand proxies from coming back in step.
    pub chance: f64,
}

impl Policy {
    /// The pause before the next try; none if this failure is final.
    pub fn pause(&self, failure: &Failure, tries: Tries) -> Option<Duration> {
        let earlier = tries.failed.saturating_sub(1);
        let patience = FIRST_PAUSE.mul_f64(growth(earlier) * (1.0 + JITTER * tries.chance));
        let pause = match failure {
            Failure::ConnectionRefused => *REFUSED.get(usize::try_from(earlier).ok()?)?,
            // "Come back at once", said again and again, must not become a busy loop.
            Failure::Status {
                retry_after: Some(pause),
                ..
            } => patience.max(*pause),
            Failure::ConnectionLost
            | Failure::Status {
                code: 429 | 500 | 504,
                ..
            } => patience,
            Failure::Status { .. }
            | Failure::Unreachable(_)
            | Failure::TimedOut
            | Failure::Unusable(_) => return None,
        };
        (tries.spent.saturating_add(pause) <= self.budget).then_some(pause)
    }
}

fn growth(earlier: u32) -> f64 {
    GROWTH.powi(i32::try_from(earlier.min(20)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy = Policy {
        budget: Duration::from_secs(3),
    };

    fn status(code: u16, retry_after: Option<u64>) -> Failure {
        Failure::Status {
            code,
            retry_after: retry_after.map(Duration::from_secs),
        }
    }

    #[test]
    fn a_failure_is_tried_again_as_the_table_says() {
        use Failure::{ConnectionLost, ConnectionRefused, TimedOut};
        // Failure, tries failed, milliseconds spent; then the pause in milliseconds.
        for (failure, failed, spent, expected) in [
            (ConnectionRefused, 1, 0, Some(50)),
            (ConnectionRefused, 2, 50, Some(200)),
            (ConnectionRefused, 3, 250, None),
            (ConnectionLost, 1, 0, Some(500)),
            (ConnectionLost, 2, 500, Some(750)),
            (ConnectionLost, 3, 1_250, Some(1_125)),
            (ConnectionLost, 4, 2_375, None),
            (ConnectionLost, 1, 2_600, None),
            (status(429, None), 1, 0, Some(500)),
            (status(500, None), 1, 0, Some(500)),
            (status(504, None), 1, 0, Some(500)),
            (status(503, None), 1, 0, None),
            (status(503, Some(1)), 1, 0, Some(1_000)),
            (status(403, Some(0)), 1, 0, Some(500)),
            (status(429, Some(2)), 1, 500, Some(2_000)),
            (status(429, Some(3)), 1, 500, None),
            (status(429, Some(u64::MAX)), 1, 1, None),
            (status(403, None), 1, 0, None),
            (TimedOut, 1, 0, None),
            (Failure::Unreachable("tls".into()), 1, 0, None),
            (Failure::Unusable("html".into()), 1, 0, None),
        ] {
            let tries = Tries {
                failed,
                spent: Duration::from_millis(spent),
                chance: 0.0,
            };
            assert_eq!(
                POLICY.pause(&failure, tries),
                expected.map(Duration::from_millis),
                "{failure}, {failed} failed, {spent} ms"
            );
        }
    }

    #[test]
    fn chance_spreads_the_pauses_by_a_fifth() {
        let tries = Tries {
            failed: 1,
            spent: Duration::ZERO,
            chance: 1.0,
        };
        assert_eq!(
            POLICY.pause(&Failure::ConnectionLost, tries),
            Some(Duration::from_millis(600))
        );
    }

    #[test]
    fn without_a_budget_nothing_is_tried_again() {
        let none = Policy {
            budget: Duration::ZERO,
        };
        let tries = Tries {
            failed: 1,
            spent: Duration::ZERO,
            chance: 0.0,
        };
        assert_eq!(none.pause(&Failure::ConnectionRefused, tries), None);
    }
}
