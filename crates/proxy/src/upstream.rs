//! The way to what the proxy stands before: one place, few connections, each used again at once.
//!
//! Connections are kept in a stack, so a few stay busy and the rest age out; a request that finds
//! none dials one and waits for that alone. A request is sent once. The exception is the one case
//! where nothing can have happened: a kept connection turns out to be closed before a byte of the
//! request was written. Which requests come here, and with which headers, is decided before.

mod body;
mod dial;
mod lease;

pub use dial::{NotReached, Target};
pub use lease::Leased;

use body::Outgoing;
use dial::Dialled;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use lease::Lease;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How many connections are kept, and for how long.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Idle connections kept at most.
    pub idle: usize,
    /// How long an idle one is kept. Shorter than the upstream's own patience, or requests would
    /// meet connections it is just closing.
    pub idle_for: Duration,
    /// How long a new one may take.
    pub connect: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            idle: 256,
            idle_for: Duration::from_secs(50),
            connect: Duration::from_secs(5),
        }
    }
}

/// The upstream and its connections.
#[derive(Debug)]
pub struct Upstream {
    target: Target,
    limits: Limits,
    pool: Arc<Pool>,
    dialled: AtomicU64,
    reused: AtomicU64,
}

#[derive(Debug, Default)]
struct Pool {
    kept: Mutex<Kept>,
    limit: usize,
}

#[derive(Debug, Default)]
struct Kept {
    idle: Vec<Idle>,
    shared: Option<http2::SendRequest<Outgoing>>,
}

#[derive(Debug)]
struct Idle {
    sender: http1::SendRequest<Outgoing>,
    since: Instant,
}

/// Why the upstream did not answer.
#[derive(Debug, thiserror::Error)]
pub enum NotForwarded {
    /// There was no connection.
    #[error("the upstream was not reached")]
    NotReached(#[from] NotReached),
    /// The connection ended before the answer.
    #[error("the upstream ended the connection before its answer")]
    NotAnswered(#[source] hyper::Error),
}

impl NotForwarded {
    /// Whether it was the client: its body was malformed, or ended before its end.
    pub fn is_clients(&self) -> bool {
        match self {
            Self::NotReached(_) => false,
            Self::NotAnswered(error) => {
                let cause = std::error::Error::source(error);
                error.is_user() && cause.is_some_and(|cause| cause.is::<hyper::Error>())
            }
        }
    }
}

impl Upstream {
    /// An upstream nobody has connected to yet.
    pub fn new(target: Target, limits: Limits) -> Self {
        let pool = Pool {
            kept: Mutex::default(),
            limit: limits.idle,
        };
        Self {
            target,
            limits,
            pool: Arc::new(pool),
            dialled: AtomicU64::new(0),
            reused: AtomicU64::new(0),
        }
    }

    /// Forwards one request; the answer's body streams, and gives its connection back at its end.
    pub async fn send(&self, request: Request<Incoming>) -> Result<Response<Leased>, NotForwarded> {
        let request = request.map(Outgoing);
        if let Some(shared) = self.pool.shared() {
            self.reused.fetch_add(1, Ordering::Relaxed);
            return multiplexed(shared, request).await;
        }
        let mut request = request;
        while let Some(sender) = self.pool.take(self.limits.idle_for) {
            request = match self.try_on(sender, request).await {
                Ok(answer) => {
                    self.reused.fetch_add(1, Ordering::Relaxed);
                    return Ok(answer);
                }
                Err(Refused::Unsent(request)) => *request,
                Err(Refused::Failed(error)) => return Err(error),
            };
        }
        self.dialled.fetch_add(1, Ordering::Relaxed);
        // Boxed: a request that finds a connection is not to carry the room that making one takes.
        Box::pin(self.send_on_new(request)).await
    }

    async fn send_on_new(
        &self,
        request: Request<Outgoing>,
    ) -> Result<Response<Leased>, NotForwarded> {
        match self.target.dial(self.limits.connect).await? {
            Dialled::Shared(sender) => {
                self.pool.kept().shared = Some(sender.clone());
                multiplexed(sender, request).await
            }
            Dialled::Alone(sender) => match self.try_on(sender, request).await {
                Ok(answer) => Ok(answer),
                Err(Refused::Failed(error)) => Err(error),
                Err(Refused::Unsent(_)) => Err(NotReached::ClosedAtOnce.into()),
            },
        }
    }

    /// How many connections wait for a request.
    pub fn idle(&self) -> usize {
        self.pool.kept().idle.len()
    }

    /// How many requests took a new connection, and how many one that was there.
    pub fn uses(&self) -> (u64, u64) {
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        (read(&self.dialled), read(&self.reused))
    }

    async fn try_on(
        &self,
        mut sender: http1::SendRequest<Outgoing>,
        request: Request<Outgoing>,
    ) -> Result<Response<Leased>, Refused> {
        match sender.try_send_request(request).await {
            Ok(answer) => {
                let lease = Lease::new(Arc::downgrade(&self.pool), sender);
                Ok(answer.map(|body| Leased::new(body, Some(lease))))
            }
            Err(mut error) => Err(match error.take_message() {
                Some(request) => Refused::Unsent(Box::new(request)),
                None => Refused::Failed(NotForwarded::NotAnswered(error.into_error())),
            }),
        }
    }
}

enum Refused {
    /// Nothing was written: it can go elsewhere.
    Unsent(Box<Request<Outgoing>>),
    Failed(NotForwarded),
}

async fn multiplexed(
    mut sender: http2::SendRequest<Outgoing>,
    request: Request<Outgoing>,
) -> Result<Response<Leased>, NotForwarded> {
    let answer = sender.send_request(request).await;
    let answer = answer.map_err(NotForwarded::NotAnswered)?;
    Ok(answer.map(|body| Leased::new(body, None)))
}

impl Pool {
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn shared(&self) -> Option<http2::SendRequest<Outgoing>> {
        let mut kept = self.kept();
        if kept
            .shared
            .as_ref()
            .is_some_and(http2::SendRequest::is_closed)
        {
            kept.shared = None;
        }
        kept.shared.clone()
    }

    /// The connection given back last. One that is too old is older than all below it.
    fn take(&self, idle_for: Duration) -> Option<http1::SendRequest<Outgoing>> {
        let mut kept = self.kept();
        let now = Instant::now();
        while let Some(idle) = kept.idle.pop() {
            if now.duration_since(idle.since) >= idle_for {
                kept.idle.clear();
                return None;
            }
            if !idle.sender.is_closed() {
                return Some(idle.sender);
            }
        }
        None
    }

    /// A connection whose task has not yet seen the end of the answer is kept a moment later.
    fn give_back(self: &Arc<Self>, mut sender: http1::SendRequest<Outgoing>) {
        if sender.is_ready() {
            self.keep(sender);
        } else if !sender.is_closed() {
            let pool = Arc::downgrade(self);
            tokio::spawn(async move {
                if sender.ready().await.is_ok()
                    && let Some(pool) = pool.upgrade()
                {
                    pool.keep(sender);
                }
            });
        }
    }

    fn keep(&self, sender: http1::SendRequest<Outgoing>) {
        let mut kept = self.kept();
        if kept.idle.len() < self.limit {
            kept.idle.push(Idle {
                sender,
                since: Instant::now(),
            });
        }
    }
}
