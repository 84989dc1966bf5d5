//! An object that is written as its bytes come, in parts, with bounded memory.
//!
//! Nobody sees it before it is finished. One that is given up, by word or by being dropped, is taken
//! away again.

use super::fault::Doing;
use super::{Fault, Objects};
use bytes::{Bytes, BytesMut};
use object_store::{MultipartUpload, PutMultipartOptions, PutPayload};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// How long a part may take, with all its tries.
const PART: Duration = Duration::from_secs(600);
/// How long the other end may take to put the parts together.
const FINISH: Duration = Duration::from_secs(300);
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
    gathered: BytesMut,
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
        let upload = objects
            .again(&doing, || {
                let attributes = objects.attributes(content_type);
                let options = PutMultipartOptions::from(attributes);
                objects.stubborn.put_multipart_opts(&path, options)
            })
            .await?;
        let part = part_size(about);
        Ok(Self {
            doing,
            upload: Some(upload),
            gathered: BytesMut::new(),
            part: usize::try_from(part).unwrap_or(usize::MAX),
            abreast: abreast(part),
            flying: JoinSet::new(),
        })
    }

    /// Takes more bytes, and waits where too many are on the way.
    pub async fn write(&mut self, mut bytes: &[u8]) -> Result<(), Fault> {
        while !bytes.is_empty() {
            let room = self.part - self.gathered.len();
            let (now, later) = bytes.split_at(room.min(bytes.len()));
            self.gathered.extend_from_slice(now);
            bytes = later;
            if self.gathered.len() == self.part {
                let part = self.gathered.split().freeze();
                self.send(part).await?;
            }
        }
        Ok(())
    }

    async fn send(&mut self, part: Bytes) -> Result<(), Fault> {
        while self.flying.len() >= self.abreast {
            self.land().await?;
        }
        if let Some(upload) = &mut self.upload {
            self.flying.spawn(upload.put_part(PutPayload::from(part)));
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
        let last = self.gathered.split().freeze();
        if !last.is_empty() {
            self.send(last).await?;
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
