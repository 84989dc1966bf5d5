//! One list-and-watch after another, for ever.
//!
//! Every step has a limit: opening, a page, the time without a sign of life. The server ends a
//! watch by itself after a while, so that a connection that died in silence is noticed soon after,
//! and says shortly before how far it was, so that resuming costs nothing. What a change means for
//! what is known is decided by the view.

use super::page::page;
use super::view::State;
use super::{Key, Mirror, Patience};
use crate::client::within;
use crate::error::Error;
use futures::StreamExt;
use futures::stream::BoxStream;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::runtime::watcher;
use kube::{Api, Resource};
use serde::de::DeserializeOwned;
use std::fmt::Debug;
use std::marker::PhantomData;
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, sleep, timeout};

/// After how many seconds the server ends a watch that is to go on for ever.
const TURN: u32 = 60;
/// The first wait after a failure; doubled by each that follows.
const FIRST_WAIT: Duration = Duration::from_millis(500);

type Events<K> = BoxStream<'static, kube::Result<WatchEvent<K>>>;

/// Where the next round starts.
enum Start {
    /// With a list.
    Nothing,
    /// After this version.
    Version(String),
}

pub(super) struct Follow<K, V, Keep, Changed> {
    mirror: Mirror<V>,
    api: Api<K>,
    config: watcher::Config,
    keep: Keep,
    changed: Changed,
    from: Start,
    failures: u32,
    patience: Patience,
    kind: PhantomData<fn(K)>,
}

impl<K, V, Keep, Changed> Follow<K, V, Keep, Changed>
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
    V: Send + Sync + 'static,
    Keep: Fn(K) -> Option<V> + Send,
    Changed: Fn(&Key, Option<&V>, Option<&V>) + Send,
{
    pub(super) fn new(
        mirror: Mirror<V>,
        api: Api<K>,
        mut config: watcher::Config,
        keep: Keep,
        changed: Changed,
    ) -> Self {
        config.timeout.get_or_insert(TURN);
        let patience = mirror.inner.patience;
        Self {
            mirror,
            api,
            config,
            keep,
            changed,
            from: Start::Nothing,
            failures: 0,
            patience,
            kind: PhantomData,
        }
    }

    pub(super) async fn run(mut self) {
        self.mirror.set_in_order(false);
        loop {
            let began = Instant::now();
            match self.round().await {
                Ok(()) => {}
                Err(Error::Api { cause, .. }) if is_expired(&cause) => self.from = Start::Nothing,
                Err(error) => {
                    let wait = self.wait_after(&error);
                    if error.is_absent() {
                        self.mirror.inner.answered.send_replace(true);
                    }
                    self.mirror.is_in_trouble(error.to_string());
                    self.failures = self.failures.saturating_add(1);
                    sleep(wait).await;
                }
            }
            // A server that ends every watch at once is not asked in a hot loop.
            sleep(FIRST_WAIT.saturating_sub(began.elapsed())).await;
        }
    }

    fn wait_after(&self, error: &Error) -> Duration {
        if error.is_absent() {
            return self.patience.absent_wait;
        }
        let nanos = SystemTime::UNIX_EPOCH
            .elapsed()
            .map_or(0, |now| now.subsec_nanos());
        backoff(self.failures, nanos, self.patience.longest_wait)
    }

    /// A list if one is needed, and a watch until the server ends it, as it does.
    async fn round(&mut self) -> Result<(), Error> {
        let events = match &self.from {
            Start::Version(version) => {
                let version = version.clone();
                self.open(&version).await?
            }
            Start::Nothing => self.list().await?,
        };
        self.watch(events).await
    }

    async fn list(&mut self) -> Result<Events<K>, Error> {
        let version = self.pages().await?;
        self.open(&version).await
    }

    async fn open(&mut self, version: &str) -> Result<Events<K>, Error> {
        let how = WatchParams {
            label_selector: self.config.label_selector.clone(),
            field_selector: self.config.field_selector.clone(),
            timeout: self.config.timeout,
            bookmarks: true,
            send_initial_events: false,
        };
        let doing = format!("watching {}", self.mirror.what());
        let events = within(doing, self.patience.opening, self.api.watch(&how, version)).await?;
        self.mirror.is_good();
        Ok(events.boxed())
    }

    /// Everything there is, page by page. A list streamed as events costs the API server almost
    /// twice the time, because it sends every object by itself.
    async fn pages(&mut self) -> Result<String, Error> {
        self.mirror.view().list();
        let mut how = ListParams {
            label_selector: self.config.label_selector.clone(),
            field_selector: self.config.field_selector.clone(),
            limit: self.config.page_size,
            ..ListParams::default()
        };
        loop {
            let doing = format!("listing {}", self.mirror.what());
            let (api, patience) = (self.api.clone(), self.patience.page);
            let read = page(&api, &how, |object| self.seen(object));
            let page = within(doing, patience, read).await?;
            self.mirror.is_good();
            how.continue_token = page.continue_.filter(|token| !token.is_empty());
            if how.continue_token.is_none() {
                let version = page.resource_version.unwrap_or_default();
                self.listed(version.clone());
                return Ok(version);
            }
        }
    }

    async fn watch(&mut self, mut events: Events<K>) -> Result<(), Error> {
        let turn = Duration::from_secs(self.config.timeout.unwrap_or(TURN).into());
        let what = self.mirror.what();
        let doing = || format!("watching {what}");
        loop {
            match next(&mut events, turn + self.patience.grace, doing).await? {
                Some(WatchEvent::Added(object) | WatchEvent::Modified(object)) => self.seen(object),
                Some(WatchEvent::Deleted(object)) => self.deleted(object),
                Some(WatchEvent::Bookmark(mark)) => {
                    let version = mark.metadata.resource_version;
                    self.mirror.view().reached(&version);
                    self.from = Start::Version(version);
                }
                Some(WatchEvent::Error(status)) => {
                    return Err(Error::of(doing(), kube::Error::Api(status)));
                }
                None => return Ok(()),
            }
            self.failures = 0;
            self.mirror.is_good();
        }
    }

    fn seen(&mut self, object: K) {
        let (key, state) = place(&object);
        let value = (self.keep)(object);
        self.tell(key, state, value, true);
    }

    fn deleted(&mut self, object: K) {
        let (key, state) = place(&object);
        self.tell(key, state, None, false);
    }

    fn tell(&mut self, key: Key, state: State, value: Option<V>, exists: bool) {
        // The lock is not held while the controller is told.
        let change = self.mirror.view().event(key, &state, value, exists);
        if let Some(change) = change {
            let (before, after) = (change.before.as_deref(), change.after.as_deref());
            (self.changed)(&change.key, before, after);
        }
        // During a list the versions are those of the objects, in no order.
        if let Start::Version(from) = &mut self.from
            && !state.version.is_empty()
        {
            *from = state.version;
        }
    }

    fn listed(&mut self, version: String) {
        let vanished = self.mirror.view().listed(&version);
        for change in vanished {
            (self.changed)(&change.key, change.before.as_deref(), None);
        }
        self.from = Start::Version(version);
        self.failures = 0;
        self.mirror.is_good();
        self.mirror.inner.synced.send_replace(true);
        self.mirror.inner.answered.send_replace(true);
    }
}

/// The next event, or that there are no more.
async fn next<K>(
    events: &mut Events<K>,
    after: Duration,
    doing: impl Fn() -> String,
) -> Result<Option<WatchEvent<K>>, Error> {
    match timeout(after, events.next()).await {
        Ok(Some(Ok(event))) => Ok(Some(event)),
        Ok(Some(Err(cause))) => Err(Error::of(doing(), cause)),
        Ok(None) => Ok(None),
        Err(_) => Err(Error::Deadline {
            doing: doing(),
            after,
        }),
    }
}

fn place(object: &impl Resource) -> (Key, State) {
    let meta = object.meta();
    let state = State {
        version: meta.resource_version.clone().unwrap_or_default(),
        uid: meta.uid.clone().unwrap_or_default(),
        leaving: meta.deletion_timestamp.is_some(),
    };
    (Key::of(object), state)
}

fn is_expired(cause: &kube::Error) -> bool {
    matches!(cause, kube::Error::Api(status) if status.code == 410)
}

/// How long to wait after this many failures: doubled each time, with up to a quarter off, so that
/// watches that failed together do not come back together.
fn backoff(failures: u32, chance: u32, longest: Duration) -> Duration {
    let wait = FIRST_WAIT
        .saturating_mul(1 << failures.min(10))
        .min(longest);
    wait - wait / 4 * (chance % 1000) / 1000
}
