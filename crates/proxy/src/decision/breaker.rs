//! When to stop asking an API server that does not answer, and when to try it again.
//!
//! Pure: a [`State`] is a value, and [`State::admit`] and [`State::after`] are functions of it, an
//! event and the time. Holding the state and telling an outage from an unpleasant answer are for the
//! engine.

use std::time::Duration;
use tokio::time::Instant;

/// When the breaker opens and how it looks for the server afterwards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// This many infrastructure failures in a row open it.
    pub failures: u32,
    /// While open, one call in this time.
    pub probe_every: Duration,
}

/// What the last calls taught.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Calls go through.
    Closed {
        /// Failures since the last answer.
        failures: u32,
        /// How often it has changed between closed and open.
        epoch: u64,
    },
    /// Calls fail without being made, except for a probe now and then.
    Open {
        /// The next call may be made from here on.
        next_probe: Instant,
        /// How often it has changed between closed and open.
        epoch: u64,
    },
}

/// A call that may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    /// The state's epoch when it was handed out.
    epoch: u64,
    /// Whether the call is there to find out if the server is back.
    pub probe: bool,
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The server said something, whatever it was.
    Answered,
    /// An infrastructure failure.
    Failed(Ticket),
}

/// What a call made now would meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// A server believed to answer.
    Clear,
    /// A server believed to be down, and it is time to look.
    Probe,
    /// Nothing: it would not be made.
    Shut {
        /// Until the next probe.
        wait: Duration,
    },
}

impl Default for State {
    fn default() -> Self {
        State::Closed {
            failures: 0,
            epoch: 0,
        }
    }
}

impl State {
    /// Whether calls are held back.
    pub fn open(&self) -> bool {
        matches!(self, State::Open { .. })
    }

    /// What a call made at `now` would meet.
    pub fn outlook(&self, now: Instant) -> Outlook {
        match *self {
            State::Closed { .. } => Outlook::Clear,
            State::Open { next_probe, .. } if now >= next_probe => Outlook::Probe,
            State::Open { next_probe, .. } => Outlook::Shut {
                wait: next_probe - now,
            },
        }
    }

    /// The state after a call was asked for, and the leave to make it.
    ///
    /// A probe does not wait for the one before it: a black-holed call must not hold up finding out
    /// that the server is back.
    pub fn admit(self, now: Instant, policy: &Policy) -> (State, Option<Ticket>) {
        match (self.outlook(now), self) {
            (Outlook::Shut { .. }, _) => (self, None),
            (_, State::Closed { epoch, .. }) => (
                self,
                Some(Ticket {
                    epoch,
                    probe: false,
                }),
            ),
            (_, State::Open { epoch, .. }) => (
                State::Open {
                    next_probe: now + policy.probe_every,
                    epoch,
                },
                Some(Ticket { epoch, probe: true }),
            ),
        }
    }

    /// The state after a call ended.
    ///
    /// A failure counts only in the epoch it was begun in: calls swallowed in an outage fail long
    /// after it, and say nothing about the server that is back.
    pub fn after(self, event: Event, now: Instant, policy: &Policy) -> State {
        match (self, event) {
            (State::Open { epoch, .. }, Event::Answered) => State::Closed {
                failures: 0,
                epoch: epoch + 1,
            },
            (State::Closed { epoch, .. }, Event::Answered) => State::Closed { failures: 0, epoch },
            (State::Closed { failures, epoch }, Event::Failed(ticket)) if ticket.epoch == epoch => {
                let failures = failures + 1;
                if failures >= policy.failures {
                    State::Open {
                        next_probe: now + policy.probe_every,
                        epoch: epoch + 1,
                    }
                } else {
                    State::Closed { failures, epoch }
                }
            }
            (state, Event::Failed(_)) => state,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Policy = Policy {
        failures: 3,
        probe_every: Duration::from_secs(1),
    };

    fn ask(state: &mut State, now: Instant) -> Option<Ticket> {
        let (next, ticket) = state.admit(now, &POLICY);
        *state = next;
        ticket
    }

    fn fail(state: &mut State, now: Instant) {
        let ticket = ask(state, now).unwrap();
        *state = state.after(Event::Failed(ticket), now, &POLICY);
    }

    #[test]
    fn the_third_failure_in_a_row_opens_it_and_an_answer_starts_the_count_again() {
        let now = Instant::now();
        let mut state = State::default();
        fail(&mut state, now);
        fail(&mut state, now);
        assert!(!state.open());
        state = state.after(Event::Answered, now, &POLICY);
        fail(&mut state, now);
        fail(&mut state, now);
        assert!(!state.open());
        fail(&mut state, now);
        assert!(state.open());
    }

    #[test]
    fn while_open_it_lets_one_probe_through_each_second_even_if_the_last_has_not_ended() {
        let opened = Instant::now();
        let mut state = State::default();
        (0..3).for_each(|_| fail(&mut state, opened));
        let mut probes = Vec::new();
        for tenth in 0..=35 {
            let now = opened + Duration::from_millis(100 * tenth);
            if let Some(ticket) = ask(&mut state, now) {
                assert!(ticket.probe);
                probes.push(tenth);
            }
        }
        assert_eq!(probes, [10, 20, 30]);
    }

    #[test]
    fn a_closed_door_says_how_long_it_stays_closed() {
        let now = Instant::now();
        let mut state = State::default();
        assert_eq!(state.outlook(now), Outlook::Clear);
        (0..3).for_each(|_| fail(&mut state, now));
        let later = now + Duration::from_millis(400);
        let wait = Duration::from_millis(600);
        assert_eq!(state.outlook(later), Outlook::Shut { wait });
        assert_eq!(state.outlook(later + wait), Outlook::Probe);
    }

    #[test]
    fn any_answer_closes_it() {
        let now = Instant::now();
        let mut state = State::default();
        (0..3).for_each(|_| fail(&mut state, now));
        state = state.after(Event::Answered, now, &POLICY);
        assert_eq!(
            state,
            State::Closed {
                failures: 0,
                epoch: 2
            }
        );
        assert!(ask(&mut state, now).is_some_and(|ticket| !ticket.probe));
    }

    #[test]
    fn calls_swallowed_in_an_outage_do_not_count_against_the_server_that_is_back() {
        let now = Instant::now();
        let mut state = State::default();
        let swallowed: Vec<Ticket> = (0..5).filter_map(|_| ask(&mut state, now)).collect();
        (0..3).for_each(|_| fail(&mut state, now));
        state = state.after(Event::Answered, now, &POLICY);
        for ticket in swallowed {
            state = state.after(Event::Failed(ticket), now, &POLICY);
        }
        assert_eq!(
            state,
            State::Closed {
                failures: 0,
                epoch: 2
            }
        );
    }
}
