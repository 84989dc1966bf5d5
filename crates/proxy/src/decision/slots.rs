//! How many reviews are at the API server at once.
//!
//! Most of the slots are for anybody, an eighth only for renewing answers in use: a flood of unknown
//! tokens must not keep known ones from being renewed. Who may wait for a slot at all is decided
//! elsewhere.

use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub(super) struct Slots {
    general: Arc<Semaphore>,
    reserved: Arc<Semaphore>,
}

/// One review at the API server, as long as this is held.
pub(super) struct Slot {
    _permit: OwnedSemaphorePermit,
}

impl Slots {
    pub(super) fn new(in_flight: usize) -> Slots {
        let in_flight = in_flight.clamp(1, Semaphore::MAX_PERMITS);
        let reserved = in_flight / 8;
        Slots {
            general: Arc::new(Semaphore::new(in_flight - reserved)),
            reserved: Arc::new(Semaphore::new(reserved)),
        }
    }

    /// Waits for a turn, first come, first served.
    pub(super) async fn turn(&self) -> Option<Slot> {
        let permit = self.general.clone().acquire_owned().await.ok()?;
        Some(Slot { _permit: permit })
    }

    /// A slot for a renewal, if one is free.
    pub(super) fn spare(&self) -> Option<Slot> {
        let permit = self
            .reserved
            .clone()
            .try_acquire_owned()
            .or_else(|_| self.general.clone().try_acquire_owned())
            .ok()?;
        Some(Slot { _permit: permit })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[test]
    fn an_eighth_of_the_slots_is_kept_for_renewals_and_all_together_are_the_limit() {
        for (in_flight, general) in [(64, 56), (8, 7), (7, 7), (1, 1), (0, 1)] {
            let slots = Slots::new(in_flight);
            let turns: Vec<Slot> = std::iter::from_fn(|| slots.turn().now_or_never()?).collect();
            assert_eq!(turns.len(), general, "of {in_flight}");
            let spare: Vec<Slot> = std::iter::from_fn(|| slots.spare()).collect();
            assert_eq!(
                turns.len() + spare.len(),
                in_flight.max(1),
                "of {in_flight}"
            );
        }
    }

    #[test]
    fn renewals_may_use_every_slot_and_give_them_back() {
        let slots = Slots::new(64);
        for _ in 0..2 {
            let spare: Vec<Slot> = std::iter::from_fn(|| slots.spare()).collect();
            assert_eq!(spare.len(), 64);
            assert!(slots.turn().now_or_never().is_none());
        }
    }
}
