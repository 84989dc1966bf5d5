//! How fast the API server may be called by everybody together (`--kube-api-qps`): one bucket for
//! both questions, and a line before it.
//!
//! Who waits for too long leaves the line, with nothing taken. How long is too long is the engine's.

use super::limiter::{Bucket, Rate};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

/// A shared bucket.
#[derive(Debug)]
pub struct Pace {
    rate: Rate,
    bucket: Mutex<Bucket>,
}

impl Pace {
    /// A full bucket.
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            bucket: Mutex::new(Bucket::full(Instant::now())),
        }
    }

    /// Waits for a turn, first come, first served.
    pub async fn turn(&self) {
        let mut bucket = self.bucket.lock().await;
        loop {
            match bucket.take(Instant::now(), &self.rate) {
                Ok(left) => {
                    *bucket = left;
                    return;
                }
                Err(wait) => sleep(wait).await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    const RATE: Rate = Rate {
        per_second: 5.0,
        burst: 2,
    };

    #[tokio::test(start_paused = true)]
    async fn turns_come_in_a_burst_and_then_at_the_rate() {
        let (pace, start) = (Pace::new(RATE), Instant::now());
        let mut at = Vec::new();
        for _ in 0..5 {
            pace.turn().await;
            at.push(start.elapsed().as_millis());
        }
        // The timer's grain is a millisecond.
        let expected = [0, 0, 200, 400, 600];
        let close = |(at, expected): (&u128, &u128)| at.abs_diff(*expected) <= 3;
        assert!(at.iter().zip(&expected).all(close), "{at:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_leaves_the_line_has_taken_nothing() {
        let (pace, start) = (Pace::new(RATE), Instant::now());
        pace.turn().await;
        pace.turn().await;
        for _ in 0..10 {
            let left = timeout(Duration::from_millis(10), pace.turn()).await;
            left.expect_err("a wait");
        }
        pace.turn().await;
        let waited = start.elapsed().as_millis();
        assert!((200..210).contains(&waited), "{waited} ms");
    }
}
