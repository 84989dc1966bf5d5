//! The journal: what is being done to the host's network, on a disk of the host.
//!
//! No journal, no change. The file holds one change, the last one, and is kept as [`disk`] keeps files:
//! in its first line everything it takes to undo the change, written before anything is touched; in each
//! further line how far the change has come since. A last line that is not whole was never written. One
//! that cannot be understood is put aside and named, never written over: it may be all there is to
//! undo a change by. What an entry means is for [`decide`](super::decide).

mod entry;

use std::io;
use std::path::{Path, PathBuf};

use super::disk::{self, Folder, Refused, Unread};

pub use entry::{Checkpoint, End, Entry, Phase, Policy, Profile};

/// Name of the file.
const FILE: &str = "journal.json";

/// The version this program writes, and the newest it reads. The first had one line alone.
const VERSION: u32 = 2;

/// What is wrong with a journal.
#[derive(Debug, thiserror::Error)]
pub enum Trouble {
    /// The system refuses.
    #[error("the journal {} cannot be {verb}: {source}", path.display())]
    System {
        /// The file or folder.
        path: PathBuf,
        /// What was being done with it.
        verb: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// The file is not a journal.
    #[error(
        "the journal {} cannot be understood: {why}; it is kept as {}, and a change it was about may \
         be half done: compare the host with it",
        path.display(), aside.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
        /// Where it is now.
        aside: PathBuf,
    },
    /// The file is of a newer program.
    #[error(
        "the journal {} is of version {version}, and this program reads up to {VERSION}; it is kept as \
         {}: run the newer program again, or compare the host with it",
        path.display(), aside.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
        /// Where it is now.
        aside: PathBuf,
    },
}

impl From<Refused> for Trouble {
    fn from(refused: Refused) -> Self {
        let Refused { path, verb, source } = refused;
        Self::System { path, verb, source }
    }
}

/// The journal of a host.
#[derive(Debug)]
pub struct Journal {
    folder: Folder,
}

impl Journal {
    /// The journal in a folder, which is made if it is missing.
    pub fn open(folder: &Path) -> Result<Self, Trouble> {
        let folder = Folder::open(folder)?;
        Ok(Self { folder })
    }

    /// The last change, for whoever only looks: what cannot be understood stays where it is.
    pub fn peek(&self) -> Result<Option<Entry>, String> {
        let path = self.folder.path(FILE);
        let bytes = self
            .folder
            .read(FILE)
            .map_err(|refused| refused.to_string())?;
        let entry = bytes.map(|bytes| understood(&bytes)).transpose();
        entry.map_err(|why| {
            format!(
                "the journal {} cannot be understood: {why:?}",
                path.display()
            )
        })
    }

    /// The last change, if there was one.
    pub fn read(&self) -> Result<Option<Entry>, Trouble> {
        let Some(bytes) = self.folder.read(FILE)? else {
            return Ok(None);
        };
        let path = self.folder.path(FILE);
        match understood(&bytes) {
            Ok(entry) => Ok(Some(entry)),
            Err(Unread::Newer(version)) => Err(Trouble::Newer {
                path,
                version,
                aside: self.folder.put_aside(FILE)?,
            }),
            Err(Unread::Unreadable(why)) => Err(Trouble::Unreadable {
                path,
                why,
                aside: self.folder.put_aside(FILE)?,
            }),
        }
    }

    /// Writes a change down that was not begun. It may be found after a crash; if it fails, what was
    /// written before is still there.
    pub fn begin(&self, entry: &Entry) -> Result<(), Trouble> {
        Ok(self.folder.replace(FILE, text(entry))?)
    }

    /// Writes down how far a change has come. Once it returns, that is found after a crash, of the host
    /// too where the [phase](Phase::outlives) has to be; if it fails, what was written before is still
    /// there.
    pub fn note(&self, entry: &Entry) -> Result<(), Trouble> {
        let mark = serde_json::to_vec(&entry.mark());
        match self.folder.append(FILE, mark, entry.phase.outlives())? {
            true => Ok(()),
            // Whoever wrote last died in the middle of it.
            false => Ok(self.folder.write(FILE, text(entry))?),
        }
    }

    /// Files that could not be understood, and are kept for a person.
    pub fn aside(&self) -> Result<Vec<PathBuf>, Trouble> {
        Ok(self.folder.aside(FILE)?)
    }
}

/// The first line of a file.
fn text(entry: &Entry) -> serde_json::Result<Vec<u8>> {
    let mut line = disk::text(VERSION, entry)?;
    line.push(b'\n');
    Ok(line)
}

/// The entry of a file, as far as the last whole line says.
fn understood(bytes: &[u8]) -> Result<Entry, Unread> {
    let mut lines = bytes.split_inclusive(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let entry = disk::understood(VERSION, first)?;
    let whole = lines.filter(|line| line.ends_with(b"\n"));
    whole
        .enumerate()
        .try_fold(entry, |entry: Entry, (number, line)| {
            let mark = serde_json::from_slice(line);
            let mark = mark.map_err(|error| disk::unreadable(&error, number + 1))?;
            Ok(entry.marked(mark))
        })
}
