//! When to look for what nobody uses any more: now and then, on the way of something else.

use std::time::Duration;
use tokio::time::Instant;

/// Looking costs a pass over everything, so it is not done each time.
const EVERY: Duration = Duration::from_secs(10);

/// When it was last done.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    last: Option<Instant>,
}

impl Sweep {
    /// Whether it is time again; if so, the time starts anew.
    pub(super) fn due(&mut self, now: Instant) -> bool {
        let due = self.last.is_none_or(|last| now >= last + EVERY);
        if due {
            self.last = Some(now);
        }
        due
    }
}
