//! The breaker in use: its state behind a lock, and the counting of what passes.
//!
//! The rules are in [`breaker`](super::breaker).

use super::{
    Counters,
    breaker::{Event, Outlook, Policy, State, Ticket},
    failure::Failure,
};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::time::Instant;

pub(super) struct Gate {
    policy: Policy,
    state: Mutex<State>,
    counters: Arc<Counters>,
}

impl Gate {
    pub(super) fn new(policy: Policy, counters: Arc<Counters>) -> Gate {
        Gate {
            policy,
            state: Mutex::default(),
            counters,
        }
    }

    pub(super) fn state(&self) -> State {
        *self.lock()
    }

    pub(super) fn outlook(&self, now: Instant) -> Outlook {
        self.lock().outlook(now)
    }

    /// Leave to make one call, now.
    pub(super) fn admit(&self, now: Instant) -> Option<Ticket> {
        let mut state = self.lock();
        let (next, ticket) = state.admit(now, &self.policy);
        *state = next;
        if ticket.is_some() {
            self.counters.calls.add();
        }
        ticket
    }

    /// The server has answered, whatever it said.
    pub(super) fn answered(&self, now: Instant) {
        self.note(Event::Answered, now);
    }

    /// A call has failed; one the server itself refused shows that it is there.
    pub(super) fn failed(&self, ticket: Ticket, failure: &Failure, now: Instant) {
        if failure.infrastructure() {
            self.counters.failures.add();
            self.note(Event::Failed(ticket), now);
        } else {
            self.answered(now);
        }
    }

    fn note(&self, event: Event, now: Instant) {
        let mut state = self.lock();
        let next = state.after(event, now, &self.policy);
        if next.open() && !state.open() {
            self.counters.opened.add();
        }
        *state = next;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
