//! Folders as one archive: what is in them, and a stream of their bytes with bounded memory.
//!
//! What is packed was surveyed before and must be the same afterwards: a file that grows, shrinks,
//! vanishes, comes or is replaced in between is an error, and whoever reads the stream then throws away
//! what came of it. A folder that somebody writes all the time is copied first, at a moment when it
//! stands still.

mod pipe;

pub use pipe::{Pipe, pipe};

use crate::disk;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::{self, File, Metadata};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How much of a file is read at once.
const PIECE: usize = 256 * 1024;
/// How long nobody must have written for a folder to stand still: longer than the ticks in which a
/// disk tells times, so that nobody writes twice in one.
const STILL: Duration = Duration::from_millis(100);
/// How often it is tried to find a folder standing still, and how long it is waited in between.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(100);

/// Why something was not packed.
#[derive(Debug, thiserror::Error)]
pub enum NotPacked {
    /// It is not what it was.
    #[error("{} changed while it was packed: {what}", path.display())]
    Changed {
        /// The file or folder.
        path: PathBuf,
        /// In which way.
        what: &'static str,
    },
    /// It has no place in an archive.
    #[error("{} is neither a file nor a folder: take it away", .0.display())]
    Odd(PathBuf),
    /// The system refuses.
    #[error("{0}")]
    Disk(#[from] disk::Trouble),
    /// Nobody wants it any more.
    #[error("it was told to stop")]
    Stopped,
}

fn unread(path: &Path) -> impl FnOnce(io::Error) -> NotPacked {
    let path = path.to_owned();
    move |source| match source.kind() {
        io::ErrorKind::NotFound => NotPacked::Changed {
            path,
            what: "it is gone",
        },
        _ => NotPacked::Disk(disk::Trouble {
            path,
            verb: "read",
            source,
        }),
    }
}

/// A file or folder below another, as it was when it was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Entry {
    /// Its name in the archive.
    name: PathBuf,
    folder: bool,
    size: u64,
    mode: u32,
    modified: (i64, i64),
    inode: u64,
}

impl Entry {
    /// Whether it was written just now.
    fn is_fresh(&self) -> bool {
        let (seconds, nanos) = self.modified;
        let written = u64::try_from(seconds).ok().zip(u32::try_from(nanos).ok());
        let written = written.map(|(seconds, nanos)| UNIX_EPOCH + Duration::new(seconds, nanos));
        // One that was written in the future was written by another clock, and is no evidence.
        let age = written.and_then(|it| SystemTime::now().duration_since(it).ok());
        age.is_some_and(|age| age < STILL)
    }

    fn new(name: PathBuf, metadata: &Metadata) -> Self {
        let folder = metadata.is_dir();
        Self {
            name,
            folder,
            size: if folder { 0 } else { metadata.len() },
            mode: metadata.mode() & 0o777,
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            inode: metadata.ino(),
        }
    }
}

/// A file or folder with everything below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tree {
    root: PathBuf,
    /// In the order of names, a folder before what is in it.
    entries: Vec<Entry>,
}

impl Tree {
    /// Looks at what is under a name in a folder.
    pub fn survey(root: &Path, name: impl Into<PathBuf>) -> Result<Self, NotPacked> {
        let (mut entries, mut ahead) = (Vec::new(), vec![name.into()]);
        while let Some(name) = ahead.pop() {
            let path = root.join(&name);
            let metadata = fs::symlink_metadata(&path).map_err(unread(&path))?;
            if metadata.is_dir() {
                for inside in fs::read_dir(&path).map_err(unread(&path))? {
                    let inside = inside.map_err(unread(&path))?;
                    ahead.push(name.join(inside.file_name()));
                }
            } else if !metadata.is_file() {
                return Err(NotPacked::Odd(path));
            }
            entries.push(Entry::new(name, &metadata));
        }
        entries.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Self {
            root: root.to_owned(),
            entries,
        })
    }

    /// How many bytes its files have.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().map(|entry| entry.size).sum()
    }

    /// The same, where it was copied to; the copy is made at a moment when nobody writes.
    pub fn copy(root: &Path, name: &Path, to: &Path) -> Result<Self, NotPacked> {
        for _ in 0..TRIES {
            match copied(root, name, to) {
                Ok(true) => return Self::survey(to, name),
                Ok(false) | Err(NotPacked::Changed { .. }) => std::thread::sleep(PAUSE),
                Err(other) => return Err(other),
            }
        }
        Err(NotPacked::Changed {
            path: root.join(name),
            what: "it does not stand still",
        })
    }

    /// That it still is what it was.
    fn check(&self) -> Result<(), NotPacked> {
        let first = self.entries.first().map(|it| it.name.clone());
        let now = Self::survey(&self.root, first.unwrap_or_default())?;
        let pairs = self.entries.iter().zip(&now.entries);
        let differs = pairs.filter(|(before, now)| before != now);
        let what = match differs.map(|(before, _)| before).next() {
            Some(entry) => Some((self.root.join(&entry.name), "it is another")),
            None if self.entries.len() != now.entries.len() => {
                Some((self.root.clone(), "there are more or fewer files"))
            }
            None => None,
        };
        match what {
            Some((path, what)) => Err(NotPacked::Changed { path, what }),
            None => Ok(()),
        }
    }
}

/// Copies; says whether nobody wrote meanwhile.
fn copied(root: &Path, name: &Path, to: &Path) -> Result<bool, NotPacked> {
    disk::remove_folder(to)?;
    disk::folder(to)?;
    let before = Tree::survey(root, name)?;
    if before.entries.iter().any(Entry::is_fresh) {
        return Ok(false);
    }
    for entry in &before.entries {
        let (from, to) = (root.join(&entry.name), to.join(&entry.name));
        match entry.folder {
            true => disk::folder(&to)?,
            false => {
                fs::copy(&from, &to).map_err(unread(&from))?;
            }
        }
    }
    Ok(before == Tree::survey(root, name)?)
}

/// Packs trees into one compressed archive. `stop` is asked again and again; `count` is told the bytes
/// as they are read.
pub fn pack<W: Write>(
    trees: &[Tree],
    into: W,
    stop: &dyn Fn() -> bool,
    count: &dyn Fn(u64),
) -> Result<W, NotPacked> {
    // What the chain writes is compressed already.
    let mut archive = tar::Builder::new(GzEncoder::new(into, Compression::fast()));
    for tree in trees {
        for entry in &tree.entries {
            append(&mut archive, &tree.root, entry, stop, count)?;
        }
    }
    for tree in trees {
        tree.check()?;
    }
    let compressed = archive.into_inner().and_then(GzEncoder::finish);
    // The only one who can refuse now is who no longer listens.
    compressed.map_err(|_| NotPacked::Stopped)
}

fn append<W: Write>(
    archive: &mut tar::Builder<W>,
    root: &Path,
    entry: &Entry,
    stop: &dyn Fn() -> bool,
    count: &dyn Fn(u64),
) -> Result<(), NotPacked> {
    let mut header = tar::Header::new_gnu();
    header.set_mtime(u64::try_from(entry.modified.0).unwrap_or_default());
    header.set_size(entry.size);
    if entry.folder {
        header.set_entry_type(tar::EntryType::Directory);
        header.set_mode(entry.mode | 0o700);
        let appended = archive.append_data(&mut header, &entry.name, io::empty());
        return appended.map_err(|_| NotPacked::Stopped);
    }
    header.set_entry_type(tar::EntryType::Regular);
    header.set_mode(entry.mode | 0o600);
    let path = root.join(&entry.name);
    let file = File::open(&path).map_err(unread(&path))?;
    let mut exact = Exact {
        file,
        left: entry.size,
        stop,
        count,
        problem: None,
    };
    let reader = BufReader::with_capacity(PIECE, &mut exact);
    let appended = archive.append_data(&mut header, &entry.name, reader);
    match (appended, exact.problem.take()) {
        (Ok(()), _) => Ok(()),
        (Err(_), Some(Problem::Short)) => Err(NotPacked::Changed {
            path,
            what: "it is shorter than it was",
        }),
        (Err(_), Some(Problem::Disk(error))) => Err(unread(&path)(error)),
        (Err(_), Some(Problem::Stopped) | None) => Err(NotPacked::Stopped),
    }
}

/// As many bytes of a file as it had: an archive has promised them.
struct Exact<'a> {
    file: File,
    left: u64,
    stop: &'a dyn Fn() -> bool,
    count: &'a dyn Fn(u64),
    problem: Option<Problem>,
}

enum Problem {
    Short,
    Stopped,
    Disk(io::Error),
}

impl Exact<'_> {
    fn fail(&mut self, problem: Problem) -> io::Result<usize> {
        self.problem = Some(problem);
        Err(io::ErrorKind::Other.into())
    }
}

impl Read for Exact<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Ok(0);
        }
        if (self.stop)() {
            return self.fail(Problem::Stopped);
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let most = most.min(into.len());
        match self.file.read(&mut into[..most]) {
            Ok(0) => self.fail(Problem::Short),
            Ok(read) => {
                let more = u64::try_from(read).unwrap_or(u64::MAX);
                self.left -= more;
                (self.count)(more);
                Ok(read)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => self.fail(Problem::Disk(error)),
        }
    }
}
