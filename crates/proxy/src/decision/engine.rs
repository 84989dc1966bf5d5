//! The engine callers meet: a remembered answer at once, or a place in line for a review.
//!
//! The way of a hit takes no async lock, allocates nothing and does not build the question. Running a
//! review, with its retries and what is learnt from it, is in `review`.

use super::{
    Answer, Counters, Inquiry, Key, Refusal, Reviewer, Verdict,
    breaker::{self, Outlook},
    entry::Entry,
    failure::Failure,
    flight::{Boarding, Flights},
    gate::Gate,
    limiter::Sources,
    settings::{Bounds, Settings},
    slots::Slots,
    store::Store,
};
use std::{
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
};
use tokio::time::Instant;

/// Where a decision came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Provenance {
    /// A remembered answer in its lifetime.
    Cache,
    /// A review made for this caller, or for another who asked the same.
    Review,
    /// A remembered answer past its end, because the API server is down.
    Stale,
}

/// An answer that may be used, this once.
#[derive(Debug)]
pub struct Decision<A> {
    pub(super) entry: Arc<Entry<A>>,
    pub(super) provenance: Provenance,
}

impl<A> Clone for Decision<A> {
    fn clone(&self) -> Self {
        Decision {
            entry: self.entry.clone(),
            provenance: self.provenance,
        }
    }
}

impl<A> Decision<A> {
    /// What the API server said.
    pub fn answer(&self) -> &A {
        &self.entry.answer
    }

    /// Where it came from.
    pub fn provenance(&self) -> Provenance {
        self.provenance
    }

    /// When the API server was asked.
    pub fn asked(&self) -> Instant {
        self.entry.asked
    }
}

/// What an engine holds at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Answers that open the door.
    pub positives: Bounds,
    /// The others.
    pub negatives: Bounds,
    /// Reviews on their way or waiting for their turn.
    pub reviews: usize,
}

/// Remembers the answers of one API and asks for those it does not have.
pub struct Engine<K, R: Reviewer>(Arc<Shared<K, R>>);

impl<K, R: Reviewer> Clone for Engine<K, R> {
    fn clone(&self) -> Self {
        Engine(self.0.clone())
    }
}

type Outcome<A> = Result<Decision<A>, Refusal>;

/// More sources than this at once share a bucket.
const SOURCES: usize = 4096;

pub(super) struct Shared<K, R: Reviewer> {
    pub(super) reviewer: R,
    pub(super) settings: Settings,
    pub(super) store: Store<K, R::Answer>,
    pub(super) flights: Arc<Flights<K, Outcome<R::Answer>>>,
    pub(super) gate: Gate,
    pub(super) slots: Slots,
    pub(super) counters: Arc<Counters>,
    sources: Option<Mutex<Sources>>,
}

impl<K: Key, R: Reviewer> Engine<K, R> {
    /// An engine that remembers nothing yet.
    pub fn new(reviewer: R, settings: Settings) -> Self {
        let counters = Arc::new(Counters::default());
        let sources = settings
            .per_source
            .map(|rate| Mutex::new(Sources::new(rate, SOURCES, Instant::now())));
        Engine(Arc::new(Shared {
            reviewer,
            store: Store::new(&settings, &counters),
            flights: Flights::new(settings.waiters),
            gate: Gate::new(settings.breaker, counters.clone()),
            slots: Slots::new(settings.in_flight),
            settings,
            counters,
            sources,
        }))
    }

    /// Decides. `source` is charged if this causes a review. `inquiry` is called only if there is
    /// something to ask, and may refuse to.
    ///
    /// Dropping the future drops the caller's place; a review already begun goes on. Must run in a
    /// tokio runtime.
    pub async fn decide(
        &self,
        key: &K,
        source: Option<IpAddr>,
        inquiry: impl FnOnce() -> Result<Inquiry<R::Question>, Refusal>,
    ) -> Result<Decision<R::Answer>, Refusal> {
        let now = Instant::now();
        if let Some(entry) = self.0.store.valid(key, now) {
            self.0.counters.hits.add();
            if entry.claim_refresh(now)
                && let Ok(inquiry) = inquiry()
            {
                self.refresh(key, inquiry, now);
            }
            return Ok(Decision {
                entry,
                provenance: Provenance::Cache,
            });
        }
        self.0.counters.misses.add();
        let outcome = match inquiry() {
            // Boxed: a hit is not to carry the room that a question takes.
            Ok(inquiry) => Box::pin(self.ask(key, source, inquiry, now)).await,
            Err(refusal) => Err(refusal),
        };
        self.count(&outcome);
        outcome
    }

    /// What has been done so far.
    pub fn counters(&self) -> &Counters {
        &self.0.counters
    }

    /// What is held right now. Walks the caches: for metrics, not for requests.
    pub fn size(&self) -> Size {
        Size {
            positives: self.0.store.held(Verdict::Positive),
            negatives: self.0.store.held(Verdict::Negative),
            reviews: self.0.flights.len(),
        }
    }

    /// Whether the API server is believed to answer.
    pub fn breaker(&self) -> breaker::State {
        self.0.gate.state()
    }

    /// The reviewer the engine asks.
    pub fn reviewer(&self) -> &R {
        &self.0.reviewer
    }

    async fn ask(
        &self,
        key: &K,
        source: Option<IpAddr>,
        inquiry: Inquiry<R::Question>,
        now: Instant,
    ) -> Outcome<R::Answer> {
        match self.0.gate.outlook(now) {
            Outlook::Clear => {}
            Outlook::Shut { wait } => {
                let refusal = Refusal::Unavailable { retry_after: wait };
                return self.0.stand_in(key, now).ok_or(refusal);
            }
            Outlook::Probe => {
                // Nobody waits for a probe who can be served without its outcome.
                if let Some(stale) = self.0.stand_in(key, now) {
                    self.refresh(key, inquiry, now);
                    return Ok(stale);
                }
            }
        }
        let spare = |others| self.0.spare(key, source, others, now);
        let arrival = match self.0.flights.board(key, spare) {
            Boarding::Departing(arrival, flight) => {
                tokio::spawn(self.0.clone().fly(flight, inquiry, None));
                arrival
            }
            Boarding::Joined(arrival) => {
                self.0.counters.coalesced.add();
                arrival
            }
            Boarding::Spared(outcome) => return outcome,
            Boarding::Full => return Err(Refusal::Overloaded),
        };
        let lost = || Failure::Unusable("the review ended without an answer".into());
        arrival
            .outcome()
            .await
            .unwrap_or_else(|| Err(lost().into()))
    }

    /// Asks for the successor of an answer in use, if there is room for that and a server to ask.
    fn refresh(&self, key: &K, inquiry: Inquiry<R::Question>, now: Instant) {
        if matches!(self.0.gate.outlook(now), Outlook::Shut { .. }) {
            return;
        }
        let Some(slot) = self.0.slots.spare() else {
            return;
        };
        if let Some(flight) = self.0.flights.depart_empty(key) {
            self.0.counters.refreshes.add();
            tokio::spawn(self.0.clone().fly(flight, inquiry, Some(slot)));
        }
    }

    fn count(&self, outcome: &Outcome<R::Answer>) {
        let counters = &self.0.counters;
        match outcome {
            Ok(decision) if decision.provenance == Provenance::Stale => counters.stale.add(),
            Ok(_) | Err(Refusal::Failed(_)) => {}
            Err(Refusal::Unavailable { .. }) => counters.unavailable.add(),
            Err(Refusal::Overloaded) => counters.overloaded.add(),
            Err(Refusal::Throttled { .. }) => counters.throttled.add(),
            Err(Refusal::Expired) => counters.expired.add(),
        }
    }
}

impl<K: Key, R: Reviewer> Shared<K, R> {
    /// What spares a caller without a flight to join a review of its own: an answer that has come
    /// in while it was looking for one, or a reason why it may not cause a review.
    fn spare(
        &self,
        key: &K,
        source: Option<IpAddr>,
        others: usize,
        now: Instant,
    ) -> Option<Outcome<R::Answer>> {
        if let Some(entry) = self.store.valid(key, now) {
            let provenance = Provenance::Cache;
            return Some(Ok(Decision { entry, provenance }));
        }
        let room = self.settings.in_flight.saturating_add(self.settings.queued);
        if others >= room {
            return Some(Err(Refusal::Overloaded));
        }
        // Whoever has been let in before is not guessing.
        if self.store.positive(key).is_some() {
            return None;
        }
        let mut sources = self
            .sources
            .as_ref()?
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let retry_after = sources.charge(source?, now).err()?;
        Some(Err(Refusal::Throttled { retry_after }))
    }

    /// The answer to use while the API server is down, where that is wanted and there is one.
    pub(super) fn stand_in(&self, key: &K, now: Instant) -> Option<Decision<R::Answer>> {
        let entry = self.store.positive(key)?;
        entry.stands_in(now).then_some(Decision {
            entry,
            provenance: Provenance::Stale,
        })
    }
}

impl<A: Answer> Decision<A> {
    /// Whether it opens the door.
    pub fn verdict(&self) -> Verdict {
        self.entry.answer.verdict()
    }
}
