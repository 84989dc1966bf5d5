//! The lock on the host: never two handlers at once, ours or the original's.
//!
//! It is an exclusive `flock` on a file both know, so it ends with its holder, however that ends. Who
//! holds it is asked of the kernel's own list, because the file says nothing.

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What came of asking for the lock.
#[derive(Debug)]
pub enum Asked {
    /// It is ours until this is dropped.
    Ours(Flock<File>),
    /// Somebody else has it.
    Taken {
        /// Who, as far as it can be told.
        holder: String,
    },
}

/// Asks for the lock.
pub fn ask(path: &Path) -> io::Result<Asked> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
        Ok(lock) => Ok(Asked::Ours(lock)),
        Err((file, Errno::EWOULDBLOCK)) => Ok(Asked::Taken {
            holder: holder(&file),
        }),
        Err((_, error)) => Err(error.into()),
    }
}

/// Who holds the lock, in words.
fn holder(file: &File) -> String {
    let known = || {
        let inode = file.metadata().ok()?.ino();
        let locks = fs::read_to_string("/proc/locks").ok()?;
        let process = holding(&locks, inode)?;
        let name = fs::read_to_string(format!("/proc/{process}/comm"));
        Some(match name {
            Ok(name) => format!("process {process} ({})", name.trim()),
            // It is in another container, or not ours to see.
            Err(_) => format!("process {process}"),
        })
    };
    known().unwrap_or_else(|| "a process that cannot be seen from here".to_owned())
}

/// The process that holds a lock on this inode, of the kernel's list.
fn holding(locks: &str, inode: u64) -> Option<u32> {
    locks.lines().find_map(|line| {
        // 1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF
        let words: Vec<&str> = line.split_whitespace().collect();
        let place = words.get(5)?;
        let ours = place.rsplit(':').next()?.parse() == Ok(inode);
        (ours && words.get(1) == Some(&"FLOCK"))
            .then(|| words.get(4)?.parse().ok())
            .flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_found_in_the_kernels_list() {
        let locks = "1: POSIX  ADVISORY  WRITE 7 08:01:42 0 EOF\n\
                     2: FLOCK  ADVISORY  WRITE 1234 08:01:42 0 EOF\n\
                     2: -> FLOCK  ADVISORY  WRITE 99 08:01:42 0 EOF\n";
        assert_eq!(holding(locks, 42), Some(1234));
        assert_eq!(holding(locks, 43), None);
    }

    #[test]
    fn a_lock_is_taken_once_and_free_when_it_is_dropped() {
        let path = std::env::temp_dir().join(format!("keelson-lock-{}", std::process::id()));
        let first = ask(&path).expect("a file");
        assert!(matches!(first, Asked::Ours(_)));
        match ask(&path).expect("a file") {
            Asked::Taken { holder } => {
                let own = format!("process {} (", std::process::id());
                assert!(holder.starts_with(&own), "{holder}");
            }
            Asked::Ours(_) => panic!("the lock was taken twice"),
        }
        drop(first);
        assert!(matches!(ask(&path), Ok(Asked::Ours(_))));
        fs::remove_file(path).expect("a file");
    }
}
