//! Objects in buckets: what tasks fetch and bring.
//!
//! A bucket is S3, a server that speaks S3, or a folder; all three are behind the one trait
//! [`object_store::ObjectStore`], and a task sees none of them, only [`Objects`]. What this adds is
//! what a task must be able to rely on: transient faults are tried again for a while, because whoever
//! submitted the task does not; a read that was cut goes on where it was, and never with the bytes of
//! another object; an object that is being written is not there before its last byte is; and every
//! fault says in one sentence what is wrong, where, and what to do.

mod fault;
mod open;
mod read;
mod write;

pub use fault::{Fault, Kind};
pub use read::Reading;
pub use write::{Writing, part_size};

use bytes::{Bytes, BytesMut};
use fault::Doing;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{Attribute, Attributes, ObjectStore, PutOptions, PutPayload};
use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// How long one request may take to be answered. What is streamed has a limit of its own.
const ANSWER: Duration = Duration::from_secs(60);

/// A bucket, opened. Clones are the same one.
#[derive(Clone)]
pub struct Objects {
    /// Tries once: trying again is done here, where it is told.
    once: Arc<dyn ObjectStore>,
    /// Tries again by itself: the parts of a large object, which only it can repeat.
    stubborn: Arc<dyn ObjectStore>,
    place: Place,
    patience: Patience,
}

/// Where a bucket is, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Place {
    kind: PlaceKind,
    bucket: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PlaceKind {
    S3,
    Folder,
}

/// How often something is tried again, and how long it is waited before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The first pause; each is twice as long as the one before.
    pub first: Duration,
    /// The longest pause.
    pub longest: Duration,
    /// How often it is tried again without any success in between.
    pub retries: u32,
}

impl Default for Patience {
    /// About a minute and a half: a server that restarts is back by then.
    fn default() -> Self {
        Self {
            first: Duration::from_millis(200),
            longest: Duration::from_secs(20),
            retries: 10,
        }
    }
}

impl Patience {
    /// The pause before the next try, after so many in vain; nothing if it is enough.
    pub fn pause(&self, failed: u32) -> Option<Duration> {
        (failed < self.retries).then(|| {
            let factor = 2_u32.saturating_pow(failed);
            self.first.saturating_mul(factor).min(self.longest)
        })
    }
}

/// An object, as a listing shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its key, whole.
    pub key: String,
    /// Its bytes.
    pub size: u64,
}

impl fmt::Debug for Objects {
    /// The bucket only: what is inside knows credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Objects").field(&self.place).finish()
    }
}

impl Objects {
    /// The same bucket with another patience.
    #[must_use]
    pub fn with_patience(mut self, patience: Patience) -> Self {
        self.patience = patience;
        self
    }

    /// Every object below a prefix, which is whole segments of a key, in the order of keys.
    pub async fn list(&self, prefix: &str) -> Result<Vec<Listed>, Fault> {
        let doing = self.doing("list", prefix);
        let path = doing.path()?;
        let mut listed: Vec<Listed> = self
            .again(&doing, || self.once.list(Some(&path)).try_collect())
            .await
            .map(|found: Vec<_>| {
                let listed = found
                    .into_iter()
                    .map(|it: object_store::ObjectMeta| Listed {
                        key: it.location.to_string(),
                        size: it.size,
                    });
                listed.collect()
            })?;
        listed.sort_by(|one, other| one.key.cmp(&other.key));
        Ok(listed)
    }

    /// Opens an object for reading, from its first byte to its last.
    pub async fn read(&self, key: &str) -> Result<Reading, Fault> {
        Reading::open(self, key).await
    }

    /// A small object, whole. One that is larger than the limit is refused before it is read.
    pub async fn get(&self, key: &str, limit: u64) -> Result<Bytes, Fault> {
        let mut reading = self.read(key).await?;
        if reading.size() > limit {
            let size = reading.size();
            let problem = format!("it has {size} bytes, and not more than {limit} were expected");
            return Err(self.doing("get", key).unexpected(problem));
        }
        let mut whole = BytesMut::new();
        while let Some(bytes) = reading.next().await? {
            whole.extend_from_slice(&bytes);
        }
        Ok(whole.freeze())
    }

    /// Puts a small object in place, whole.
    pub async fn put(
        &self,
        key: &str,
        bytes: impl Into<Bytes>,
        content_type: &'static str,
    ) -> Result<(), Fault> {
        let doing = self.doing("put", key);
        let (path, payload) = (doing.path()?, PutPayload::from(bytes.into()));
        let attributes = self.attributes(content_type);
        self.again(&doing, || {
            let options = PutOptions::from(attributes.clone());
            self.once.put_opts(&path, payload.clone(), options)
        })
        .await?;
        Ok(())
    }

    /// Begins to write an object of about so many bytes; it is there when the writing is finished,
    /// and not before.
    pub async fn write(
        &self,
        key: &str,
        content_type: &'static str,
        about: u64,
    ) -> Result<Writing, Fault> {
        Writing::begin(self, key, content_type, about).await
    }

    fn doing(&self, verb: &'static str, key: &str) -> Doing {
        Doing {
            verb,
            place: self.place.clone(),
            key: key.to_owned(),
        }
    }

    /// What is said of an object beside its bytes. A folder has no room for it.
    fn attributes(&self, content_type: &'static str) -> Attributes {
        match self.place.kind {
            PlaceKind::S3 => [(Attribute::ContentType, content_type)]
                .into_iter()
                .collect(),
            PlaceKind::Folder => Attributes::new(),
        }
    }

    /// Tries, and tries again while what went wrong may be over soon.
    async fn again<T, F>(&self, doing: &Doing, attempt: impl Fn() -> F) -> Result<T, Fault>
    where
        F: Future<Output = object_store::Result<T>>,
    {
        let mut failed = 0;
        loop {
            let fault = match timeout(ANSWER, attempt()).await {
                Ok(Ok(got)) => return Ok(got),
                Ok(Err(error)) => doing.fault(&error),
                Err(_) => doing.late(ANSWER),
            };
            self.wait_after(&mut failed, fault).await?;
        }
    }

    /// Waits before the next try, or gives the fault back where there is to be none.
    async fn wait_after(&self, failed: &mut u32, fault: Fault) -> Result<(), Fault> {
        let pause = match fault.retryable() {
            true => self.patience.pause(*failed),
            false => None,
        };
        let Some(pause) = pause else {
            return Err(fault);
        };
        *failed += 1;
        let milliseconds = u64::try_from(pause.as_millis()).unwrap_or(u64::MAX);
        tracing::warn!(%fault, milliseconds, failed, "object store: it is tried again");
        sleep(pause).await;
        Ok(())
    }
}

impl Doing {
    fn path(&self) -> Result<Path, Fault> {
        Path::parse(&self.key).map_err(|error| self.unexpected(error))
    }
}
