//! The clock of checkpoints: it goes on while the host sleeps, and no one sets it.

use std::time::Duration;

use nix::time::{ClockId, clock_gettime};

/// A moment of this boot, in milliseconds since it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SinceBoot(pub u64);

impl SinceBoot {
    /// Now.
    pub fn now() -> Self {
        let now = clock_gettime(ClockId::CLOCK_BOOTTIME).map(Duration::from);
        let milliseconds = now.unwrap_or_default().as_millis();
        Self(u64::try_from(milliseconds).unwrap_or(u64::MAX))
    }

    /// How long ago it was.
    pub fn ago(self) -> Duration {
        Duration::from_millis(Self::now().0.saturating_sub(self.0))
    }
}
