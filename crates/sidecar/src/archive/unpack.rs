//! Members become folders and files below a target.
//!
//! The target is new and empty and nobody else writes there, and no link is ever made: so no name
//! that stays inside leads outside.

use super::entry::inside;
use super::members::{Member, Members, refused};
use super::{Problem, Unpacked};
use crate::disk::{self, trouble};
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use nix::libc::O_NOFOLLOW;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tar::EntryType;

/// More members than any snapshot has.
const MEMBERS: u64 = 10_000_000;

pub(super) fn unpack(from: impl BufRead, target: &Path) -> Result<Unpacked, Problem> {
    let mut members = Members::of(from);
    let mut place = Place {
        target,
        folder: PathBuf::new(),
    };
    let mut unpacked = Unpacked::default();
    for _ in 0..MEMBERS {
        let Some(member) = members.next()? else {
            return Ok(unpacked);
        };
        let path = inside(&member.name).map_err(|it| refused(&member.name, it.why()))?;
        match member.type_ {
            EntryType::Directory => place.folder(&path, member.mode)?,
            EntryType::Regular | EntryType::Continuous => {
                place.file(&path, &member, &mut members)?;
                unpacked.files += 1;
                unpacked.bytes += member.size;
            }
            EntryType::Symlink | EntryType::Link => {
                let why = "is a link, and links are not made: they could lead out of the folder";
                return Err(refused(&member.name, why));
            }
            _ => {
                let name = String::from_utf8_lossy(&member.name);
                tracing::warn!(%name, "a member that is neither folder nor file is left out");
                unpacked.skipped += 1;
            }
        }
    }
    Err(Problem::Damaged(format!(
        "it has more than {MEMBERS} members"
    )))
}

/// Where members go.
struct Place<'a> {
    target: &'a Path,
    /// The folder that was made last: the next file is most often in it, too.
    folder: PathBuf,
}

impl Place<'_> {
    fn folder(&mut self, path: &Path, mode: u32) -> Result<(), Problem> {
        if let Some(parent) = path.parent() {
            self.parent(parent)?;
        }
        let folder = self.target.join(path);
        let made = DirBuilder::new().mode(mode & 0o777 | 0o700).create(&folder);
        match made {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => Ok(()),
            made => Ok(made.map_err(trouble(&folder, "made"))?),
        }
    }

    fn file(
        &mut self,
        path: &Path,
        member: &Member,
        members: &mut Members<impl BufRead>,
    ) -> Result<(), Problem> {
        let (Some(parent), Some(_)) = (path.parent(), path.file_name()) else {
            return Err(refused(
                &member.name,
                "is a file where the folder itself is",
            ));
        };
        self.parent(parent)?;
        let path = self.target.join(path);
        let mut file: File = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(member.mode & 0o777 | 0o600)
            .custom_flags(O_NOFOLLOW)
            .open(&path)
            .map_err(trouble(&path, "made"))?;
        members.bytes(|piece| {
            Ok::<(), Problem>(file.write_all(piece).map_err(trouble(&path, "written"))?)
        })?;
        // Begins to bring it to disk, so that there is less to wait for at the end. No more than a
        // word of advice: whoever does not take it is asked again then.
        let _ = posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
        Ok(())
    }

    /// Makes what leads to a member, where the archive does not name it itself.
    fn parent(&mut self, parent: &Path) -> Result<(), Problem> {
        if parent != self.folder {
            disk::folder(&self.target.join(parent))?;
            self.folder = parent.to_owned();
        }
        Ok(())
    }
}
