//! Renewed certificates that are there and not served: since when, and whether that is too long.
//!
//! What is served is for `sight` to find out, and what is said about it for whoever asks here.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use keelson_cluster::Key;
use keelson_tls::certificate::Fingerprint;
use tokio::time::Instant;

/// How long a kubelet and a proxy may take to bring a certificate before somebody is told.
const PATIENCE: Duration = Duration::from_secs(300);

/// Certificates that are not served yet, by node.
#[derive(Debug)]
pub struct Loading {
    patience: Duration,
    waits: Mutex<HashMap<Key, Wait>>,
}

#[derive(Debug)]
struct Wait {
    leaf: Fingerprint,
    since: Instant,
    told: bool,
}

impl Default for Loading {
    fn default() -> Self {
        Self::patient_for(PATIENCE)
    }
}

impl Loading {
    /// Nothing is waited for yet; what will be, for so long before somebody is told.
    pub fn patient_for(patience: Duration) -> Self {
        Self {
            patience,
            waits: Mutex::default(),
        }
    }

    /// Notes that a node does not serve this certificate yet. Says so once, when it has not for too
    /// long.
    pub fn waits(&self, key: &Key, leaf: Fingerprint) -> bool {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        let begun = || Wait {
            leaf,
            since: Instant::now(),
            told: false,
        };
        let wait = waits.entry(key.clone()).or_insert_with(begun);
        if wait.leaf != leaf {
            *wait = begun();
        }
        let overdue = !wait.told && wait.since.elapsed() >= self.patience;
        wait.told |= overdue;
        overdue
    }

    /// Notes that a node serves what it should, or is gone.
    pub fn over(&self, key: &Key) {
        let mut waits = self.waits.lock().unwrap_or_else(PoisonError::into_inner);
        waits.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::advance;

    fn key() -> Key {
        Key {
            namespace: "chain".to_owned(),
            name: "node".to_owned(),
        }
    }

    fn leaf(digit: &str) -> Fingerprint {
        digit.repeat(64).parse().expect("a fingerprint")
    }

    #[tokio::test(start_paused = true)]
    async fn a_certificate_not_served_for_five_minutes_is_told_once() {
        let loading = Loading::default();
        assert!(!loading.waits(&key(), leaf("a")));
        advance(Duration::from_secs(299)).await;
        assert!(!loading.waits(&key(), leaf("a")));
        advance(Duration::from_secs(1)).await;
        assert!(loading.waits(&key(), leaf("a")));
        assert!(!loading.waits(&key(), leaf("a")));
    }

    #[tokio::test(start_paused = true)]
    async fn each_certificate_has_its_own_five_minutes() {
        let loading = Loading::default();
        assert!(!loading.waits(&key(), leaf("a")));
        advance(PATIENCE).await;
        // Another one came meanwhile.
        assert!(!loading.waits(&key(), leaf("b")));
        advance(PATIENCE).await;
        assert!(loading.waits(&key(), leaf("b")));
        // What is served is waited for no longer.
        loading.over(&key());
        assert!(!loading.waits(&key(), leaf("b")));
    }
}
