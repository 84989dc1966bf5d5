//! Where a cluster keeps its files, and how the remains of a killed one are found and removed.
//!
//! `<cache>/clusters/<name>` belongs to one process for as long as it lives: it holds a lock on the
//! folder, which the kernel drops with the process. A folder nobody holds is a remain; its cgroups
//! (named after it) and the folder go. Nothing else on the machine is looked at.

use crate::cgroup;
use crate::error::{Doing, Error};
use nix::fcntl::{Flock, FlockArg};
use std::fs::{File, OpenOptions};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A cluster's folder, held until dropped, then removed.
#[derive(Debug)]
pub(crate) struct State {
    folder: PathBuf,
    name: String,
    _held: Flock<File>,
}

impl State {
    /// Sweeps the remains of others, then makes the folder of a new cluster.
    pub(crate) fn create(root: &Path, name: &str) -> Result<Self, Error> {
        let _alone = alone(root)?;
        sweep_unheld(root)?;
        let folder = root.join(name);
        if folder.starts_with("/var") || folder.starts_with("/run") {
            let why = "inside a cluster /var and /run are covered; set KEELSON_CACHE elsewhere";
            return Err(Error::StateFolder {
                path: folder,
                why: why.into(),
            });
        }
        if folder.exists() {
            let why = "a cluster of this name is running; take it down first".into();
            return Err(Error::StateFolder { path: folder, why });
        }
        for part in ["logs", "pids", "pki"] {
            std::fs::create_dir_all(folder.join(part))
                .doing(|| format!("{} could not be made", folder.display()))?;
        }
        let held = match hold(&folder)? {
            Some(held) => held,
            None => {
                let why = "another process holds it".into();
                return Err(Error::StateFolder { path: folder, why });
            }
        };
        Ok(Self {
            folder,
            name: name.to_owned(),
            _held: held,
        })
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The name of the cluster's cgroup in every hierarchy.
    pub(crate) fn cgroup(&self) -> String {
        cgroup_name(&self.name)
    }

    /// Writes a file of the cluster and returns its path.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<String, Error> {
        let path = self.folder.join(name);
        std::fs::write(&path, text).doing(|| format!("{} could not be written", path.display()))?;
        Ok(path.display().to_string())
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _ = remove(&self.folder, &self.name);
    }
}

/// Whether a live process holds the cluster of this name.
pub(crate) fn is_held(root: &Path, name: &str) -> Result<bool, Error> {
    let folder = root.join(name);
    Ok(folder.exists() && hold(&folder)?.is_none())
}

/// Removes what killed clusters left; returns their names.
pub(crate) fn sweep(root: &Path) -> Result<Vec<String>, Error> {
    let _alone = alone(root)?;
    sweep_unheld(root)
}

fn sweep_unheld(root: &Path) -> Result<Vec<String>, Error> {
    let entries =
        std::fs::read_dir(root).doing(|| format!("{} could not be read", root.display()))?;
    let mut swept = Vec::new();
    for folder in entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
    {
        let Some(name) = folder.file_name().and_then(|name| name.to_str()) else {
            continue;
        };
        if let Some(_held) = hold(&folder)? {
            remove(&folder, name)?;
            swept.push(name.to_owned());
        }
    }
    Ok(swept)
}

/// The processes have ended with their enclosure; the kernel may need a moment to let go of their
/// cgroups and mounts.
fn remove(folder: &Path, name: &str) -> Result<(), Error> {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let done =
            cgroup::remove(&cgroup_name(name)).and_then(|()| {
                match std::fs::remove_dir_all(folder) {
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
                    other => other,
                }
            });
        match done {
            Err(_) if Instant::now() < deadline => std::thread::sleep(Duration::from_millis(20)),
            done => {
                return done.doing(|| format!("what cluster {name} left could not be removed"));
            }
        }
    }
}

fn cgroup_name(cluster: &str) -> String {
    format!("keelson-{cluster}")
}

/// One process at a time makes and sweeps folders, so that none is swept between its making and
/// its holding.
fn alone(root: &Path) -> Result<Flock<File>, Error> {
    std::fs::create_dir_all(root).doing(|| format!("{} could not be made", root.display()))?;
    lock(&root.join(".lock"), FlockArg::LockExclusive)
        .doing(|| format!("{} could not be locked", root.display()))
}

fn hold(folder: &Path) -> Result<Option<Flock<File>>, Error> {
    match lock(&folder.join("held"), FlockArg::LockExclusiveNonblock) {
        Ok(held) => Ok(Some(held)),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
        // Swept by another between our look and our hold.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).doing(|| format!("{} could not be locked", folder.display())),
    }
}

/// Locks a file, making it where it is absent.
pub(crate) fn lock(path: &Path, how: FlockArg) -> std::io::Result<Flock<File>> {
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(path)?;
    Flock::lock(file, how).map_err(|(_, errno)| errno.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sweep_takes_what_nobody_holds_and_nothing_else() {
        let id = std::process::id();
        // Not below /var or /run, which a cluster cannot use.
        let root = std::env::temp_dir().join(format!("keelson-sweep-{id}"));
        let held = State::create(&root, &format!("unit-held-{id}")).expect("a folder");
        let left = format!("unit-left-{id}");
        std::fs::create_dir_all(root.join(&left).join("logs")).expect("a folder");
        cgroup::make(&cgroup_name(&left)).expect("a cgroup");

        assert_eq!(sweep(&root).expect("a sweep"), std::slice::from_ref(&left));
        assert!(!root.join(&left).exists());
        assert!(held.folder().exists());
        assert!(is_held(&root, &held.name).expect("a look"));

        let again = State::create(&root, &held.name).expect_err("a name that is taken");
        assert!(again.to_string().contains("is running"), "{again}");
        drop(held);
        assert_eq!(sweep(&root).expect("a sweep"), Vec::<String>::new());
        std::fs::remove_dir_all(root).expect("removal");
    }
}
