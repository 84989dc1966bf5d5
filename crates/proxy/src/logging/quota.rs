//! How often the same kind of line is written: a client must not be able to fill the log.
//!
//! [`Quota`] is a pure value on a clock value. `Quotas` keeps one for each place in the source that
//! says something, and tells at the end of each span how many lines were left out. Lines that were
//! asked for one by one, those of higher verbosity and of the access log, are not limited, nor are those
//! that are said once.

use super::klog::Said;
use super::{ACCESS, ONCE};
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tracing::callsite::Identifier;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::layer::{Context, Layer};

/// Lines of one kind in one span of time.
const LINES: u32 = 10;
/// The span.
pub(super) const SPAN: Duration = Duration::from_secs(10);
/// The target of the lines that tell of others.
const LEFT_OUT: &str = "keelson_proxy::left_out";

/// What is left for one kind of line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    since: Instant,
    written: u32,
    left_out: u64,
}

impl Quota {
    /// A whole one.
    pub fn new(now: Instant) -> Self {
        Self {
            since: now,
            written: 0,
            left_out: 0,
        }
    }

    /// Whether a line is written now.
    pub fn take(&mut self, now: Instant) -> bool {
        // While there is something to tell, a new span begins by telling it.
        if self.left_out == 0 && now >= self.since + SPAN {
            *self = Self::new(now);
        }
        let room = self.written < LINES;
        match room {
            true => self.written += 1,
            false => self.left_out += 1,
        }
        room
    }

    /// How many lines were left out in a span that is over; a new one begins.
    pub fn tell(&mut self, now: Instant) -> Option<u64> {
        if self.left_out == 0 || now < self.since + SPAN {
            return None;
        }
        self.rest(now)
    }

    /// How many lines were left out so far; a new span begins.
    fn rest(&mut self, now: Instant) -> Option<u64> {
        let left_out = std::mem::replace(self, Self::new(now)).left_out;
        (left_out > 0).then_some(left_out)
    }
}

struct Kind {
    quota: Quota,
    /// What the first line that was left out would have said.
    message: String,
}

/// A quota for each kind of line.
#[derive(Default)]
pub(super) struct Quotas(Mutex<HashMap<Identifier, Kind>>);

impl Quotas {
    fn kinds(&self) -> MutexGuard<'_, HashMap<Identifier, Kind>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn takes(&self, event: &Event<'_>) -> bool {
        let metadata = event.metadata();
        let free = [ACCESS, ONCE, LEFT_OUT].contains(&metadata.target());
        if free || *metadata.level() > Level::INFO {
            return true;
        }
        let now = Instant::now();
        let mut kinds = self.kinds();
        let kind = kinds.entry(metadata.callsite()).or_insert_with(|| Kind {
            quota: Quota::new(now),
            message: String::new(),
        });
        let taken = kind.quota.take(now);
        if !taken && kind.message.is_empty() {
            let mut said = Said::default();
            event.record(&mut said);
            kind.message = said.message;
        }
        taken
    }

    /// Tells what was left out in spans that are over.
    pub(super) fn tell(&self) {
        self.tell_by(Quota::tell);
    }

    /// Tells all that was left out.
    pub(super) fn tell_all(&self) {
        self.tell_by(Quota::rest);
    }

    fn tell_by(&self, told: impl Fn(&mut Quota, Instant) -> Option<u64>) {
        let now = Instant::now();
        let told: Vec<(u64, String)> = self
            .kinds()
            .values_mut()
            .filter_map(|kind| Some((told(&mut kind.quota, now)?, kind.message.clone())))
            .collect();
        for (count, like) in told {
            tracing::info!(target: LEFT_OUT, like, "{count} more lines like this were left out");
        }
    }
}

/// Leaves out what is beyond the quota.
pub(super) struct Limited(pub(super) std::sync::Arc<Quotas>);

impl<S: Subscriber> Layer<S> for Limited {
    fn event_enabled(&self, event: &Event<'_>, _: Context<'_, S>) -> bool {
        self.0.takes(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_is_written_and_the_rest_is_counted_until_it_is_told() {
        let start = Instant::now();
        let at = |seconds: u64| start + Duration::from_secs(seconds);
        let mut quota = Quota::new(start);
        let written = (0..25).filter(|_| quota.take(start)).count();
        assert_eq!(written, 10);
        assert_eq!(quota.tell(at(9)), None, "the span is not over");
        assert!(!quota.take(at(11)), "what was left out is told first");
        assert_eq!(quota.tell(at(11)), Some(16));
        assert_eq!(quota.tell(at(30)), None, "it is told once");
        assert!(quota.take(at(30)));
    }

    #[test]
    fn lines_that_come_seldom_are_all_written_and_nothing_is_told() {
        let start = Instant::now();
        let mut quota = Quota::new(start);
        for second in 0..200 {
            let now = start + Duration::from_secs(second);
            assert!(quota.take(now), "at {second} s");
            assert_eq!(quota.tell(now), None);
        }
    }
}
