//! The cgroup under which a cluster's kubelet puts its pods: one folder of the cluster's name in
//! every hierarchy, so that two clusters never see each other's pods and removal is by name.

use std::io;
use std::path::{Path, PathBuf};

const ROOT: &str = "/sys/fs/cgroup";

/// Makes the cgroup in every hierarchy the machine has.
pub(crate) fn make(name: &str) -> io::Result<()> {
    for hierarchy in hierarchies()? {
        let group = hierarchy.join(name);
        std::fs::create_dir_all(&group)?;
        // A new cpuset is empty, and a process cannot enter an empty one.
        for file in ["cpuset.cpus", "cpuset.mems"] {
            if hierarchy.join(file).exists() {
                std::fs::write(group.join(file), std::fs::read(hierarchy.join(file))?)?;
            }
        }
    }
    Ok(())
}

/// Removes the cgroup and all below it; fails while a process is inside.
pub(crate) fn remove(name: &str) -> io::Result<()> {
    hierarchies()?
        .iter()
        .try_for_each(|hierarchy| remove_tree(&hierarchy.join(name)))
}

/// The mounted hierarchies: with cgroup v2 there is one, at the root.
fn hierarchies() -> io::Result<Vec<PathBuf>> {
    if Path::new(ROOT).join("cgroup.controllers").exists() {
        return Ok(vec![ROOT.into()]);
    }
    let entries = std::fs::read_dir(ROOT)?.flatten().map(|entry| entry.path());
    Ok(entries
        .filter(|path| path.is_dir() && !path.is_symlink())
        .collect())
}

fn remove_tree(group: &Path) -> io::Result<()> {
    let entries = match std::fs::read_dir(group) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for child in entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
    {
        remove_tree(&child)?;
    }
    std::fs::remove_dir(group)
}
