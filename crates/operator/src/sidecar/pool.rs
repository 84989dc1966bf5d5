//! Connections that wait for the next call: at most one for each pod and transport.
//!
//! The lock is held for a look into a map and never while anything is awaited. A connection that was
//! verified is judged again by the pins of the call that takes it: what they trust may have changed.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

use super::Transport;
use super::connection::Connection;
use super::sweep::Sweep;

/// How long a connection waits for a call.
const IDLE: Duration = Duration::from_secs(90);
/// How many pods connections are kept to.
const PODS: usize = 20_000;

/// The connections that wait.
#[derive(Debug)]
pub(super) struct Pool {
    /// How many pods they are to, at most.
    most: usize,
    kept: Mutex<Kept>,
}

impl Default for Pool {
    fn default() -> Self {
        Self {
            most: PODS,
            kept: Mutex::default(),
        }
    }
}

#[derive(Debug, Default)]
struct Kept {
    pods: HashMap<String, Waiting>,
    sweep: Sweep,
}

/// The connections to one pod.
#[derive(Debug, Default)]
struct Waiting {
    plaintext: Option<Idle>,
    tls: Option<Idle>,
}

#[derive(Debug)]
struct Idle {
    connection: Connection,
    since: Instant,
}

impl Idle {
    fn usable(&mut self, now: Instant) -> bool {
        now < self.since + IDLE && !self.connection.is_closed()
    }
}

impl Waiting {
    fn over(&mut self, over: &Transport) -> &mut Option<Idle> {
        match over {
            Transport::Plaintext => &mut self.plaintext,
            Transport::Tls(_) => &mut self.tls,
        }
    }

    /// Lets go of what is of no use, and says whether anything is left.
    fn sweep(&mut self, now: Instant) -> bool {
        for idle in [&mut self.plaintext, &mut self.tls] {
            idle.take_if(|it| !it.usable(now));
        }
        self.plaintext.is_some() || self.tls.is_some()
    }
}

impl Pool {
    /// A connection to this pod that can be used, if one waits.
    pub(super) fn take(&self, pod_uid: &str, over: &Transport) -> Option<Connection> {
        let mut idle = self.kept().pods.get_mut(pod_uid)?.over(over).take()?;
        (idle.usable(Instant::now()) && idle.connection.is_trusted(over)).then_some(idle.connection)
    }

    /// Keeps a connection; the one that waited before is closed.
    pub(super) fn put(&self, pod_uid: &str, over: &Transport, connection: Connection) {
        let now = Instant::now();
        let mut kept = self.kept();
        if kept.sweep.due(now) {
            kept.pods.retain(|_, waiting| waiting.sweep(now));
        }
        if kept.pods.len() >= self.most && !kept.pods.contains_key(pod_uid) {
            return;
        }
        let waiting = kept.pods.entry(pod_uid.to_owned()).or_default();
        *waiting.over(over) = Some(Idle {
            connection,
            since: now,
        });
    }

    pub(super) fn forget(&self, pod_uid: &str) {
        self.kept().pods.remove(pod_uid);
    }

    /// How many connections can be used.
    pub(super) fn len(&self) -> usize {
        let now = Instant::now();
        let mut kept = self.kept();
        let waiting = kept.pods.values_mut();
        let idle = waiting.flat_map(|it| [&mut it.plaintext, &mut it.tls]);
        idle.flatten()
            .map(|it| it.usable(now))
            .filter(|it| *it)
            .count()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, DuplexStream, duplex};
    use tokio::time::timeout;

    const OVER: Transport = Transport::Plaintext;

    /// A connection, and its other end.
    fn connection() -> (Connection, DuplexStream) {
        let (near, far) = duplex(1024);
        (Connection::over(near, Vec::new()), far)
    }

    fn keep(pool: &Pool, pod_uid: &str) -> DuplexStream {
        let (connection, far) = connection();
        pool.put(pod_uid, &OVER, connection);
        far
    }

    /// Waits until the other end sees that the connection is closed.
    async fn closed(mut far: DuplexStream) {
        let mut byte = [0];
        let read = timeout(Duration::from_secs(20), far.read(&mut byte)).await;
        assert_eq!(read.expect("an end in time").expect("an end"), 0);
    }

    #[tokio::test]
    async fn connections_are_kept_to_so_many_pods_and_no_more() {
        let pool = Pool {
            most: 2,
            ..Pool::default()
        };
        let one = keep(&pool, "one");
        let _two = keep(&pool, "two");
        closed(keep(&pool, "three")).await;
        let _again = keep(&pool, "one");
        closed(one).await;
        assert_eq!(pool.len(), 2);
        assert!(pool.take("three", &OVER).is_none());
        assert!(pool.take("one", &OVER).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn what_waited_too_long_is_closed_when_another_is_kept() {
        let pool = Pool::default();
        let old = keep(&pool, "old");
        let gone = keep(&pool, "gone");
        drop(gone);
        tokio::time::advance(IDLE).await;
        let _new = keep(&pool, "new");
        closed(old).await;
        assert_eq!(pool.len(), 1);
    }
}
