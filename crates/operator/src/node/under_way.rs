//! Which nodes are under way, and how long each may keep to itself how far it is.
//!
//! Most tasks are over before anyone could read that they were begun, so a status that only says how
//! far a plan is waits a little to be written. The API server is what all nodes wait for, and saying
//! how far each is would hold up all: the more of them are under way the longer each waits, so that all
//! together say it about three times a second.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use keelson_cluster::Key;
use tokio::time::Instant;

/// How long mere progress waits where few nodes are under way.
const PATIENCE: Duration = Duration::from_secs(3);

/// With so many nodes under way it waits twice as long, with twice as many three times.
const CROWD: usize = 10;

/// Nodes with a plan.
#[derive(Default)]
pub struct UnderWay(Mutex<HashMap<Key, Written>>);

/// When the status of a node was last written.
struct Written {
    at: Instant,
    /// How long progress had to wait then. The last of many nodes wait as long as the first.
    patience: Duration,
}

impl UnderWay {
    /// The node's status was written: with a plan in it, or without.
    pub fn wrote(&self, key: &Key, planned: bool) {
        let mut nodes = self.nodes();
        nodes.remove(key);
        if planned {
            let written = Written {
                at: Instant::now(),
                patience: patience(nodes.len() + 1),
            };
            nodes.insert(key.clone(), written);
        }
    }

    /// Forgets a node that is gone.
    pub fn forget(&self, key: &Key) {
        self.nodes().remove(key);
    }

    /// How much longer mere progress of this node has to wait; nothing if it may be written.
    pub fn rest(&self, key: &Key) -> Option<Duration> {
        let nodes = self.nodes();
        let written = nodes.get(key)?;
        let patience = patience(nodes.len()).max(written.patience);
        let rest = patience.saturating_sub(written.at.elapsed());
        (!rest.is_zero()).then_some(rest)
    }

    fn nodes(&self) -> MutexGuard<'_, HashMap<Key, Written>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn patience(nodes: usize) -> Duration {
    let times = u32::try_from(nodes / CROWD).unwrap_or(u32::MAX);
    PATIENCE.saturating_mul(times.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(index: usize) -> Key {
        Key {
            namespace: "here".to_owned(),
            name: format!("node-{index}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn progress_waits_for_as_long_as_so_many_nodes_make_it() {
        let under_way = UnderWay::default();
        assert_eq!(under_way.rest(&key(0)), None, "nothing was written yet");
        under_way.wrote(&key(0), true);
        assert_eq!(under_way.rest(&key(0)), Some(PATIENCE));
        tokio::time::advance(PATIENCE).await;
        assert_eq!(under_way.rest(&key(0)), None);
        (1..CROWD).for_each(|index| under_way.wrote(&key(index), true));
        assert_eq!(under_way.rest(&key(0)), Some(PATIENCE));
        let last = &key(CROWD - 1);
        (0..CROWD - 1).for_each(|index| under_way.wrote(&key(index), false));
        assert_eq!(under_way.rest(&key(0)), None, "it is through");
        assert_eq!(under_way.rest(last), Some(2 * PATIENCE), "as the first");
    }

    #[test]
    fn however_many_nodes_are_under_way_they_write_a_few_times_a_second() {
        assert_eq!(patience(CROWD - 1), PATIENCE);
        assert_eq!(patience(CROWD), 2 * PATIENCE);
        for nodes in [1, 10, 100, 1_000, 10_000] {
            let a_second = nodes as f64 / patience(nodes).as_secs_f64();
            assert!(a_second <= 10.0 / 3.0, "{nodes}: {a_second}");
        }
        assert!(patience(usize::MAX) > patience(10_000));
    }
}
