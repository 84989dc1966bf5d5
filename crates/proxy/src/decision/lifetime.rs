//! How long an answer may be used, fixed when it arrives.
//!
//! Pure: terms, verdict and instants in, [`Lifetime`] out. Nothing extends a lifetime afterwards: a
//! renewed answer is another answer with a lifetime of its own, so a revoked permission is gone
//! within one TTL of the last review that granted it.

use super::Verdict;
use std::time::Duration;
use tokio::time::Instant;

/// Stale answers are never used for longer than this, whatever is configured.
pub const LONGEST_GRACE: Duration = Duration::from_secs(60 * 60);

/// What the configuration says about lifetimes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// For answers that open the door, from the moment they were asked for. Zero: not remembered.
    pub positive_ttl: Duration,
    /// For the others, from the moment they arrived. Zero: not remembered.
    pub negative_ttl: Duration,
    /// The last part of the TTL, from 0 to 1, in which a use renews the answer. Zero: never.
    pub refresh_window: f64,
    /// For how long after its end a positive answer may stand in while the API server is down. Zero:
    /// not at all. At most [`LONGEST_GRACE`].
    pub stale_if_error: Duration,
}

/// When the question of an answer was sent, and when the answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Review {
    /// Sent.
    pub asked: Instant,
    /// Answered.
    pub answered: Instant,
}

/// The instants that decide what an answer is good for. Each end is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Usable before this.
    pub valid_until: Instant,
    /// A use from here on asks for the successor. None: there is no point in one.
    pub refresh_from: Option<Instant>,
    /// Usable before this if the API server cannot be asked. Never before `valid_until`.
    pub stale_until: Instant,
}

impl Lifetime {
    /// The life of an answer.
    ///
    /// A positive one counts from the question, since the server may have looked the moment it was
    /// sent; a negative one from the answer, or a slow server would be asked again at once.
    pub fn of(
        terms: &Terms,
        verdict: Verdict,
        review: Review,
        not_after: Option<Instant>,
    ) -> Lifetime {
        let capped = |end: Instant| not_after.map_or(end, |not_after| end.min(not_after));
        match verdict {
            Verdict::Negative => {
                let end = capped(review.answered + terms.negative_ttl);
                Lifetime {
                    valid_until: end,
                    refresh_from: None,
                    stale_until: end,
                }
            }
            Verdict::Positive => {
                let end = review.asked + terms.positive_ttl;
                let window = terms
                    .positive_ttl
                    .mul_f64(terms.refresh_window.clamp(0.0, 1.0));
                // Where the token ends first a successor would end with it.
                let outlasts_token = not_after.is_some_and(|not_after| not_after <= end);
                Lifetime {
                    valid_until: capped(end),
                    refresh_from: (!window.is_zero() && !outlasts_token).then(|| end - window),
                    stale_until: capped(end + terms.stale_if_error.min(LONGEST_GRACE)),
                }
            }
        }
    }

    /// Whether the answer may be used without asking.
    pub fn valid(&self, now: Instant) -> bool {
        now < self.valid_until
    }

    /// Whether the answer may stand in for one that cannot be had.
    pub fn stands_in(&self, now: Instant) -> bool {
        now < self.stale_until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TERMS: Terms = Terms {
        positive_ttl: Duration::from_secs(120),
        negative_ttl: Duration::from_secs(2),
        refresh_window: 0.25,
        stale_if_error: Duration::from_secs(600),
    };

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    /// Terms, verdict, seconds from question to answer, `exp` in seconds from the question; then
    /// valid until, refresh from and stale until, in seconds from the question.
    #[test]
    fn an_answer_lives_as_long_as_the_table_says() {
        use Verdict::{Negative, Positive};
        let strict = Terms {
            stale_if_error: Duration::ZERO,
            ..TERMS
        };
        let uncached = Terms {
            positive_ttl: Duration::ZERO,
            negative_ttl: Duration::ZERO,
            ..strict
        };
        let eager = Terms {
            refresh_window: 0.5,
            ..strict
        };
        let lazy = Terms {
            refresh_window: 0.0,
            ..strict
        };
        let careless = Terms {
            stale_if_error: seconds(100_000),
            ..TERMS
        };
        let asked = Instant::now();
        for (terms, verdict, took, exp, valid, refresh, stale) in [
            (TERMS, Positive, 0, None, 120, Some(90), 720),
            (TERMS, Positive, 7, None, 120, Some(90), 720),
            (strict, Positive, 0, None, 120, Some(90), 120),
            (eager, Positive, 0, None, 120, Some(60), 120),
            (lazy, Positive, 0, None, 120, None, 120),
            (careless, Positive, 0, None, 120, Some(90), 3720),
            // `exp` shortens both ends and makes a successor pointless.
            (TERMS, Positive, 0, Some(30), 30, None, 30),
            (TERMS, Positive, 0, Some(120), 120, None, 120),
            (TERMS, Positive, 0, Some(200), 120, Some(90), 200),
            (TERMS, Positive, 0, Some(10_000), 120, Some(90), 720),
            (TERMS, Positive, 5, Some(0), 0, None, 0),
            // A refusal counts from its arrival, is never renewed and never stands in.
            (TERMS, Negative, 0, None, 2, None, 2),
            (TERMS, Negative, 7, None, 9, None, 9),
            (TERMS, Negative, 0, Some(1), 1, None, 1),
            (uncached, Positive, 0, None, 0, None, 0),
            (uncached, Negative, 0, None, 0, None, 0),
        ] {
            let review = Review {
                asked,
                answered: asked + seconds(took),
            };
            let not_after = exp.map(|exp| asked + seconds(exp));
            let lifetime = Lifetime::of(&terms, verdict, review, not_after);
            let expected = Lifetime {
                valid_until: asked + seconds(valid),
                refresh_from: refresh.map(|from| asked + seconds(from)),
                stale_until: asked + seconds(stale),
            };
            assert_eq!(
                lifetime, expected,
                "{terms:?} {verdict:?} {took} s, exp {exp:?}"
            );
        }
    }

    #[test]
    fn the_end_of_a_life_is_no_part_of_it() {
        let asked = Instant::now();
        let review = Review {
            asked,
            answered: asked,
        };
        let life = Lifetime::of(&TERMS, Verdict::Positive, review, None);
        let moment = Duration::from_nanos(1);
        assert!(life.valid(life.valid_until - moment));
        assert!(!life.valid(life.valid_until));
        assert!(life.stands_in(life.stale_until - moment));
        assert!(!life.stands_in(life.stale_until));
    }
}
