//! Where a member of an archive goes: decided by its name alone, part by part.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Why a name leads nowhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// It begins at the root.
    Absolute,
    /// It goes up.
    Upwards,
    /// No file can be called so.
    Impossible,
}

impl Misplaced {
    /// What is wrong with the member.
    pub const fn why(self) -> &'static str {
        match self {
            Self::Absolute => "is an absolute path and leaves the target folder",
            Self::Upwards => "has .. in it and leaves the target folder",
            Self::Impossible => "is not the name of a file",
        }
    }
}

/// The path below the target a name means; empty where it is the target itself.
pub fn inside(name: &[u8]) -> Result<PathBuf, Misplaced> {
    if name.first() == Some(&b'/') {
        return Err(Misplaced::Absolute);
    }
    if name.is_empty() || name.contains(&0) {
        return Err(Misplaced::Impossible);
    }
    let mut path = PathBuf::new();
    for part in name.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => return Err(Misplaced::Upwards),
            part => path.push(OsStr::from_bytes(part)),
        }
    }
    Ok(path)
}
