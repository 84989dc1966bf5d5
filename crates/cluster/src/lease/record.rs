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
