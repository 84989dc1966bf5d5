//! The connections to the API server: made when they are needed, dropped as a whole.
//!
//! A client keeps connections it has used, and those may lead nowhere after the host's network was
//! changed, or after an outage. So the client of calls is thrown away with its connections whenever a
//! call was not answered, and the next call makes another; watches have a client of their own. What is
//! called, and what follows from an answer, is for others.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use keelson_cluster::{Error, connect, within};
use kube::Client;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::Trouble;
use crate::connecting::configured;

/// How long a connection may take to come about. A server that comes back is found within this and the
/// wait between two attempts.
pub(super) const CONNECTING: Duration = Duration::from_millis(2500);

/// How long to wait for the files that say where the server is.
const FILES: Duration = Duration::from_secs(1);

pub(super) struct Line {
    kubeconfig: Option<PathBuf>,
    calls: Mutex<Option<Client>>,
    trouble: Mutex<Option<String>>,
    again: Notify,
}

impl Line {
    pub(super) fn new(kubeconfig: Option<PathBuf>) -> Self {
        Self {
            kubeconfig,
            calls: Mutex::new(None),
            trouble: Mutex::new(None),
            again: Notify::new(),
        }
    }

    /// Drops every connection, now.
    pub(super) fn renew(&self) {
        *self.calls() = None;
        self.again.notify_one();
    }

    /// Waits until that was asked for.
    pub(super) async fn renewed(&self) {
        self.again.notified().await;
    }

    /// Why there is no client, if there is none.
    pub(super) fn trouble(&self) -> Option<String> {
        lock(&self.trouble).clone()
    }

    /// A new client, as soon as the files that say who we are can be read.
    pub(super) async fn open(&self) -> Client {
        loop {
            match self.client().await {
                Ok(client) => return client,
                Err(_) => sleep(FILES).await,
            }
        }
    }

    async fn client(&self) -> Result<Client, Trouble> {
        let made = async {
            let mut config = configured(self.kubeconfig.as_deref()).await?;
            config.connect_timeout = Some(CONNECTING);
            connect(config).map_err(|error| error.to_string())
        };
        let made = made.await;
        let mut trouble = lock(&self.trouble);
        let error = made.as_ref().err().cloned();
        if let Some(error) = &error
            && *trouble != Some(error.clone())
        {
            tracing::warn!(error, "there is no way to the API server yet");
        }
        *trouble = error;
        made.map_err(Trouble::NoWay)
    }

    /// Makes a call with a deadline. What was `doing` stands in the error.
    pub(super) async fn call<T>(
        &self,
        doing: String,
        after: Duration,
        call: impl AsyncFnOnce(Client) -> kube::Result<T>,
    ) -> Result<T, Trouble> {
        let kept = self.calls().clone();
        let client = match kept {
            Some(client) => client,
            None => {
                let client = self.client().await?;
                *self.calls() = Some(client.clone());
                client
            }
        };
        let answer = within(doing, after, call(client)).await;
        if let Err(error) = &answer
            && is_unanswered(error)
        {
            *self.calls() = None;
        }
        Ok(answer?)
    }

    fn calls(&self) -> MutexGuard<'_, Option<Client>> {
        lock(&self.calls)
    }
}

/// Whether the server said nothing, so that the connection may be a dead one.
pub(super) fn is_unanswered(error: &Error) -> bool {
    match error {
        Error::Deadline { .. } => true,
        Error::Api { cause, .. } => !matches!(**cause, kube::Error::Api(_)),
        _ => false,
    }
}

pub(super) fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
