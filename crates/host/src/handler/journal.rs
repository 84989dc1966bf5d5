//! The journal: what is being done to the host's network, on a disk of the host.
//!
//! No journal, no change. The file holds one change, the last one; it is either the old text or the
//! new one, whatever happens in between: written beside its place, brought to disk, renamed, and the
//! folder brought to disk. Only root may read it, because connection profiles have keys in them.
//!
//! A file that cannot be understood is put aside and named, never written over: it may be all there is
//! to undo a change by. What an entry means is for [`decide`](super::decide).

mod entry;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

pub use entry::{Checkpoint, End, Entry, Phase, Policy, Profile};

/// Name of the file.
const FILE: &str = "journal.json";

/// Name of a file that is not in its place yet.
const UNFINISHED: &str = "journal.json.new";

/// How the names of files begin that could not be understood; a number follows.
const ASIDE: &str = "journal.json.aside-";

/// The version this program writes, and the newest it reads.
const VERSION: u32 = 1;

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

fn refused(path: &Path, verb: &'static str) -> impl FnOnce(io::Error) -> Trouble {
    let path = path.to_owned();
    move |source| Trouble::System { path, verb, source }
}

/// What every version begins with.
#[derive(Deserialize)]
struct Head {
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct Text<E> {
    version: u32,
    #[serde(flatten)]
    entry: E,
}

/// The journal of a host.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
}

impl Journal {
    /// The journal in a folder, which is made if it is missing.
    pub fn open(folder: &Path) -> Result<Self, Trouble> {
        fs::create_dir_all(folder).map_err(refused(folder, "created"))?;
        Ok(Self {
            folder: folder.to_owned(),
        })
    }

    /// The last change, if there was one.
    pub fn read(&self) -> Result<Option<Entry>, Trouble> {
        let path = self.folder.join(FILE);
        let bytes = match fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(refused(&path, "read")(error)),
        };
        match serde_json::from_slice::<Head>(&bytes) {
            Ok(Head { version }) if version > VERSION => {
                let aside = self.put_aside(&path)?;
                return Err(Trouble::Newer {
                    path,
                    version,
                    aside,
                });
            }
            Ok(_) | Err(_) => {}
        }
        match serde_json::from_slice::<Text<Entry>>(&bytes) {
            Ok(text) => Ok(Some(text.entry)),
            Err(error) => {
                let aside = self.put_aside(&path)?;
                // The place says enough; the text may be a key.
                let why = format!(
                    "{:?} error in line {}, column {}",
                    error.classify(),
                    error.line(),
                    error.column()
                );
                Err(Trouble::Unreadable { path, why, aside })
            }
        }
    }

    /// Writes a change down. Once it returns, the change is found after any crash; if it fails, what
    /// was written before is still there.
    pub fn write(&self, entry: &Entry) -> Result<(), Trouble> {
        let beside = self.folder.join(UNFINISHED);
        let path = self.folder.join(FILE);
        let replaced = self
            .write_beside(&beside, entry)
            .and_then(|()| fs::rename(&beside, &path).map_err(refused(&path, "replaced")));
        if replaced.is_err() {
            // What is left lies about under a name nobody reads, and goes before the next is written.
            let _ = fs::remove_file(&beside);
            return replaced;
        }
        self.settle()
    }

    /// Files that could not be understood, and are kept for a person.
    pub fn aside(&self) -> Result<Vec<PathBuf>, Trouble> {
        let listed = || -> io::Result<Vec<PathBuf>> {
            let mut found = Vec::new();
            for file in fs::read_dir(&self.folder)? {
                let file = file?;
                if file.file_name().to_string_lossy().starts_with(ASIDE) {
                    found.push(file.path());
                }
            }
            found.sort();
            Ok(found)
        };
        listed().map_err(refused(&self.folder, "listed"))
    }

    fn write_beside(&self, beside: &Path, entry: &Entry) -> Result<(), Trouble> {
        let text = Text {
            version: VERSION,
            entry,
        };
        let written = || -> io::Result<()> {
            let bytes = serde_json::to_vec(&text)?;
            match fs::remove_file(beside) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            // A file made anew: nobody has it open, and nobody chose its rights.
            let mut file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(beside)?;
            file.write_all(&bytes)?;
            file.sync_all()
        };
        written().map_err(refused(beside, "written"))
    }

    fn put_aside(&self, path: &Path) -> Result<PathBuf, Trouble> {
        let free = (1..)
            .map(|number: u32| self.folder.join(format!("{ASIDE}{number}")))
            .find(|it| fs::symlink_metadata(it).is_err());
        let aside = free.unwrap_or_else(|| self.folder.join(ASIDE));
        fs::rename(path, &aside).map_err(refused(path, "put aside"))?;
        self.settle()?;
        Ok(aside)
    }

    /// Brings the folder to disk, so that a name in it survives a power cut.
    fn settle(&self) -> Result<(), Trouble> {
        File::open(&self.folder)
            .and_then(|folder| folder.sync_all())
            .map_err(refused(&self.folder, "brought to disk"))
    }
}
