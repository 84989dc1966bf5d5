//! What the first process of a container can read: every file of every mount it sees, and its
//! variables. Looked at from outside, with no word of the container's or the pod's taken for it.

use crate::Cluster;
use crate::containers::Container;
use crate::error::{Doing, Error};
use std::collections::BTreeSet;
use std::io::ErrorKind::NotFound;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Where the kernel speaks of processes and devices, and nobody keeps files.
const NOT_FILES: [&str; 2] = ["/proc", "/sys"];
/// Where a process finds its own variables.
const VARIABLES: &str = "/proc/self/environ";

/// A text that was looked for, and where it is.
pub(crate) type Holding = (String, String);

impl Cluster {
    /// Where a container has any of these texts: files by their path inside, and its variables as
    /// `/proc/self/environ`.
    pub fn holdings(
        &self,
        container: &Container,
        texts: &[&str],
    ) -> Result<BTreeSet<Holding>, Error> {
        let texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
        let pid = container.process.pid;
        let looked = self.enclosure().run(move || {
            let process = format!("/proc/{pid}");
            let mut found = BTreeSet::new();
            let variables = std::fs::read(format!("{process}/environ"))?;
            note(&mut found, &texts, &variables, VARIABLES);
            walk(
                &format!("{process}/root"),
                Path::new("/"),
                &mut |path, bytes| {
                    note(&mut found, &texts, bytes, path);
                },
            )?;
            Ok::<_, std::io::Error>(found)
        });
        looked.doing(|| format!("the files of container {} could not be read", container.id))
    }

    /// Whether the user of one container may read a file of another through its process, as
    /// containers that see each other's processes can try.
    pub fn reaches(&self, from: &Container, into: &Container, file: &str) -> Result<bool, Error> {
        let (asking, asked) = (from.process.pid, into.process.pid);
        let file = format!("/proc/{asked}/root{file}");
        let tried = self.enclosure().run(move || {
            let user = std::fs::metadata(format!("/proc/{asking}"))?;
            let mut cat = Command::new("cat");
            let quiet = cat.arg(file).stdout(Stdio::null()).stderr(Stdio::null());
            quiet.uid(user.uid()).gid(user.gid()).status()
        });
        let tried = tried.doing(|| format!("nobody could ask as the user of {}", from.id))?;
        Ok(tried.success())
    }
}

fn note(found: &mut BTreeSet<Holding>, texts: &[String], bytes: &[u8], place: &str) {
    let read = String::from_utf8_lossy(bytes);
    let there = texts.iter().filter(|text| read.contains(text.as_str()));
    found.extend(there.map(|text| (text.clone(), place.to_owned())));
}

/// Every plain file below a folder of a root, by its path within the root. Links are not followed:
/// what they lead to is there under its own name, or outside.
fn walk(root: &str, folder: &Path, see: &mut impl FnMut(&str, &[u8])) -> std::io::Result<()> {
    for entry in std::fs::read_dir(format!("{root}{}", folder.display()))? {
        let entry = entry?;
        let path = folder.join(entry.file_name());
        let inside = path.display().to_string();
        let kind = entry.file_type()?;
        let looked = match kind.is_dir() {
            true if NOT_FILES.contains(&inside.as_str()) => Ok(()),
            true => walk(root, &path, see),
            false if !kind.is_file() => Ok(()),
            false => std::fs::read(format!("{root}{inside}")).map(|bytes| see(&inside, &bytes)),
        };
        match looked {
            // A node at work writes and removes files.
            Err(error) if error.kind() == NotFound => {}
            other => other?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plain_file_is_seen_by_its_path_inside_and_links_are_not_followed() {
        let root = std::env::temp_dir().join(format!("keelson-inside-{}", std::process::id()));
        for folder in ["proc", "a/proc"] {
            std::fs::create_dir_all(root.join(folder)).expect("a folder");
            std::fs::write(root.join(folder).join("file"), "key").expect("a file");
        }
        std::os::unix::fs::symlink("a/proc/file", root.join("link")).expect("a link");
        let mut seen = Vec::new();
        let text = root.display().to_string();
        let walked = walk(&text, Path::new("/"), &mut |path, bytes| {
            seen.push((path.to_owned(), bytes.to_vec()));
        });
        std::fs::remove_dir_all(&root).expect("removal");
        walked.expect("a walk");
        assert_eq!(seen, [("/a/proc/file".to_owned(), b"key".to_vec())]);
    }
}
