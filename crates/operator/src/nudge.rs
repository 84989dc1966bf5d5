//! When a kubelet is asked to look at a pod again, so that it brings a file that changed.
//!
//! A kubelet that has not heard of the change yet brings the old file once more: so it is asked again
//! soon, and then less and less often.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use keelson_api::names::Annotation;
use keelson_cluster::{Calls, Error, Key};
use serde_json::json;
use tokio::time::Instant;

/// How long a kubelet is given the first time, and twice as long each time after.
const FIRST: Duration = Duration::from_secs(1);

/// How long it is given at most.
const MOST: Duration = Duration::from_secs(10);

/// After so long it is about another change.
const ANOTHER: Duration = Duration::from_secs(30);

/// Writes the time into an annotation of a pod, which has its kubelet look at it now. Another pod of
/// this name is a conflict; none is there where it is gone.
pub async fn annotate(
    calls: &Calls,
    pod: &Key,
    uid: &str,
    annotation: Annotation,
) -> Result<Option<Pod>, Error> {
    let now = Timestamp::now().to_string();
    let patch = json!({ "metadata": {
        "uid": uid,
        "annotations": { annotation.as_str(): now },
    }});
    calls.merge(&pod.namespace, &pod.name, &patch).await
}

/// Kubelets that were asked, by what they were asked for: a node, or a pod.
#[derive(Default)]
pub struct Nudges(Mutex<HashMap<Key, Nudge>>);

struct Nudge {
    last: Instant,
    times: u32,
}

impl Nudges {
    /// Whether it is time to ask; then it counts as asked.
    pub fn is_due(&self, key: &Key) -> bool {
        let mut nudges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let times = match nudges.get(key) {
            Some(nudge) => match now.duration_since(nudge.last) {
                since if since >= ANOTHER => 0,
                since if since < given(nudge.times) => return false,
                _ => nudge.times.saturating_add(1),
            },
            None => 0,
        };
        nudges.insert(key.clone(), Nudge { last: now, times });
        true
    }

    /// Forgets all but these.
    pub fn keep(&self, is_there: impl Fn(&Key) -> bool) {
        let mut nudges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        nudges.retain(|key, _| is_there(key));
    }

    /// Forgets one that is gone.
    pub fn forget(&self, key: &Key) {
        let mut nudges = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        nudges.remove(key);
    }
}

fn given(times: u32) -> Duration {
    FIRST.saturating_mul(1 << times.min(8)).min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_kubelet_is_asked_at_once_then_soon_then_now_and_again() {
        let (nudges, begun) = (Nudges::default(), Instant::now());
        let key = Key {
            namespace: "here".to_owned(),
            name: "node".to_owned(),
        };
        let mut asked = Vec::new();
        for _ in 0..60 {
            if nudges.is_due(&key) {
                asked.push(begun.elapsed().as_secs());
            }
            tokio::time::advance(Duration::from_millis(500)).await;
        }
        assert_eq!(asked, [0, 1, 3, 7, 15, 25]);
        tokio::time::advance(ANOTHER).await;
        assert!(nudges.is_due(&key));
        tokio::time::advance(FIRST).await;
        assert!(nudges.is_due(&key), "another change begins anew");
    }
}
