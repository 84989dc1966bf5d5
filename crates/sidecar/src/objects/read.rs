//! One object from its first byte to its last, through as many connections as that takes.
//!
//! What was begun is gone on with only if the server says that it is the same object: the size and
//! the ETag of the first answer are asked for and compared in every later one.

use super::fault::Doing;
use super::{Fault, Objects};
use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use object_store::path::Path;
use object_store::{Attribute, GetOptions, GetRange, GetResult, GetResultPayload};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
use std::time::Duration;
use tokio::time::timeout;

/// How long no byte may come before the connection is given up.
const SILENCE: Duration = Duration::from_secs(45);
/// How much of a file is read at once.
const PIECE: u64 = 512 * 1024;

type Body = BoxStream<'static, object_store::Result<Bytes>>;

/// An object that is being read.
pub struct Reading {
    objects: Objects,
    doing: Doing,
    path: Path,
    size: u64,
    etag: Option<String>,
    sha256: Option<String>,
    at: u64,
    body: Option<Body>,
    failed: u32,
}

impl std::fmt::Debug for Reading {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Reading({} at {})", self.path, self.at)
    }
}

impl Reading {
    pub(super) async fn open(objects: &Objects, key: &str) -> Result<Self, Fault> {
        let doing = objects.doing("get", key);
        let path = doing.path()?;
        let got = objects
            .again(&doing, || objects.once.get_opts(&path, GetOptions::new()))
            .await?;
        let sha256 = Attribute::Metadata("sha256".into());
        Ok(Self {
            objects: objects.clone(),
            doing,
            path,
            size: got.meta.size,
            etag: got.meta.e_tag.clone(),
            sha256: got.attributes.get(&sha256).map(|it| it.to_string()),
            at: 0,
            body: Some(body(got)),
            failed: 0,
        })
    }

    /// How many bytes the object has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// How many bytes have been read.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// What names these bytes and no others, as far as the server can.
    pub fn etag(&self) -> Option<&str> {
        self.etag.as_deref()
    }

    /// The SHA-256 whoever uploaded the object noted beside it, in hexadecimal.
    pub fn sha256(&self) -> Option<&str> {
        self.sha256.as_deref()
    }

    /// The next bytes, or nothing after the last one. Exactly as many come as the object has.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Fault> {
        while self.at < self.size {
            let Some(body) = &mut self.body else {
                self.reopen().await?;
                continue;
            };
            let fault = match timeout(SILENCE, body.next()).await {
                Ok(Some(Ok(bytes))) if bytes.is_empty() => continue,
                Ok(Some(Ok(bytes))) => return self.count(bytes).map(Some),
                Ok(Some(Err(error))) if self.doing.is_folder() => self.doing.fault(&error),
                // Whatever becomes of a body that had begun well, it was lost on the way.
                Ok(Some(Err(_)) | None) => self.doing.cut(self.at, self.size),
                Err(_) => self.doing.late(SILENCE),
            };
            self.body = None;
            self.objects.wait_after(&mut self.failed, fault).await?;
        }
        Ok(None)
    }

    fn count(&mut self, bytes: Bytes) -> Result<Bytes, Fault> {
        let more = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if more > self.size - self.at {
            let size = self.size;
            let problem = format!("more bytes came than the {size} that were announced");
            return Err(self.doing.unexpected(problem));
        }
        self.at += more;
        self.failed = 0;
        Ok(bytes)
    }

    /// Goes on where it was.
    async fn reopen(&mut self) -> Result<(), Fault> {
        if self.at > 0 && self.etag.is_none() {
            let problem =
                "the connection was lost, and the server gives the object no ETag to go on by";
            return Err(self.doing.unexpected(problem));
        }
        let range = (self.at > 0).then_some(GetRange::Offset(self.at));
        let options = GetOptions::new()
            .with_range(range)
            .with_if_match(self.etag.clone());
        let asked = timeout(SILENCE, self.objects.once.get_opts(&self.path, options));
        let fault = match asked.await {
            Ok(Ok(got)) if got.meta.size != self.size || got.meta.e_tag != self.etag => {
                self.doing.replaced()
            }
            Ok(Ok(got)) => {
                self.body = Some(body(got));
                return Ok(());
            }
            Ok(Err(error)) => self.doing.fault(&error),
            Err(_) => self.doing.late(SILENCE),
        };
        self.objects.wait_after(&mut self.failed, fault).await
    }
}

fn body(got: GetResult) -> Body {
    let range = got.range.clone();
    match got.payload {
        GetResultPayload::File(file, _) => pieces(file, range),
        GetResultPayload::Stream(stream) => stream,
    }
}

/// A file in large pieces; the library's own are small.
fn pieces(file: File, range: Range<u64>) -> Body {
    stream::try_unfold((file, range), |(mut file, mut range)| async move {
        if range.is_empty() {
            return Ok(None);
        }
        let reading = tokio::task::spawn_blocking(move || {
            let piece = PIECE.min(range.end - range.start);
            let mut bytes = BytesMut::zeroed(usize::try_from(piece).unwrap_or_default());
            file.seek(SeekFrom::Start(range.start))?;
            file.read_exact(&mut bytes)?;
            range.start += piece;
            Ok((bytes.freeze(), (file, range)))
        });
        let read: std::io::Result<_> = reading.await?;
        read.map(Some)
            .map_err(|source| object_store::Error::Generic {
                store: "folder",
                source: source.into(),
            })
    })
    .boxed()
}
