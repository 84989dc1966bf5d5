//! One review from its start to its outcome: a turn, the breaker's leave, tries, and what is learnt.
//!
//! Runs as a task of its own, so that no caller's impatience ends it, and is over by its deadline.

use super::{
    Answer, Decision, Failure, Inquiry, Key, Refusal, Reviewer, Verdict,
    breaker::{Outlook, Ticket},
    engine::{Provenance, Shared},
    entry::Entry,
    flight::Flight,
    lifetime::{Lifetime, Review},
    retry::Tries,
    slots::Slot,
};
use std::{pin::pin, sync::Arc, time::Duration};
use tokio::time::{Instant, sleep, timeout_at};

type Outcome<A> = Result<Decision<A>, Refusal>;

impl<K: Key, R: Reviewer> Shared<K, R> {
    /// Runs the flight to its end. A renewal brings its slot along; anything else waits for one.
    pub(super) async fn fly(
        self: Arc<Self>,
        flight: Flight<K, Outcome<R::Answer>>,
        inquiry: Inquiry<R::Question>,
        slot: Option<Slot>,
    ) {
        let deadline = Instant::now() + self.settings.deadline;
        let slot = match slot {
            Some(slot) => Some(slot),
            None => timeout_at(deadline, self.slots.turn()).await.ok().flatten(),
        };
        let Some(_slot) = slot else {
            return flight.land(Err(Refusal::Overloaded));
        };
        let began = Instant::now();
        let mut failed = 0;
        loop {
            // A limit of our own says nothing about the server, so the breaker does not hear of it.
            if timeout_at(deadline, self.reviewer.turn()).await.is_err() {
                return flight.land(Err(Refusal::Overloaded));
            }
            let asked = Instant::now();
            let Some(ticket) = self.gate.admit(asked) else {
                return self.give_up(flight, asked);
            };
            let mut review = pin!(self.reviewer.review(&inquiry.question));
            let answer = timeout_at(self.patience(ticket, asked, deadline), &mut review).await;
            let now = Instant::now();
            let failure = match answer {
                Ok(Ok(answer)) => {
                    self.gate.answered(now);
                    let review = Review {
                        asked,
                        answered: now,
                    };
                    let decision = self.learn(flight.key(), answer, review, inquiry.not_after);
                    return flight.land(Ok(decision));
                }
                Ok(Err(failure)) => failure,
                Err(_elapsed) => {
                    self.gate.failed(ticket, &Failure::TimedOut, now);
                    let key = flight.key().clone();
                    self.fail(flight, Failure::TimedOut, now);
                    let late = timeout_at(deadline, review).await;
                    return self.overhear(&key, late.unwrap_or(Err(Failure::TimedOut)));
                }
            };
            self.gate.failed(ticket, &failure, now);
            failed += 1;
            match self.pause(&failure, failed, began, deadline) {
                Some(pause) => sleep(pause).await,
                None => return self.fail(flight, failure, now),
            }
        }
    }

    /// How long callers wait for one try. In an outage only until the next probe is due, which may
    /// be theirs: a server that is back must not be missed for a call it has swallowed.
    fn patience(&self, ticket: Ticket, asked: Instant, deadline: Instant) -> Instant {
        if ticket.probe {
            deadline.min(asked + self.settings.breaker.probe_every)
        } else {
            deadline
        }
    }

    /// Takes note of what came of a probe that nobody waits for any more.
    ///
    /// A server that has become slow is not down. A yes is not remembered, since a later review may
    /// have found another answer. A no, or what may have been one, ends every yes answered before it,
    /// asked for earlier or later: which of the two the server meant last nobody knows, and asking
    /// again costs one review.
    fn overhear(&self, key: &K, late: Result<R::Answer, Failure>) {
        let verdict = match late {
            Ok(answer) => Some(answer.verdict()),
            Err(failure) if failure.infrastructure() => return,
            Err(_) => None,
        };
        self.gate.answered(Instant::now());
        match verdict {
            Some(Verdict::Positive) => {}
            Some(Verdict::Negative) => self.store.forget_positive(key),
            None => {
                if let Some(yes) = self.store.positive(key) {
                    yes.lose_grace();
                }
            }
        }
    }

    /// The pause before another try, if there is time for one and it would be let through.
    fn pause(
        &self,
        failure: &Failure,
        failed: u32,
        began: Instant,
        deadline: Instant,
    ) -> Option<Duration> {
        let now = Instant::now();
        let tries = Tries {
            failed,
            spent: now - began,
            chance: chance(),
        };
        let pause = self.settings.retry.pause(failure, tries)?;
        let again = now.checked_add(pause)?;
        let shut = matches!(self.gate.outlook(again), Outlook::Shut { .. });
        (again < deadline && !shut).then_some(pause)
    }

    /// Remembers an answer for as long as it lives, in place of whatever was remembered.
    fn learn(
        &self,
        key: &K,
        answer: R::Answer,
        review: Review,
        not_after: Option<Instant>,
    ) -> Decision<R::Answer> {
        let terms = &self.settings.terms;
        let lifetime = Lifetime::of(terms, answer.verdict(), review, not_after);
        let entry = Arc::new(Entry::new::<K>(answer, review, lifetime));
        self.store.put(key, &entry, review.answered);
        Decision {
            entry,
            provenance: Provenance::Review,
        }
    }

    /// Ends a flight without an answer.
    ///
    /// A server that works and says something unusable may have meant no, so the last yes no longer
    /// stands in after it.
    fn fail(&self, flight: Flight<K, Outcome<R::Answer>>, failure: Failure, now: Instant) {
        if failure.infrastructure() {
            return self.cover(flight, failure.into(), now);
        }
        if let Some(entry) = self.store.positive(flight.key()) {
            entry.lose_grace();
        }
        flight.land(Err(failure.into()));
    }

    /// Ends a flight whose question was not asked: the breaker opened before its turn.
    fn give_up(&self, flight: Flight<K, Outcome<R::Answer>>, now: Instant) {
        let retry_after = match self.gate.outlook(now) {
            Outlook::Shut { wait } => wait,
            Outlook::Clear | Outlook::Probe => Duration::ZERO,
        };
        self.cover(flight, Refusal::Unavailable { retry_after }, now);
    }

    fn cover(&self, flight: Flight<K, Outcome<R::Answer>>, refusal: Refusal, now: Instant) {
        let outcome = self.stand_in(flight.key(), now).ok_or(refusal);
        flight.land(outcome);
    }
}

/// From 0 to 1; without randomness, 0.
fn chance() -> f64 {
    let mut byte = [0];
    let drawn = aws_lc_rs::rand::fill(&mut byte);
    drawn.map_or(0.0, |()| f64::from(byte[0]) / 255.0)
}
