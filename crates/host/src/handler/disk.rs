//! Files that survive any crash: each is its old text or its new one, whatever happens in between.
//!
//! A file is written beside its place, brought to disk and renamed, and then the folder is brought to
//! disk. A line added to one is there whole or is not read. Only root may read it, because states and
//! connection profiles have keys in them. A file that cannot be understood is put aside under another
//! name, never written over. What the texts mean is for whoever keeps them.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What a file is called until it is in its place: its name, and this.
const UNFINISHED: &str = ".new";

/// What a file is called that could not be understood: its name, this, and a number.
const ASIDE: &str = ".aside-";

/// The system does not let us.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be {verb}: {source}", path.display())]
pub struct Refused {
    /// The file or folder.
    pub path: PathBuf,
    /// What was being done with it.
    pub verb: &'static str,
    /// What the system says.
    pub source: io::Error,
}

fn refused(path: &Path, verb: &'static str) -> impl FnOnce(io::Error) -> Refused {
    let path = path.to_owned();
    move |source| Refused { path, verb, source }
}

/// What a text is to outlive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlives {
    /// The process that wrote it, which takes no time.
    Process,
    /// The host: it is on disk.
    Host,
}

/// Why a text cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unread {
    /// It is of a newer program; this is its version.
    Newer(u32),
    /// It is something else; this is what is wrong, and where.
    Unreadable(String),
}

/// What every version begins with.
#[derive(Deserialize)]
struct Head {
    version: u32,
}

#[derive(Serialize, Deserialize)]
struct Text<T> {
    version: u32,
    #[serde(flatten)]
    content: T,
}

/// The text of a value, of this version.
pub fn text(version: u32, content: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&Text { version, content })
}

/// The value of a text, if it is of this version or an older one.
pub fn understood<T: DeserializeOwned>(newest: u32, bytes: &[u8]) -> Result<T, Unread> {
    match serde_json::from_slice(bytes) {
        Ok(Head { version }) if version > newest => return Err(Unread::Newer(version)),
        Ok(_) | Err(_) => {}
    }
    let read = serde_json::from_slice::<Text<T>>(bytes);
    read.map(|text| text.content)
        .map_err(|error| unreadable(&error, 0))
}

/// Where a text goes wrong, that many lines into its file. The place says enough; the text may be a key.
pub fn unreadable(error: &serde_json::Error, above: usize) -> Unread {
    Unread::Unreadable(format!(
        "{:?} error in line {}, column {}",
        error.classify(),
        above + error.line(),
        error.column()
    ))
}

/// A folder of such files.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
}

impl Folder {
    /// A folder, which is made if it is missing.
    pub fn open(path: &Path) -> Result<Self, Refused> {
        fs::create_dir_all(path).map_err(refused(path, "created"))?;
        Ok(Self {
            path: path.to_owned(),
        })
    }

    /// The path of a file.
    pub fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// The content of a file, if there is one.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Refused> {
        let path = self.path(name);
        match fs::read(&path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(refused(&path, "read")(error)),
        }
    }

    /// Writes a file. Once it returns, the text is found after any crash; if it fails, what was written
    /// before is still there.
    pub fn write(&self, name: &str, text: serde_json::Result<Vec<u8>>) -> Result<(), Refused> {
        self.replace(name, text)?;
        self.settle()
    }

    /// Writes a file. Whoever reads it from now on finds the text; after a loss of power it may be the one
    /// of before, until the folder is brought to disk.
    pub fn replace(&self, name: &str, text: serde_json::Result<Vec<u8>>) -> Result<(), Refused> {
        let beside = self.path(&format!("{name}{UNFINISHED}"));
        let path = self.path(name);
        let replaced = text
            .map_err(io::Error::from)
            .and_then(|bytes| write_anew(&beside, &bytes))
            .map_err(refused(&beside, "written"))
            .and_then(|()| fs::rename(&beside, &path).map_err(refused(&path, "replaced")));
        if replaced.is_err() {
            // What is left lies about under a name nobody reads, and goes before the next is written.
            let _ = fs::remove_file(&beside);
        }
        replaced
    }

    /// Adds a line to a file of whole lines; where there is none, nothing is done, and that is said. If it
    /// fails, the file is as it was.
    pub fn append(
        &self,
        name: &str,
        line: serde_json::Result<Vec<u8>>,
        outlives: Outlives,
    ) -> Result<bool, Refused> {
        let path = self.path(name);
        let added = || -> io::Result<bool> {
            let mut line = line?;
            line.push(b'\n');
            let mut file = match OpenOptions::new().read(true).append(true).open(&path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
                opened => opened?,
            };
            let before = file.metadata()?.len();
            let mut last = [0];
            file.read_at(&mut last, before.saturating_sub(1))?;
            if last != *b"\n" {
                return Ok(false);
            }
            let written = file.write_all(&line).and_then(|()| match outlives {
                Outlives::Process => Ok(()),
                Outlives::Host => file.sync_data(),
            });
            if written.is_err() {
                // Half a line that stays is not read, and the next one is not added to it.
                let _ = file.set_len(before);
            }
            written.map(|()| true)
        };
        let added = added().map_err(refused(&path, "added to"))?;
        if added && outlives == Outlives::Host {
            self.settle()?;
        }
        Ok(added)
    }

    /// Takes a file away, if there is one.
    pub fn remove(&self, name: &str) -> Result<(), Refused> {
        let path = self.path(name);
        match fs::remove_file(&path) {
            Ok(()) => self.settle(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(refused(&path, "removed")(error)),
        }
    }

    /// Puts a file aside, and says where it is now.
    pub fn put_aside(&self, name: &str) -> Result<PathBuf, Refused> {
        let path = self.path(name);
        let free = (1..)
            .map(|number: u32| self.path(&format!("{name}{ASIDE}{number}")))
            .find(|it| fs::symlink_metadata(it).is_err());
        let aside = free.unwrap_or_else(|| self.path(&format!("{name}{ASIDE}")));
        fs::rename(&path, &aside).map_err(refused(&path, "put aside"))?;
        self.settle()?;
        Ok(aside)
    }

    /// Files that were put aside and are kept for a person, of those whose names begin so.
    pub fn aside(&self, begin: &str) -> Result<Vec<PathBuf>, Refused> {
        let names = self.names()?.into_iter();
        let aside = names.filter(|it| it.starts_with(begin) && it.contains(ASIDE));
        Ok(aside.map(|it| self.path(&it)).collect())
    }

    /// The names of the files in it, sorted.
    pub fn names(&self) -> Result<Vec<String>, Refused> {
        let listed = || -> io::Result<Vec<String>> {
            let mut found = Vec::new();
            for file in fs::read_dir(&self.path)? {
                found.push(file?.file_name().to_string_lossy().into_owned());
            }
            found.sort();
            Ok(found)
        };
        listed().map_err(refused(&self.path, "listed"))
    }

    /// Brings the folder to disk, so that a name in it survives a power cut.
    fn settle(&self) -> Result<(), Refused> {
        File::open(&self.path)
            .and_then(|folder| folder.sync_all())
            .map_err(refused(&self.path, "brought to disk"))
    }
}

/// Writes a file made anew: nobody has it open, and nobody chose its rights.
fn write_anew(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
