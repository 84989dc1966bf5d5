//! How long a connection is waited for, by what it is at.
//!
//! Three states: the head of a request is due, a request is under way, or nothing is asked for. The
//! first request is due from the first moment on, as with Go's server: a connection that never says a
//! word costs a place and gives nothing back. A later head is due from its first byte on; until then
//! the connection is idle. HTTP/2 has no heads to wait for: once it is spoken, a connection without
//! streams is idle. Bodies, long answers and tunnels are never hurried.
//!
//! [`Pulse`] is told what happens and has no clock. [`Watch`] looks at it whenever the connection has
//! been driven, so that a request that is answered at once sets no timer.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// What a connection is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The head of a request is due.
    Head,
    /// A request is under way.
    Busy,
    /// Nothing is asked for.
    Idle,
}

/// How long each state may last; nothing for ever.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    pub(super) head: Option<Duration>,
    pub(super) idle: Option<Duration>,
}

impl Patience {
    fn with(&self, phase: Phase) -> Option<Duration> {
        match phase {
            Phase::Head => self.head,
            Phase::Idle => self.idle,
            Phase::Busy => None,
        }
    }
}

/// What has happened on a connection.
#[derive(Debug)]
pub(super) struct Pulse {
    begun: AtomicU64,
    ended: AtomicU64,
    /// Writes while no request is under way: the rest of an answer on its way to a slow reader.
    flushed: AtomicU64,
    /// Every read and write.
    moved: AtomicU64,
    head_due: AtomicBool,
    http2: AtomicBool,
}

impl Pulse {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            begun: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            flushed: AtomicU64::new(0),
            moved: AtomicU64::new(0),
            head_due: AtomicBool::new(true),
            http2: AtomicBool::new(false),
        })
    }

    /// A request has arrived; it is under way until what this returns is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Begun {
        self.begun.fetch_add(1, Ordering::Relaxed);
        self.head_due.store(false, Ordering::Relaxed);
        Begun(Arc::clone(self))
    }

    /// Bytes came in.
    pub(super) fn read(&self) {
        self.moved.fetch_add(1, Ordering::Relaxed);
        if !self.busy() && !self.http2.load(Ordering::Relaxed) {
            self.head_due.store(true, Ordering::Relaxed);
        }
    }

    /// Bytes went out. An HTTP/2 connection writes on its own account; that is no sign of life.
    pub(super) fn wrote(&self) {
        self.moved.fetch_add(1, Ordering::Relaxed);
        if !self.busy() && !self.http2.load(Ordering::Relaxed) {
            self.flushed.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The connection speaks HTTP/2.
    pub(super) fn speaks_http2(&self) {
        self.http2.store(true, Ordering::Relaxed);
        self.head_due.store(false, Ordering::Relaxed);
    }

    /// How often bytes have moved so far.
    pub(super) fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    fn busy(&self) -> bool {
        self.begun.load(Ordering::Relaxed) != self.ended.load(Ordering::Relaxed)
    }

    fn stamp(&self) -> Stamp {
        let phase = match (self.busy(), self.head_due.load(Ordering::Relaxed)) {
            (true, _) => Phase::Busy,
            (false, true) => Phase::Head,
            (false, false) => Phase::Idle,
        };
        let quiet = match phase {
            // A head is not prolonged by its own bytes.
            Phase::Busy | Phase::Head => 0,
            Phase::Idle => self.flushed.load(Ordering::Relaxed),
        };
        let ended = self.ended.load(Ordering::Relaxed);
        Stamp {
            phase,
            ended,
            quiet,
        }
    }
}

/// A request under way.
#[derive(Debug)]
pub(super) struct Begun(Arc<Pulse>);

impl Drop for Begun {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Ordering::Relaxed);
    }
}

/// While this stays the same, the same wait goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    phase: Phase,
    ended: u64,
    quiet: u64,
}

/// Why a connection is waited for no longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Overdue {
    /// Its first request did not come in time.
    First,
    /// It was idle for too long, or a later head did not come in time.
    Later,
}

/// Watches one connection.
#[derive(Debug)]
pub(super) struct Watch {
    pulse: Arc<Pulse>,
    patience: Patience,
    seen: Stamp,
    since: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Watch {
    pub(super) fn new(pulse: Arc<Pulse>, patience: Patience) -> Self {
        let now = Instant::now();
        let seen = pulse.stamp();
        let wait = patience.with(seen.phase).or(patience.idle);
        let due = wait.and_then(|wait| now.checked_add(wait)).unwrap_or(now);
        Self {
            pulse,
            patience,
            seen,
            since: now,
            timer: Box::pin(sleep_until(due)),
        }
    }

    /// To be polled whenever the connection has been. A timer that is early is set anew when it
    /// fires, so that it need not be touched by every request.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Overdue> {
        let stamp = self.pulse.stamp();
        let Some(wait) = self.patience.with(stamp.phase) else {
            self.seen = stamp;
            return Poll::Pending;
        };
        if stamp != self.seen {
            self.seen = stamp;
            self.since = Instant::now();
        }
        let Some(due) = self.since.checked_add(wait) else {
            return Poll::Pending;
        };
        if self.timer.deadline() > due {
            self.timer.as_mut().reset(due);
        }
        loop {
            ready!(self.timer.as_mut().poll(cx));
            if Instant::now() >= due {
                return Poll::Ready(match (stamp.phase, stamp.ended) {
                    (Phase::Head, 0) => Overdue::First,
                    _ => Overdue::Later,
                });
            }
            self.timer.as_mut().reset(due);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::future::poll_fn;
    use tokio::time::advance;

    const PATIENCE: Patience = Patience {
        head: Some(Duration::from_secs(10)),
        idle: Some(Duration::from_secs(120)),
    };

    fn seconds(count: u64) -> Duration {
        Duration::from_secs(count)
    }

    fn look(watch: &mut Watch) -> Option<Overdue> {
        poll_fn(|cx| watch.poll(cx)).now_or_never()
    }

    /// Looks as a task would: now, and at the last moment of the wait; then at its end.
    async fn lasts(watch: &mut Watch, wait: Duration) -> Option<Overdue> {
        assert_eq!(look(watch), None);
        advance(wait - Duration::from_millis(5)).await;
        assert_eq!(look(watch), None, "just before {wait:?}");
        advance(Duration::from_millis(10)).await;
        look(watch)
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_says_nothing_has_the_time_of_a_head() {
        let mut watch = Watch::new(Pulse::new(), PATIENCE);
        assert_eq!(lasts(&mut watch, seconds(10)).await, Some(Overdue::First));
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_of_a_head_do_not_prolong_it() {
        let pulse = Pulse::new();
        let mut watch = Watch::new(Arc::clone(&pulse), PATIENCE);
        for _ in 0..9 {
            pulse.read();
            assert_eq!(look(&mut watch), None);
            advance(seconds(1)).await;
        }
        pulse.read();
        assert_eq!(lasts(&mut watch, seconds(1)).await, Some(Overdue::First));
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_under_way_is_never_overdue() {
        let pulse = Pulse::new();
        let mut watch = Watch::new(Arc::clone(&pulse), PATIENCE);
        pulse.read();
        let begun = pulse.begin();
        for _ in 0..100 {
            pulse.read();
            pulse.wrote();
            assert_eq!(look(&mut watch), None);
            advance(seconds(1000)).await;
        }
        drop(begun);
        assert_eq!(lasts(&mut watch, seconds(120)).await, Some(Overdue::Later));
    }

    #[tokio::test(start_paused = true)]
    async fn between_requests_it_is_idle_until_the_first_byte_of_the_next_head() {
        let pulse = Pulse::new();
        let mut watch = Watch::new(Arc::clone(&pulse), PATIENCE);
        drop(pulse.begin());
        assert_eq!(look(&mut watch), None);
        advance(seconds(100)).await;
        assert_eq!(
            look(&mut watch),
            None,
            "idle for longer than a head may take"
        );
        pulse.read();
        assert_eq!(lasts(&mut watch, seconds(10)).await, Some(Overdue::Later));
    }

    #[tokio::test(start_paused = true)]
    async fn each_request_begins_the_idle_time_anew() {
        let pulse = Pulse::new();
        let mut watch = Watch::new(Arc::clone(&pulse), PATIENCE);
        for _ in 0..5 {
            drop(pulse.begin());
            assert_eq!(look(&mut watch), None);
            advance(seconds(119)).await;
            assert_eq!(look(&mut watch), None);
        }
        // The rest of an answer that a slow client is still reading is a sign of life.
        pulse.wrote();
        assert_eq!(lasts(&mut watch, seconds(120)).await, Some(Overdue::Later));
    }

    #[tokio::test(start_paused = true)]
    async fn http2_without_a_stream_is_idle_whatever_frames_pass() {
        let pulse = Pulse::new();
        let mut watch = Watch::new(Arc::clone(&pulse), PATIENCE);
        pulse.read();
        pulse.speaks_http2();
        for _ in 0..119 {
            pulse.read();
            pulse.wrote();
            assert_eq!(look(&mut watch), None);
            advance(seconds(1)).await;
        }
        assert_eq!(lasts(&mut watch, seconds(1)).await, Some(Overdue::Later));
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_switched_off_is_never_overdue() {
        let patience = Patience {
            head: None,
            idle: None,
        };
        let pulse = Pulse::new();
        let mut watch = Watch::new(Arc::clone(&pulse), patience);
        for _ in 0..3 {
            advance(seconds(100_000)).await;
            assert_eq!(look(&mut watch), None);
            drop(pulse.begin());
        }
    }
}
