//! The queue: nothing lost, never two at once, the earliest time wins. Time is virtual.

use keelson_cluster::Queue;
use proptest::prelude::*;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::rc::Rc;
use std::time::Duration;
use tokio::time::{Instant, sleep, sleep_until, timeout};

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Runs the queue for this long and says which key was looked at when, in seconds.
async fn looks(
    queue: &Queue<&'static str>,
    workers: usize,
    last: u64,
    again: impl Fn(&str) -> Option<Duration>,
    takes: u64,
) -> Vec<(&'static str, u64)> {
    let (start, seen) = (Instant::now(), RefCell::new(Vec::new()));
    let work = queue.work(workers, |key| {
        seen.borrow_mut().push((key, start.elapsed().as_secs()));
        let again = again(key);
        async move {
            sleep(seconds(takes)).await;
            again
        }
    });
    let _ = timeout(seconds(last), work).await;
    seen.take()
}

#[tokio::test(start_paused = true)]
async fn a_key_added_twice_is_looked_at_once() {
    let queue = Queue::new();
    for key in ["a", "b", "a"] {
        queue.add(key);
    }
    assert_eq!((queue.len(), queue.waiting(), queue.working()), (2, 0, 0));
    let seen = looks(&queue, 1, 10, |_| None, 1).await;
    assert_eq!(seen, [("a", 0), ("b", 1)]);
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_somebody_waits_for_is_looked_at_before_all_others_and_once() {
    let queue = Queue::new();
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    queue.add_first("c");
    queue.add_first("d");
    queue.add("d");
    assert_eq!(queue.len(), 4);
    let seen = looks(&queue, 1, 60, |_| None, 1).await;
    assert_eq!(seen, [("c", 0), ("d", 1), ("a", 2), ("b", 3)]);
    assert!(queue.is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_somebody_waits_for_while_it_is_looked_at_is_looked_at_next() {
    let queue = Queue::new();
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    let other = queue.clone();
    let add = async move {
        sleep(Duration::from_millis(500)).await;
        other.add_first("a");
        other.add("a");
    };
    let (seen, ()) = tokio::join!(looks(&queue, 1, 60, |_| None, 1), add);
    assert_eq!(seen, [("a", 0), ("a", 1), ("b", 2), ("c", 3)]);
}

#[tokio::test(start_paused = true)]
async fn workers_look_at_different_keys_at_the_same_time() {
    let queue = Queue::new();
    for key in ["a", "b", "c"] {
        queue.add(key);
    }
    let seen = looks(&queue, 2, 60, |_| None, 10).await;
    assert_eq!(seen, [("a", 0), ("b", 0), ("c", 10)]);
}

#[tokio::test(start_paused = true)]
async fn what_is_added_while_it_is_looked_at_is_looked_at_once_more_afterwards() {
    let queue = Queue::new();
    queue.add("a");
    let adding = async {
        sleep(seconds(3)).await;
        queue.add("a");
        queue.add("a");
        pending::<()>().await;
    };
    let seen = tokio::select! {
        seen = looks(&queue, 4, 60, |_| None, 10) => seen,
        () = adding => Vec::new(),
    };
    assert_eq!(seen, [("a", 0), ("a", 10)]);
}

#[tokio::test(start_paused = true)]
async fn of_several_times_the_earliest_holds() {
    let queue = Queue::new();
    queue.add_after("a", seconds(30));
    queue.add_after("a", seconds(5));
    queue.add_after("a", seconds(20));
    queue.add_after("b", seconds(7));
    assert_eq!((queue.len(), queue.waiting()), (0, 2));
    let seen = looks(&queue, 1, 60, |_| None, 1).await;
    assert_eq!(seen, [("a", 5), ("b", 7)]);
}

#[tokio::test(start_paused = true)]
async fn a_look_says_when_to_look_again() {
    let queue = Queue::new();
    queue.add("a");
    let seen = looks(&queue, 1, 35, |_| Some(seconds(9)), 1).await;
    assert_eq!(seen, [("a", 0), ("a", 10), ("a", 20), ("a", 30)]);
}

#[tokio::test(start_paused = true)]
async fn a_time_that_was_asked_for_is_kept_through_a_look() {
    let queue = Queue::new();
    queue.add_after("a", seconds(20));
    queue.add("a");
    let seen = looks(&queue, 1, 60, |_| None, 1).await;
    assert_eq!(seen, [("a", 0), ("a", 20)]);
    // Also where the time comes in the middle of a look.
    queue.add_after("a", seconds(5));
    queue.add("a");
    let seen = looks(&queue, 3, 60, |_| None, 10).await;
    assert_eq!(seen, [("a", 0), ("a", 10)]);
}

#[tokio::test(start_paused = true)]
async fn work_that_is_dropped_gives_its_keys_back() {
    let queue = Queue::new();
    queue.add("a");
    queue.add("b");
    let seen = looks(&queue, 1, 5, |_| None, 10).await;
    assert_eq!(seen, [("a", 0)]);
    assert_eq!((queue.len(), queue.working()), (2, 0));
    let seen = looks(&queue, 2, 60, |_| None, 10).await;
    assert_eq!(
        seen.into_iter().collect::<BTreeSet<_>>(),
        [("a", 0), ("b", 0)].into()
    );
}

/// Somebody adds a key, at a time, for a while later or for now.
#[derive(Clone, Debug)]
struct Addition {
    at: u64,
    key: u8,
    after: Option<u64>,
    /// Before all others, where it is for now.
    first: bool,
}

fn additions() -> impl Strategy<Value = Vec<Addition>> {
    let after = proptest::option::of(0..50_u64);
    let one = (0..100_u64, 0..4_u8, after, any::<bool>());
    let one = one.prop_map(|(at, key, after, first)| Addition {
        at,
        key,
        after,
        first,
    });
    proptest::collection::vec(one, 1..40)
}

/// When each look began and ended, by key, in seconds.
async fn history(
    additions: Vec<Addition>,
    workers: usize,
    takes: u64,
) -> BTreeMap<u8, Vec<(u64, u64)>> {
    let queue = Queue::new();
    let start = Instant::now();
    let seen = Rc::new(RefCell::new(BTreeMap::<u8, Vec<(u64, u64)>>::new()));
    let add = async {
        let mut additions = additions;
        additions.sort_by_key(|it| it.at);
        for it in additions {
            sleep_until(start + seconds(it.at)).await;
            match it.after {
                None if it.first => queue.add_first(it.key),
                None => queue.add(it.key),
                Some(after) => queue.add_after(it.key, seconds(after)),
            }
        }
        pending::<()>().await;
    };
    let work = queue.work(workers, |key| {
        let seen = seen.clone();
        async move {
            let began = start.elapsed().as_secs();
            sleep(seconds(takes)).await;
            let ended = start.elapsed().as_secs();
            seen.borrow_mut()
                .entry(key)
                .or_default()
                .push((began, ended));
            None
        }
    });
    let _ = timeout(seconds(10_000), async { tokio::join!(add, work) }).await;
    assert_eq!((queue.len(), queue.waiting(), queue.working()), (0, 0, 0));
    seen.take()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn nothing_is_lost_and_no_key_is_looked_at_twice_at_once(
        additions in additions(),
        workers in 1..4_usize,
        takes in 0..20_u64,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        let seen = runtime.block_on(history(additions.clone(), workers, takes));
        for looks in seen.values() {
            for pair in looks.windows(2) {
                prop_assert!(pair[0].1 <= pair[1].0, "two at once: {looks:?}");
            }
        }
        for it in &additions {
            // The look that serves an addition begins at or after its time.
            let due = it.at + it.after.unwrap_or(0);
            let looks = seen.get(&it.key).cloned().unwrap_or_default();
            let earlier = additions.iter().any(|other| {
                let at = other.at + other.after.unwrap_or(0);
                // An earlier time for the same key stands for the later ones asked for meanwhile.
                other.key == it.key && it.after.is_some() && at <= due && at >= it.at
                    && looks.iter().any(|look| look.0 >= at)
            });
            let served = looks.iter().any(|look| look.0 >= due);
            prop_assert!(served || earlier, "{it:?} is lost: {looks:?}");
        }
        let count: usize = seen.values().map(Vec::len).sum();
        prop_assert!(count <= additions.len(), "no look without an addition");
    }
}
