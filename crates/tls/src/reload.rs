//! A listener's configuration that follows its files.
//!
//! The files are read every few seconds and compared by content: a watch on a mount misses the
//! kubelet's swap of `..data`, a poll does not. What is read is decided upon as a whole
//! ([`decide()`]) and swapped in one step, so a connection gets all of the old state or all of the
//! new. A bad reading is a log line, a metric and a sentence in [`Loaded`]; the last good state
//! stays, and nothing here ends the process. Starting without a usable state is an error value, and
//! what to do about it is the caller's.

use arc_swap::ArcSwap;
use jiff::Timestamp;
use prometheus_client::registry::Registry;
use rustls::ServerConfig;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

use crate::listener::CurrentConfig;
use crate::self_signed::SelfSigned;

pub use decide::{CLIENT_CA, Decision, Demands, Refusal, Serving, decide};
pub use loaded::{Loaded, Metrics};
pub use reading::{Content, PairSource, Reading, Sources};

mod decide;
mod loaded;
mod reading;

/// How often to look at the files if nobody says otherwise.
pub const EVERY: Duration = Duration::from_secs(5);

/// What a look at the files came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Nothing new.
    Kept,
    /// Something new, now served.
    Swapped,
    /// Something bad; the last good state stays.
    Refused,
}

/// Keeps a listener's configuration true to its files.
#[derive(Debug)]
pub struct Reloader {
    sources: Sources,
    demands: Demands,
    serving: ArcSwap<Serving>,
    loaded: watch::Sender<Loaded>,
    metrics: Metrics,
    /// The self-signed pair in use. Held throughout a look, so that two looks do not race.
    own: Mutex<Option<SelfSigned>>,
}

impl Reloader {
    /// Loads everything for the first time.
    pub fn start(sources: Sources, demands: Demands, now: Timestamp) -> Result<Self, Refusal> {
        let mut own = None;
        let reading = sources.read(&mut own, now);
        let serving = match decide(None, &reading, &demands, now) {
            Decision::Swap(serving) => *serving,
            Decision::Refuse(refusal) => return Err(refusal),
            Decision::Keep => return Err(Refusal::Missing("certificate")),
        };
        let loaded = Loaded::new(&serving, now);
        let metrics = Metrics::default();
        metrics.show(&loaded);
        tell(&loaded);
        Ok(Self {
            sources,
            demands,
            serving: ArcSwap::from_pointee(serving),
            loaded: watch::Sender::new(loaded),
            metrics,
            own: Mutex::new(own),
        })
    }

    /// Looks at the files now. Reads files, so not for an async task; see [`Self::poll`].
    pub fn look(&self, now: Timestamp) -> Look {
        let mut own = self.own.lock().unwrap_or_else(PoisonError::into_inner);
        let reading = self.sources.read(&mut own, now);
        let previous = self.serving.load_full();
        match decide(Some(&previous), &reading, &self.demands, now) {
            Decision::Keep => {
                self.recover(now);
                Look::Kept
            }
            Decision::Swap(serving) => {
                self.swap(*serving, now);
                Look::Swapped
            }
            Decision::Refuse(refusal) => {
                self.refuse(refusal.sentence());
                Look::Refused
            }
        }
    }

    /// Looks at the files at this interval, for ever.
    pub async fn poll(self: Arc<Self>, every: Duration) {
        let look = move |now| {
            self.look(now);
        };
        poll(every, look).await;
    }

    /// The state new connections get.
    pub fn serving(&self) -> Arc<Serving> {
        self.serving.load_full()
    }

    /// What is loaded, now.
    pub fn loaded(&self) -> Loaded {
        self.loaded.borrow().clone()
    }

    /// What is loaded, and a wake-up whenever that changes.
    pub fn subscribe(&self) -> watch::Receiver<Loaded> {
        self.loaded.subscribe()
    }

    /// Registers this listener's metrics.
    pub fn register(&self, registry: &mut Registry) {
        self.metrics.register(registry);
    }

    fn swap(&self, serving: Serving, now: Timestamp) {
        let loaded = Loaded::new(&serving, now);
        self.serving.store(Arc::new(serving));
        self.metrics.show(&loaded);
        tell(&loaded);
        self.loaded.send_replace(loaded);
    }

    /// The files went back to what is being served.
    fn recover(&self, now: Timestamp) {
        self.loaded.send_if_modified(|loaded| {
            let failed = loaded.last_error.take().is_some();
            if failed {
                loaded.last_reload = now;
                self.metrics.show(loaded);
                tell(loaded);
            }
            failed
        });
    }

    /// A failure is told once, not at every look.
    fn refuse(&self, sentence: String) {
        self.loaded.send_if_modified(|loaded| {
            if loaded.last_error.as_ref() == Some(&sentence) {
                return false;
            }
            tracing::warn!(
                error = sentence,
                generation = loaded.generation,
                fingerprint = %loaded.fingerprint,
                "the TLS files are not usable; the last good state stays"
            );
            loaded.last_error = Some(sentence);
            self.metrics.fail();
            self.metrics.show(loaded);
            true
        });
    }
}

impl CurrentConfig for Reloader {
    fn current_config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.serving.load().config)
    }
}

fn tell(loaded: &Loaded) {
    tracing::info!(
        generation = loaded.generation,
        fingerprint = %loaded.fingerprint,
        not_after = %loaded.not_after,
        profile = loaded.profile_hash,
        notes = loaded.profile_notes.join("; "),
        "TLS files loaded"
    );
}

impl Refusal {
    /// The refusal and its causes as one sentence.
    pub fn sentence(&self) -> String {
        let mut text = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        text
    }
}

/// Takes a look at files at this interval, for ever, and never on an async thread.
pub async fn poll(every: Duration, look: impl Fn(Timestamp) + Send + Sync + 'static) {
    let look = Arc::new(look);
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let look = Arc::clone(&look);
        let looked = tokio::task::spawn_blocking(move || look(Timestamp::now()));
        if let Err(error) = looked.await {
            tracing::error!(%error, "a look at the TLS files was cut short");
        }
    }
}
