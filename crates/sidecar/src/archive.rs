//! Archives: a tar, compressed, unpacked as it comes.
//!
//! Three things happen at once, each on a thread of its own: whoever calls brings the compressed
//! bytes, a second decodes them, a third reads the members and writes the files. Between them stand a
//! few pieces and no more, so memory does not depend on the archive. Everything is verified before
//! the unpacking ends well: the checksums of the compression, the end of the tar, and that nothing
//! comes after it. Nothing but folders and plain files is made, and nothing outside the target.
//!
//! Where the bytes come from, and what becomes of the folder, is left to the caller.

mod decode;
mod entry;
mod members;
mod pieces;
mod unpack;

pub use decode::Form;
pub use entry::{Misplaced, inside};
pub use pieces::{Feed, Gone};

use crate::disk;
use std::path::PathBuf;
use tokio::task::JoinHandle;

/// Why an archive is not unpacked.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// It is not what it should be.
    #[error("the archive is damaged: {0}")]
    Damaged(String),
    /// It holds something that is not to be made.
    #[error("the archive is refused: {entry:?} {why}")]
    Refused {
        /// The member.
        entry: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The disk.
    #[error("{0}")]
    Disk(#[from] disk::Trouble),
    /// Its bytes stopped coming; whoever brought them knows why.
    #[error("the unpacking was stopped")]
    Stopped,
}

/// What was unpacked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unpacked {
    /// Files that were made.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Members that were left out, being neither folders nor plain files.
    pub skipped: u64,
}

/// An unpacking under way.
#[derive(Debug)]
pub struct Unpacking {
    decoding: JoinHandle<Result<(), Problem>>,
    writing: JoinHandle<Result<Unpacked, Problem>>,
}

/// Begins to unpack into a folder that exists. The archive's bytes are to be brought to the feed.
pub fn unpack(form: Form, target: PathBuf) -> (Feed, Unpacking) {
    let (feed, compressed) = pieces::incoming();
    let (plain, unpacked) = pieces::between();
    let unpacking = Unpacking {
        decoding: tokio::task::spawn_blocking(move || decode::decode(form, compressed, &plain)),
        writing: tokio::task::spawn_blocking(move || unpack::unpack(unpacked, &target)),
    };
    (feed, unpacking)
}

impl Unpacking {
    /// Waits for both threads, and says what came of it. The cause is told, not what followed from
    /// it: a decoder that failed leaves a writer that was stopped, and the other way round.
    pub async fn end(self) -> Result<Unpacked, Problem> {
        let (decoded, written) = (self.decoding.await, self.writing.await);
        let decoded = decoded.unwrap_or_else(|error| Err(Problem::Damaged(error.to_string())));
        let written = written.unwrap_or_else(|error| Err(Problem::Damaged(error.to_string())));
        match (decoded, written) {
            (Ok(()), written) => written,
            (Err(Problem::Stopped), Err(problem)) => Err(problem),
            (Err(problem), _) => Err(problem),
        }
    }
}
