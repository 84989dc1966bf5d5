//! Files that are either the old ones or the new ones, whatever happens in between.
//!
//! A new text is written beside its place, brought to disk, and then renamed over the old one; the
//! folder is brought to disk last, so that the rename survives a power cut, too. Several files are
//! one unit as far as that can be had: all are written before the first is renamed.

use crate::fault::{Point, point};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// How the name of a file ends that is not in its place yet.
pub const UNFINISHED: &str = ".keelson-new";

/// What went wrong with a file.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be {verb}: {source}", path.display())]
pub struct Trouble {
    /// The file or folder.
    pub path: PathBuf,
    /// What was being done with it.
    pub verb: &'static str,
    /// What the system says.
    pub source: io::Error,
}

/// What a failure at a path is told as.
pub(crate) fn trouble(path: &Path, verb: &'static str) -> impl FnOnce(io::Error) -> Trouble {
    let path = path.to_owned();
    move |source| Trouble { path, verb, source }
}

/// A file to be put in place.
#[derive(Clone, Debug)]
pub struct New<'a> {
    /// Where it goes.
    pub path: PathBuf,
    /// What stands in it.
    pub bytes: &'a [u8],
    /// Who may read it.
    pub mode: u32,
}

/// Puts one file in place.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> Result<(), Trouble> {
    let path = path.to_owned();
    replace_all(&[New { path, bytes, mode }])
}

/// Puts files in place as one: none is renamed before all are on disk.
pub fn replace_all(files: &[New<'_>]) -> Result<(), Trouble> {
    let written: Result<Vec<PathBuf>, Trouble> = files.iter().map(write_beside).collect();
    let beside = match written {
        Ok(beside) => beside,
        Err(trouble) => {
            for file in files {
                // What is left lies about under a name nobody reads, and goes at the next start.
                let _ = fs::remove_file(unfinished(&file.path));
            }
            return Err(trouble);
        }
    };
    for (file, beside) in files.iter().zip(&beside) {
        rename(beside, &file.path)?;
    }
    for file in files {
        settle(&file.path)?;
    }
    Ok(())
}

fn write_beside(new: &New<'_>) -> Result<PathBuf, Trouble> {
    let mut beside = Beside::create(&new.path, new.mode)?;
    beside.write(new.bytes)?;
    beside.finish()
}

/// A file that is written piece by piece beside its place. One that is not put in place is taken away
/// again.
#[derive(Debug)]
pub struct Beside {
    place: PathBuf,
    mode: u32,
    file: File,
    left: bool,
}

impl Beside {
    /// An empty file beside a place.
    pub fn create(place: &Path, mode: u32) -> Result<Self, Trouble> {
        let beside = unfinished(place);
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(mode)
            .open(&beside)
            .map_err(trouble(&beside, "created"))?;
        Ok(Self {
            place: place.to_owned(),
            mode,
            file,
            left: true,
        })
    }

    /// Where it is until it is put in place.
    pub fn path(&self) -> PathBuf {
        unfinished(&self.place)
    }

    /// Takes more bytes.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Trouble> {
        let written = self.file.write_all(bytes);
        written.map_err(trouble(&self.path(), "written"))
    }

    /// Brings it to disk, and says where it is.
    fn finish(mut self) -> Result<PathBuf, Trouble> {
        let path = self.path();
        self.file
            // A file that was left from before keeps its rights, and the process' mask takes some away.
            .set_permissions(fs::Permissions::from_mode(self.mode))
            .and_then(|()| self.file.sync_all())
            .map_err(trouble(&path, "written"))?;
        self.left = false;
        Ok(path)
    }

    /// Brings it to disk and puts it in place.
    pub fn put_in_place(self) -> Result<(), Trouble> {
        let place = self.place.clone();
        let beside = self.finish()?;
        rename(&beside, &place)?;
        settle(&place)
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if self.left {
            // What is left lies about under a name nobody reads, and goes at the next start.
            let _ = fs::remove_file(self.path());
        }
    }
}

fn rename(beside: &Path, place: &Path) -> Result<(), Trouble> {
    point(Point::RenameBefore);
    fs::rename(beside, place).map_err(trouble(place, "put in place"))?;
    point(Point::RenameAfter);
    Ok(())
}

fn unfinished(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(UNFINISHED);
    PathBuf::from(name)
}

/// Brings the folder of a file to disk: what it is called, and whether it is there.
pub(crate) fn settle(path: &Path) -> Result<(), Trouble> {
    let folder = path.parent().unwrap_or(Path::new("."));
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(trouble(folder, "brought to disk"))
}

/// Takes a file away for good; one that is not there is fine.
pub fn remove(path: &Path) -> Result<(), Trouble> {
    point(Point::RemoveBefore);
    match fs::remove_file(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(trouble(path, "removed")(error)),
    }
    point(Point::RemoveAfter);
    settle(path)
}

/// The text of a file, or nothing where there is none.
pub fn read(path: &Path) -> Result<Option<String>, Trouble> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(trouble(path, "read")(error)),
    }
}

/// Makes a folder and what leads to it.
pub fn folder(path: &Path) -> Result<(), Trouble> {
    fs::create_dir_all(path).map_err(trouble(path, "made"))
}

/// Takes a folder away with everything in it; one that is not there is fine.
pub fn remove_folder(path: &Path) -> Result<(), Trouble> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed.map_err(trouble(path, "removed")),
    }
}

/// Takes away what a process that died left unfinished in a folder.
pub fn sweep(folder: &Path) -> Result<(), Trouble> {
    for entry in fs::read_dir(folder).map_err(trouble(folder, "listed"))? {
        let entry = entry.map_err(trouble(folder, "listed"))?;
        if entry.file_name().to_string_lossy().ends_with(UNFINISHED) {
            fs::remove_file(entry.path()).map_err(trouble(&entry.path(), "removed"))?;
        }
    }
    Ok(())
}
