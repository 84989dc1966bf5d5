//! Events about objects, for whoever runs `kubectl describe`.
//!
//! Saying something never waits: it goes into a queue, and the future that comes with the
//! [`Recorder`] writes it down. Where the queue is full the event is dropped and counted. Whether
//! something said again is a new event is decided in [`book`]. What is worth saying is the
//! controller's.

mod book;

use crate::calls::DEADLINE;
use crate::client::within;
use crate::error::Error;
use book::{Book, Entry, Saying};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use keelson_api::event::Severity;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;
use tokio::time::Instant;

/// How many events may wait to be written.
const WAITING: usize = 1000;
/// What the API server takes of a note, in bytes.
const NOTE_BYTES: usize = 1024;

/// Says things about objects. Clones share one queue.
#[derive(Clone)]
pub struct Recorder {
    queue: mpsc::Sender<Saying>,
    dropped: Arc<AtomicU64>,
}

impl Recorder {
    /// A recorder in the name of a controller, of which this process is an instance; and the future
    /// that writes events down. It ends when every clone of the recorder is gone and everything is
    /// written.
    pub fn new(
        client: Client,
        controller: impl Into<String>,
        instance: impl Into<String>,
    ) -> (Self, impl Future<Output = ()> + Send + 'static) {
        let (queue, sayings) = mpsc::channel(WAITING);
        let recorder = Self {
            queue,
            dropped: Arc::new(AtomicU64::new(0)),
        };
        let scribe = Scribe {
            client,
            controller: controller.into(),
            instance: instance.into(),
            book: Book::default(),
            dropped: recorder.dropped.clone(),
        };
        (recorder, scribe.write(sayings))
    }

    /// Says something about an object. The same again within ten minutes raises a count; another
    /// note is another event.
    pub fn say(&self, about: &ObjectReference, severity: Severity, reason: &str, note: String) {
        let saying = Saying {
            about: about.clone(),
            severity,
            reason: reason.to_owned(),
            note: shortened(note),
        };
        if self.queue.try_send(saying).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many events were not written: the queue was full, or the server did not take them.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

/// Writes down what was said.
struct Scribe {
    client: Client,
    controller: String,
    instance: String,
    book: Book,
    dropped: Arc<AtomicU64>,
}

impl Scribe {
    async fn write(mut self, mut sayings: mpsc::Receiver<Saying>) {
        while let Some(saying) = sayings.recv().await {
            if let Err(error) = self.put(&saying).await {
                self.dropped.fetch_add(1, Ordering::Relaxed);
                tracing::warn!(reason = saying.reason, "Event was not written: {error}");
            }
        }
    }

    async fn put(&mut self, saying: &Saying) -> Result<(), Error> {
        let time = Timestamp::now();
        if let Some(entry) = self.book.again(saying, Instant::now())
            && self.raise(saying, &entry, time).await?
        {
            return Ok(());
        }
        let event = self.event(saying, time);
        let name = event.metadata.name.clone().unwrap_or_default();
        let doing = format!(
            "recording the event {} about {}",
            saying.reason,
            saying.name()
        );
        let how = PostParams::default();
        within(doing, DEADLINE, self.api(saying).create(&how, &event)).await?;
        self.book.wrote(saying, name, Instant::now());
        Ok(())
    }

    /// Raises the count of an event; false where the server has forgotten it.
    async fn raise(&self, saying: &Saying, entry: &Entry, time: Timestamp) -> Result<bool, Error> {
        let series = json!({
            "series": { "count": entry.count, "lastObservedTime": MicroTime(time) },
        });
        let doing = format!(
            "counting the event {} about {}",
            saying.reason,
            saying.name()
        );
        let how = PatchParams::default();
        let (api, patch) = (self.api(saying), Patch::Merge(&series));
        match within(doing, DEADLINE, api.patch(&entry.event, &how, &patch)).await {
            Ok(_) => Ok(true),
            Err(error) if error.is_absent() => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn event(&self, saying: &Saying, time: Timestamp) -> Event {
        Event {
            metadata: ObjectMeta {
                namespace: Some(saying.namespace().to_owned()),
                // Unique as client-go makes it: the object and the time in hexadecimal.
                name: Some(format!("{}.{:x}", saying.name(), time.as_nanosecond())),
                ..ObjectMeta::default()
            },
            action: Some(saying.reason.clone()),
            event_time: Some(MicroTime(time)),
            note: Some(saying.note.clone()),
            reason: Some(saying.reason.clone()),
            regarding: Some(saying.about.clone()),
            reporting_controller: Some(self.controller.clone()),
            reporting_instance: Some(self.instance.clone()),
            type_: Some(saying.severity.to_string()),
            ..Event::default()
        }
    }

    fn api(&self, saying: &Saying) -> Api<Event> {
        Api::namespaced(self.client.clone(), saying.namespace())
    }
}

/// A note that the API server takes: cut at a character, with a sign that it is.
fn shortened(mut note: String) -> String {
    const CUT: &str = "…";
    if note.len() > NOTE_BYTES {
        let end = note.floor_char_boundary(NOTE_BYTES - CUT.len());
        note.truncate(end);
        note.push_str(CUT);
    }
    note
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_that_is_too_long_is_cut_between_characters() {
        let long = shortened("ä".repeat(600));
        assert!(
            long.len() <= NOTE_BYTES && long.len() > NOTE_BYTES - 4,
            "{}",
            long.len()
        );
        assert!(long.ends_with("ä…"));
        let fits = "a".repeat(NOTE_BYTES);
        assert_eq!(shortened(fits.clone()), fits);
    }
}
