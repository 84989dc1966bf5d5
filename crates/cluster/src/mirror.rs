//! A watch that keeps a projection of each object, and nothing else of it.
//!
//! A [`Mirror`] is what a controller reads instead of asking: filled and kept by
//! [`Mirror::follow`], corrected at once by the answers to the controller's own writes. Which state
//! of an object counts is decided in [`view`], how a watch is kept alive in [`follow`], how a list is
//! read in [`page`], what decisions wait for in [`needed`]. What a change means, and what is worth
//! keeping of an object, is the controller's.

mod follow;
mod needed;
mod page;
mod view;

use kube::runtime::watcher;
use kube::{Api, Resource};
pub use needed::Needed;
use serde::de::DeserializeOwned;
use std::fmt::{self, Debug, Display};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use view::View;

/// How long a watch may be out of order before readiness says so.
const STALE: Duration = Duration::from_secs(150);

/// How long a watch waits, and for what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// For a watch to open.
    pub opening: Duration,
    /// For a page of a list.
    pub page: Duration,
    /// For the server to end a watch, past the time it was asked to.
    pub grace: Duration,
    /// At most, after a failure, before the next attempt.
    pub longest_wait: Duration,
    /// Before the next look for a type that the server does not have.
    pub absent_wait: Duration,
}

impl Default for Patience {
    /// That of a controller, which has time.
    fn default() -> Self {
        Self {
            opening: Duration::from_secs(15),
            page: Duration::from_secs(60),
            grace: Duration::from_secs(10),
            longest_wait: Duration::from_secs(30),
            absent_wait: Duration::from_secs(15),
        }
    }
}

/// Which object: its namespace (empty for objects without) and its name.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Key {
    /// The namespace.
    pub namespace: String,
    /// The name.
    pub name: String,
}

impl Key {
    /// The key of an object.
    pub fn of(object: &impl Resource) -> Self {
        let meta = object.meta();
        Self {
            namespace: meta.namespace.clone().unwrap_or_default(),
            name: meta.name.clone().unwrap_or_default(),
        }
    }
}

impl Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.namespace.as_str() {
            "" => f.write_str(&self.name),
            namespace => write!(f, "{namespace}/{}", self.name),
        }
    }
}

/// What is known of all objects of a type. Clones share it.
pub struct Mirror<V> {
    inner: Arc<Inner<V>>,
}

struct Inner<V> {
    what: &'static str,
    patience: Patience,
    view: Mutex<View<V>>,
    synced: watch::Sender<bool>,
    answered: watch::Sender<bool>,
    in_order: watch::Sender<bool>,
    health: Mutex<Health>,
}

/// How the watch does.
struct Health {
    good: Instant,
    trouble: Option<String>,
}

impl<V> Clone for Mirror<V> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
        }
    }
}

impl<V: Send + Sync + 'static> Mirror<V> {
    /// An empty mirror; `what` names the objects in sentences, in the plural.
    pub fn new(what: &'static str) -> Self {
        Self::patient(what, Patience::default())
    }

    /// The same, whose watch waits as long as this.
    pub fn patient(what: &'static str, patience: Patience) -> Self {
        Self {
            inner: Arc::new(Inner {
                what,
                patience,
                view: Mutex::new(View::default()),
                synced: watch::Sender::new(false),
                answered: watch::Sender::new(false),
                in_order: watch::Sender::new(false),
                health: Mutex::new(Health {
                    good: Instant::now(),
                    trouble: None,
                }),
            }),
        }
    }

    /// What the objects are called.
    pub fn what(&self) -> &'static str {
        self.inner.what
    }

    /// What is known of an object.
    pub fn get(&self, key: &Key) -> Option<Arc<V>> {
        self.view().get(key)
    }

    /// Everything that is known, in no order.
    pub fn all(&self) -> Vec<(Key, Arc<V>)> {
        self.view().all()
    }

    /// How many objects are known.
    pub fn len(&self) -> usize {
        self.view().len()
    }

    /// Whether no object is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The answer to a write of our own: known from now on, and not undone by an event about an
    /// older state.
    pub fn note(&self, key: Key, version: &str, value: V) {
        self.view().note(key, version, value);
    }

    /// A delete of our own that left nothing of the object with this uid: not known any more, and not
    /// brought back by an event about a state of before.
    pub fn gone(&self, key: &Key, uid: &str) {
        self.view().gone(key, uid);
    }

    /// Whether the first list was complete once.
    pub fn is_synced(&self) -> bool {
        *self.inner.synced.borrow()
    }

    /// Waits until the first list is complete.
    pub async fn synced(&self) {
        let mut synced = self.inner.synced.subscribe();
        // The sender is in `self`, so it is not closed while we wait.
        let _ = synced.wait_for(|synced| *synced).await;
    }

    /// That the first list is complete.
    pub fn listed(&self) -> Needed {
        Needed::new(self.inner.what, self.inner.synced.subscribe())
    }

    /// That the server has said once what there is: everything, or that it does not have the type.
    pub fn answered(&self) -> Needed {
        Needed::new(self.inner.what, self.inner.answered.subscribe())
    }

    /// Whether all the server has ever said is that it does not have the type.
    pub fn is_absent(&self) -> bool {
        *self.inner.answered.borrow() && !self.is_synced()
    }

    /// Whether the watch that runs now was answered, and nothing was amiss since.
    pub fn is_in_order(&self) -> bool {
        *self.inner.in_order.borrow()
    }

    /// Waits until that is so.
    pub async fn in_order(&self) {
        let mut in_order = self.inner.in_order.subscribe();
        // The sender is in `self`, so it is not closed while we wait.
        let _ = in_order.wait_for(|in_order| *in_order).await;
    }

    /// What the watch last ran into, until it is answered again.
    pub fn trouble(&self) -> Option<String> {
        self.health().trouble.clone()
    }

    /// How long ago the watch last was known to be good: an event, a bookmark, a page of a list.
    pub fn last_event(&self) -> Duration {
        self.health().good.elapsed()
    }

    /// Whether what is known can be relied on; otherwise a sentence that names the watch and what
    /// it last ran into.
    pub fn readiness(&self) -> Result<(), String> {
        let health = self.health();
        let (synced, quiet) = (self.is_synced(), health.good.elapsed());
        if synced && quiet <= STALE {
            return Ok(());
        }
        let what = self.inner.what;
        let state = match synced {
            false => format!("the watch of {what} has not listed everything yet"),
            true => {
                let seconds = quiet.as_secs();
                format!("the watch of {what} has been out of order for {seconds} s")
            }
        };
        Err(match &health.trouble {
            Some(trouble) => format!("{state}: {trouble}"),
            None => state,
        })
    }

    /// Watches for ever: lists everything, then keeps up with changes; whatever breaks is tried
    /// again. `keep` says what to keep of an object, or that it is none of ours; `changed` is told
    /// of every change, with what it was told before and what is there now. Objects that vanished
    /// while the watch was down are told of too.
    ///
    /// Of `config` the selectors, the page size and the timeout are used.
    pub async fn follow<K>(
        self,
        api: Api<K>,
        config: watcher::Config,
        keep: impl Fn(K) -> Option<V> + Send,
        changed: impl Fn(&Key, Option<&V>, Option<&V>) + Send,
    ) where
        K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    {
        follow::Follow::new(self, api, config, keep, changed)
            .run()
            .await;
    }

    fn view(&self) -> MutexGuard<'_, View<V>> {
        let view = &self.inner.view;
        view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn health(&self) -> MutexGuard<'_, Health> {
        let health = &self.inner.health;
        health.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_good(&self) {
        let mut health = self.health();
        health.good = Instant::now();
        health.trouble = None;
        self.set_in_order(true);
    }

    fn set_in_order(&self, now: bool) {
        let in_order = &self.inner.in_order;
        in_order.send_if_modified(|before| std::mem::replace(before, now) != now);
    }

    fn is_in_trouble(&self, trouble: String) {
        let mut health = self.health();
        // The same again is no news: a cluster without cert-manager has no Certificates all day.
        if health.trouble.as_ref() != Some(&trouble) {
            tracing::warn!(watch = self.inner.what, "Watch failed: {trouble}");
        }
        health.trouble = Some(trouble);
        self.set_in_order(false);
    }
}
