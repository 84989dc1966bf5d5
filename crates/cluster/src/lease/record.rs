//! What to do about a lease as it was found. Pure: both clocks are told.
//!
//! Times in the lease are other machines' and are only written, never compared: what counts is for
//! how long we have seen no change.

use super::LEASE_DURATION;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use std::time::Duration;
use tokio::time::Instant;

/// What to do next.
#[derive(Debug, PartialEq)]
pub(super) enum Step {
    /// Somebody else has it.
    Wait,
    /// There is none: make it.
    Create(LeaseSpec),
    /// It is ours, or nobody's any more: write it.
    Write(LeaseSpec),
}

/// What a candidate remembers.
#[derive(Debug)]
pub(super) struct Election {
    identity: String,
    /// The lease as it was last seen to change, and when that was.
    seen: Option<(LeaseSpec, Instant)>,
}

impl Election {
    pub(super) fn new(identity: String) -> Self {
        Self {
            identity,
            seen: None,
        }
    }

    /// Who holds the lease, as far as was seen.
    pub(super) fn holder(&self) -> Option<&str> {
        holder(&self.seen.as_ref()?.0)
    }

    /// Remembers a lease, and when it changed.
    pub(super) fn saw(&mut self, lease: &Lease, now: Instant) {
        let spec = lease.spec.clone().unwrap_or_default();
        match &self.seen {
            Some((known, _)) if *known == spec => {}
            _ => self.seen = Some((spec, now)),
        }
    }

    pub(super) fn step(&mut self, found: Option<&Lease>, now: Instant, time: Timestamp) -> Step {
        let Some(found) = found else {
            self.seen = None;
            return Step::Create(self.ours(time, None));
        };
        self.saw(found, now);
        let Some((spec, since)) = &self.seen else {
            return Step::Wait;
        };
        let expired = now.saturating_duration_since(*since) >= duration(spec);
        match holder(spec) {
            Some(other) if other != self.identity && !expired => Step::Wait,
            _ => Step::Write(self.ours(time, Some(spec))),
        }
    }

    /// The lease without a holder, if it is ours to give. It is good for a second, as of client-go.
    pub(super) fn release(&self, found: Option<&Lease>, time: Timestamp) -> Option<LeaseSpec> {
        let spec = found?.spec.clone()?;
        (holder(&spec) == Some(&self.identity)).then(|| LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            acquire_time: Some(MicroTime(time)),
            renew_time: Some(MicroTime(time)),
            ..spec
        })
    }

    fn ours(&self, time: Timestamp, before: Option<&LeaseSpec>) -> LeaseSpec {
        let spec = before.cloned().unwrap_or_default();
        let kept = holder(&spec) == Some(&self.identity);
        let transitions = spec.lease_transitions.unwrap_or(0);
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(LEASE_DURATION.as_secs()).ok(),
            acquire_time: match kept {
                true => spec.acquire_time.clone(),
                false => Some(MicroTime(time)),
            },
            renew_time: Some(MicroTime(time)),
            lease_transitions: match (before, kept) {
                (Some(_), false) => Some(transitions.saturating_add(1)),
                _ => Some(transitions),
            },
            ..spec
        }
    }
}

fn holder(spec: &LeaseSpec) -> Option<&str> {
    spec.holder_identity
        .as_deref()
        .filter(|name| !name.is_empty())
}

/// How long the lease is good. One that does not say is good for as long as ours.
fn duration(spec: &LeaseSpec) -> Duration {
    match spec.lease_duration_seconds.map(u64::try_from) {
        Some(Ok(seconds)) => Duration::from_secs(seconds),
        _ => LEASE_DURATION,
    }
}

/// A new lease.
pub(super) fn lease(name: &str, spec: LeaseSpec) -> Lease {
    Lease {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        spec: Some(spec),
    }
}

/// A lease that was found, with another spec: its resource version is the lock.
pub(super) fn with_spec(found: Option<Lease>, spec: LeaseSpec) -> Lease {
    Lease {
        spec: Some(spec),
        ..found.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(holder: &str, seconds: Option<i32>, renewed: i64) -> Lease {
        let time = |second| Timestamp::from_second(second).ok().map(MicroTime);
        lease(
            "lease",
            LeaseSpec {
                holder_identity: Some(holder.to_owned()),
                lease_duration_seconds: seconds,
                acquire_time: time(1),
                renew_time: time(renewed),
                lease_transitions: Some(7),
                ..LeaseSpec::default()
            },
        )
    }

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    fn written(step: Step) -> LeaseSpec {
        match step {
            Step::Write(spec) | Step::Create(spec) => spec,
            Step::Wait => panic!("there is something to write"),
        }
    }

    #[test]
    fn a_lease_of_another_is_waited_for_from_its_last_change() {
        let (start, time) = (Instant::now(), Timestamp::UNIX_EPOCH);
        let mut election = Election::new("ours".to_owned());
        let old = found("theirs", Some(15), 10);
        let renewed = found("theirs", Some(15), 12);
        assert_eq!(election.step(Some(&old), start, time), Step::Wait);
        assert_eq!(
            election.step(Some(&old), after(start, 14), time),
            Step::Wait
        );
        assert_eq!(
            election.step(Some(&renewed), after(start, 14), time),
            Step::Wait
        );
        assert_eq!(
            election.step(Some(&renewed), after(start, 28), time),
            Step::Wait
        );
        assert_eq!(election.holder(), Some("theirs"));
        let taken = written(election.step(Some(&renewed), after(start, 29), time));
        assert_eq!(taken.holder_identity.as_deref(), Some("ours"));
        assert_eq!(taken.lease_transitions, Some(8));
        assert_eq!(taken.acquire_time, Some(MicroTime(time)));
    }

    #[test]
    fn a_lease_that_does_not_say_how_long_is_good_for_as_long_as_ours() {
        let (start, time) = (Instant::now(), Timestamp::UNIX_EPOCH);
        for odd in [None, Some(-1)] {
            let mut election = Election::new("ours".to_owned());
            let lease = found("theirs", odd, 10);
            assert_eq!(election.step(Some(&lease), start, time), Step::Wait);
            assert_eq!(
                election.step(Some(&lease), after(start, 14), time),
                Step::Wait
            );
            let step = election.step(Some(&lease), after(start, 15), time);
            assert!(matches!(step, Step::Write(_)), "{step:?}");
        }
    }

    #[test]
    fn a_lease_nobody_holds_is_taken_at_once_and_our_own_is_renewed_as_it_is() {
        let (start, time) = (Instant::now(), Timestamp::UNIX_EPOCH);
        let mut election = Election::new("ours".to_owned());
        let free = found("", Some(1), 10);
        let taken = written(election.step(Some(&free), start, time));
        assert_eq!(taken.lease_transitions, Some(8));
        assert_eq!(taken.lease_duration_seconds, Some(15));
        let ours = found("ours", Some(15), 10);
        let renewed = written(election.step(Some(&ours), after(start, 2), time));
        assert_eq!(renewed.lease_transitions, Some(7));
        assert_eq!(
            renewed.acquire_time,
            found("", None, 1).spec.and_then(|it| it.acquire_time)
        );
        assert_eq!(renewed.renew_time, Some(MicroTime(time)));
        let new = written(election.step(None, after(start, 4), time));
        assert_eq!(new.lease_transitions, Some(0));
        assert_eq!(new.acquire_time, Some(MicroTime(time)));
    }

    #[test]
    fn only_our_own_lease_is_let_go() {
        let (election, time) = (Election::new("ours".to_owned()), Timestamp::UNIX_EPOCH);
        assert_eq!(
            election.release(Some(&found("theirs", Some(15), 10)), time),
            None
        );
        assert_eq!(election.release(None, time), None);
        let freed = election.release(Some(&found("ours", Some(15), 10)), time);
        let freed = freed.expect("ours to give");
        assert_eq!(freed.holder_identity.as_deref(), Some(""));
        assert_eq!(freed.lease_duration_seconds, Some(1));
        assert_eq!(freed.lease_transitions, Some(7));
    }
}
