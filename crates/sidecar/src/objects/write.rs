//! An object that is written as its bytes come, in parts, with bounded memory.
//!
//! Nobody sees it before it is finished. One that is given up, by word or by being dropped, is taken
//! away again.

use super::fault::Doing;
use super::{Fault, Objects};
use bytes::Bytes;
use object_store::{MultipartUpload, PutMultipartOptions, PutPayload};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long a beginning may take, with all its tries.
const BEGIN: Duration = Duration::from_secs(240);
/// How long a part may take, with all its tries.
const PART: Duration = Duration::from_secs(600);
/// How long the other end may take to put the parts together.
const FINISH: Duration = Duration::from_secs(300);
/// How long parts on the way are waited for when their object is given up.
const LANDING: Duration = Duration::from_secs(3);
/// The smallest part.
const SMALL: u64 = 8 << 20;
/// S3 takes ten thousand parts; the rest is for what is larger than it was thought to be.
const PARTS: u64 = 8_000;

/// How large the parts of an object of about so many bytes are.
pub const fn part_size(about: u64) -> u64 {
    let needed = about.div_ceil(PARTS);
    let size = if needed > SMALL { needed } else { SMALL };
    size.next_multiple_of(1 << 20)
}

/// How many parts of a size are on the way at once.
const fn abreast(part: u64) -> usize {
    if part > 4 * SMALL { 1 } else { 2 }
}

/// An object that is being written.
#[derive(Debug)]
pub struct Writing {
    doing: Doing,
    upload: Option<Box<dyn MultipartUpload>>,
    gathered: Vec<Bytes>,
    size: usize,
    part: usize,
    abreast: usize,
    flying: JoinSet<object_store::Result<()>>,
}

impl Writing {
    pub(super) async fn begin(
        objects: &Objects,
        key: &str,
        content_type: &'static str,
        about: u64,
    ) -> Result<Self, Fault> {
        let doing = objects.doing("put", key);
        let path = doing.path()?;
        let options = PutMultipartOptions::from(objects.attributes(content_type));
        // This one tries again by itself: what it makes must be as stubborn as it is.
        let begun = timeout(BEGIN, objects.stubborn.put_multipart_opts(&path, options));
        let upload = match begun.await {
            Ok(Ok(upload)) => upload,
            Ok(Err(error)) => return Err(doing.fault(&error)),
            Err(_) => return Err(doing.late(BEGIN)),
        };
        let part = part_size(about);
        Ok(Self {
            doing,
            upload: Some(upload),
            gathered: Vec::new(),
            size: 0,
            part: usize::try_from(part).unwrap_or(usize::MAX),
            abreast: abreast(part),
            flying: JoinSet::new(),
        })
    }

    /// Takes more bytes, and waits where too many are on the way.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.take(Bytes::copy_from_slice(bytes)).await
    }

    /// The same with bytes that need no copy. Each is kept as it is until its part is sent, so they
    /// should not be tiny.
    pub async fn take(&mut self, mut bytes: Bytes) -> Result<(), Fault> {
        while !bytes.is_empty() {
            let room = self.part - self.size;
            let now = bytes.split_to(room.min(bytes.len()));
            self.size += now.len();
            self.gathered.push(now);
            if self.size == self.part {
                self.send().await?;
            }
        }
        Ok(())
    }

    /// Sends what is gathered as one part.
    async fn send(&mut self) -> Result<(), Fault> {
        while self.flying.len() >= self.abreast {
            self.land().await?;
        }
        let part = PutPayload::from_iter(std::mem::take(&mut self.gathered));
        self.size = 0;
        if let Some(upload) = &mut self.upload {
            self.flying.spawn(upload.put_part(part));
        }
        Ok(())
    }

    /// Waits for one part.
    async fn land(&mut self) -> Result<(), Fault> {
        match timeout(PART, self.flying.join_next()).await {
            Ok(None | Some(Ok(Ok(())))) => Ok(()),
            Ok(Some(Ok(Err(error)))) => Err(self.doing.fault(&error)),
            Ok(Some(Err(error))) => Err(self.doing.unexpected(error)),
            Err(_) => Err(self.doing.late(PART)),
        }
    }

    /// Brings the rest and puts the object in place.
    pub async fn finish(mut self) -> Result<(), Fault> {
        if self.size > 0 {
            self.send().await?;
        }
        while !self.flying.is_empty() {
            self.land().await?;
        }
        let Some(upload) = &mut self.upload else {
            return Ok(());
        };
        match timeout(FINISH, upload.complete()).await {
            Ok(Ok(_)) => {
                self.upload = None;
                Ok(())
            }
            Ok(Err(error)) => Err(self.doing.fault(&error)),
            Err(_) => Err(self.doing.late(FINISH)),
        }
    }

    /// Gives the object up, and waits until what was brought of it is gone.
    pub async fn abort(mut self) -> Result<(), Fault> {
        // A part that arrives after its object was given up stays: those on the way come first.
        let landing = async { while self.flying.join_next().await.is_some() {} };
        let _ = timeout(LANDING, landing).await;
        self.flying.shutdown().await;
        let Some(mut upload) = self.upload.take() else {
            return Ok(());
        };
        match timeout(FINISH, upload.abort()).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(self.doing.fault(&error)),
            Err(_) => Err(self.doing.late(FINISH)),
        }
    }
}

impl Drop for Writing {
    fn drop(&mut self) {
        let (Some(mut upload), Ok(runtime)) =
            (self.upload.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        self.flying.abort_all();
        runtime.spawn(async move {
            // What stays is invisible, and the bucket's rules for unfinished uploads end it.
            let _ = timeout(FINISH, upload.abort()).await;
        });
    }
}
