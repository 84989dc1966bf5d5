//! A share of the workers, for nodes whose sidecars hang.
//!
//! A look at such a node lasts until a deadline, and comes again soon. However many they are, they
//! have a share and the other workers are for everyone else. Who finds the share taken waits outside,
//! in the order they came, and is woken when somebody is through.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use keelson_cluster::{Key, Queue};

/// A share of the workers.
#[derive(Debug, Default)]
pub struct Share(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    taken: usize,
    waiting: VecDeque<Key>,
}

impl Share {
    /// A place in the share of this size, for as long as it is held. Where there is none, the queue is
    /// told when there is.
    pub fn take<'a>(&'a self, most: usize, key: &Key, queue: &'a Queue<Key>) -> Option<Place<'a>> {
        let mut state = self.state();
        if state.taken < most.max(1) {
            state.taken += 1;
            state.waiting.retain(|it| it != key);
            return Some(Place { share: self, queue });
        }
        if !state.waiting.contains(key) {
            state.waiting.push_back(key.clone());
        }
        None
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in a share.
pub struct Place<'a> {
    share: &'a Share,
    queue: &'a Queue<Key>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let next = {
            let mut state = self.share.state();
            state.taken -= 1;
            state.waiting.pop_front()
        };
        if let Some(key) = next {
            self.queue.add(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key {
            namespace: "sei".to_owned(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn who_finds_the_share_taken_is_woken_in_the_order_they_came() {
        let (share, queue) = (Share::default(), Queue::new());
        let take = |name: &str| share.take(2, &key(name), &queue);
        let (one, other) = (take("a"), take("b"));
        assert!(one.is_some() && other.is_some());
        for name in ["c", "d", "c"] {
            assert!(take(name).is_none());
        }
        assert!(queue.is_empty());
        drop(one);
        assert_eq!(queue.len(), 1);
        let c = take("c");
        assert!(c.is_some());
        drop(other);
        drop(c);
        assert_eq!(queue.len(), 2, "c and d, each once");
        assert!(take("d").is_some());
    }

    #[test]
    fn a_share_of_few_workers_is_one_of_them() {
        let (share, queue) = (Share::default(), Queue::new());
        let one = share.take(0, &key("a"), &queue);
        assert!(one.is_some());
        assert!(share.take(0, &key("b"), &queue).is_none());
    }
}
