//! Whether a handler lives and is ready, and what it is doing: what it says of itself on its socket.
//!
//! Neither the API server nor NetworkManager decides either. *Live* is a main loop that goes on and an
//! nmstate that comes back; *ready* is the lock in hand and the journal brought to its end. The rest is
//! for people and scrapers.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

use super::counts::Counts;
use super::worker::Worker;

/// How long the main loop may stand still.
const STILL: Duration = Duration::from_secs(10);

/// How far a handler has come with its start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Another one holds the lock.
    Waiting {
        /// Who.
        holder: String,
    },
    /// The last change is being brought to its end.
    Recovering,
    /// All is done that has to be done before anything else.
    Working,
    /// It was told to end, and finishes what it began.
    Leaving,
}

/// What a handler says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    /// What it is doing.
    pub doing: String,
    /// Why it is not ready, if it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unready: Option<String>,
    /// Whether the API server was heard of, and else what is in the way.
    pub server: String,
    /// Whether NetworkManager answers, and else what is in the way.
    pub network_manager: String,
    /// Each policy of this host, and how it stands.
    pub policies: BTreeMap<String, String>,
}

/// The signs of life of a handler.
#[derive(Debug)]
pub struct Pulse {
    worker: Worker,
    ticked: Mutex<Instant>,
    stage: watch::Sender<Stage>,
    /// What is being done.
    pub doing: watch::Sender<String>,
    /// What is counted.
    pub counts: Counts,
    told: Mutex<Told>,
}

impl Pulse {
    /// A handler that has just begun.
    pub fn new(worker: Worker) -> Self {
        let nobody = "nobody yet".to_owned();
        Self {
            worker,
            ticked: Mutex::new(Instant::now()),
            stage: watch::Sender::new(Stage::Waiting { holder: nobody }),
            doing: watch::Sender::new("starting".to_owned()),
            counts: Counts::default(),
            told: Mutex::default(),
        }
    }

    /// Beats for ever.
    pub async fn beat(&self) {
        loop {
            *lock(&self.ticked) = Instant::now();
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Notes how far the start has come.
    pub fn is_at(&self, stage: Stage) {
        self.stage.send_if_modified(|now| {
            let news = *now != stage;
            if news {
                tracing::info!(?stage, "stage");
            }
            *now = stage;
            news
        });
        self.counts.ready(self.unready().is_none());
    }

    /// Notes something for whoever asks.
    pub fn note(&self, write: impl FnOnce(&mut Told)) {
        write(&mut lock(&self.told));
    }

    /// Why the handler is not live, if it is not.
    pub fn dead(&self) -> Option<String> {
        let still = lock(&self.ticked).elapsed();
        if still > STILL {
            return Some(format!(
                "the main loop stands still for {} s",
                still.as_secs()
            ));
        }
        let overdue = self.worker.overdue()?;
        Some(format!("nmstate is past its deadline: {overdue}"))
    }

    /// Why the handler is not ready, if it is not.
    pub fn unready(&self) -> Option<String> {
        match &*self.stage.borrow() {
            Stage::Waiting { holder } => Some(format!("the lock of this host is held by {holder}")),
            Stage::Recovering => {
                let doing = self.doing.borrow();
                Some(format!(
                    "the last change is being brought to its end: {}",
                    *doing
                ))
            }
            Stage::Leaving => Some("it was told to end".to_owned()),
            Stage::Working => None,
        }
    }

    /// Everything for whoever asks.
    pub fn told(&self) -> Told {
        Told {
            doing: self.doing.borrow().clone(),
            unready: self.unready(),
            ..lock(&self.told).clone()
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
