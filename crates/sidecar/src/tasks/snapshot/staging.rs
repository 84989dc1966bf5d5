//! The folder a snapshot is unpacked in, and how it takes its place.
//!
//! Beside the place, so that a rename is all that is needed. What was in the place before goes as a
//! whole: the list of snapshots in it would be wrong for any mixture.

use super::{TASK, of_disk};
use crate::disk::{self, UNFINISHED, settle, trouble as at};
use crate::fault::{Point, point};
use crate::home::Home;
use crate::work::Trouble;
use nix::sys::statvfs::statvfs;
use nix::unistd::syncfs;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// The three folders.
#[derive(Clone, Debug)]
pub(super) struct Staging {
    /// The place.
    place: PathBuf,
    /// What is being unpacked.
    new: PathBuf,
    /// What was in the place.
    old: PathBuf,
}

impl Staging {
    pub(super) fn new(home: &Home) -> Self {
        let beside = |word: &str| home.data().join(format!(".snapshots{word}"));
        Self {
            place: home.snapshots(),
            new: beside(UNFINISHED),
            old: beside(".keelson-old"),
        }
    }

    /// Where to unpack.
    pub(super) fn folder(&self) -> PathBuf {
        self.new.clone()
    }

    /// Takes away what an earlier run left, and makes the folder, if there is room for so many bytes.
    pub(super) fn begin(&self, size: u64) -> Result<(), Trouble> {
        self.clear()?;
        let data = self.new.parent().unwrap_or(&self.new);
        let room = room(data).map_err(|it| of_disk("prepare", &it))?;
        if room < size {
            let data = data.display();
            let what = format!(
                "the volume is too small: the archive alone has {size} bytes, and {room} are free in {data}"
            );
            let hint = "make room on the volume, or use a larger one";
            return Err(Trouble::lasting(TASK, "prepare", what).hinting(hint));
        }
        disk::folder(&self.new).map_err(|it| of_disk("prepare", &it))?;
        point(Point::UnpackBefore);
        Ok(())
    }

    /// Takes away everything that is not in place. What was in the place goes back where nothing is.
    pub(super) fn clear(&self) -> Result<(), Trouble> {
        let cleared = || {
            if self.old.exists() && !self.place.exists() {
                fs::rename(&self.old, &self.place).map_err(at(&self.place, "put back"))?;
            }
            disk::remove_folder(&self.new).and_then(|()| disk::remove_folder(&self.old))
        };
        cleared().map_err(|it| of_disk("clear", &it))
    }

    /// Brings what was unpacked to disk and puts it in place.
    pub(super) fn place(&self) -> Result<(), Trouble> {
        self.exchange().map_err(|it| of_disk("put in place", &it))
    }

    fn exchange(&self) -> Result<(), disk::Trouble> {
        point(Point::UnpackAfter);
        // All of them at once: one after the other takes a multiple of the time.
        File::open(&self.new)
            .and_then(|folder| Ok(syncfs(&folder)?))
            .map_err(at(&self.new, "brought to disk"))?;
        match fs::rename(&self.place, &self.old) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            moved => moved.map_err(at(&self.place, "moved out of the way"))?,
        }
        point(Point::AsideAfter);
        point(Point::PlaceBefore);
        fs::rename(&self.new, &self.place).map_err(at(&self.place, "put in place"))?;
        settle(&self.place)?;
        point(Point::PlaceAfter);
        disk::remove_folder(&self.old)
    }
}

/// How many bytes there is room for.
fn room(folder: &Path) -> Result<u64, disk::Trouble> {
    let found = statvfs(folder).map_err(|error| at(folder, "measured")(error.into()))?;
    Ok(found
        .blocks_available()
        .saturating_mul(found.fragment_size()))
}
