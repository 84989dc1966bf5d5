//! Generated files: which there are, what they hold, and whether the committed ones are current.
//!
//! A generated file is a path and a text. Writing and checking are the same for all of them; a new
//! kind of file is one more source in [`files`].

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

mod crds;
mod openapi;
mod pages;
mod roles;

/// What to run when a file is not current.
const COMMAND: &str = "make generate";

/// A file that is generated, by its path below the workspace's root.
struct Generated {
    path: PathBuf,
    text: String,
}

fn files() -> Result<Vec<Generated>> {
    let mut files = crds::files()?;
    files.extend(openapi::files()?);
    files.extend(pages::files());
    files.extend(roles::files());
    Ok(files)
}

/// Folders that hold generated files and nothing else.
const FOLDERS: &[&str] = &[crds::FOLDER];

/// Writes every generated file that differs and removes those that are generated no more.
pub(crate) fn write(root: &Path) -> Result<()> {
    let files = files()?;
    for leftover in leftovers(root, &files)? {
        fs::remove_file(root.join(&leftover))
            .with_context(|| format!("remove {}", leftover.display()))?;
        println!("removed {}", leftover.display());
    }
    for file in files {
        let path = root.join(&file.path);
        if fs::read_to_string(&path).is_ok_and(|text| text == file.text) {
            continue;
        }
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
        }
        fs::write(&path, &file.text).with_context(|| format!("write {}", file.path.display()))?;
        println!("wrote {}", file.path.display());
    }
    Ok(())
}

/// Fails if a committed file is not what would be written, naming each.
pub(crate) fn check(root: &Path) -> Result<()> {
    let stale = stale(root)?;
    if stale.is_empty() {
        return Ok(());
    }
    let names: Vec<_> = stale
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    bail!(
        "not what the types say: {}; run `{COMMAND}` and commit the result",
        names.join(", ")
    )
}

fn stale(root: &Path) -> Result<Vec<PathBuf>> {
    let files = files()?;
    let mut stale = leftovers(root, &files)?;
    for file in files {
        let current = fs::read_to_string(root.join(&file.path));
        if !current.is_ok_and(|text| text == file.text) {
            stale.push(file.path);
        }
    }
    Ok(stale)
}

/// Files in generated folders that nothing generates.
fn leftovers(root: &Path, files: &[Generated]) -> Result<Vec<PathBuf>> {
    let mut leftovers = Vec::new();
    for folder in FOLDERS {
        let Ok(entries) = fs::read_dir(root.join(folder)) else {
            continue;
        };
        for entry in entries {
            let path = Path::new(folder).join(entry?.file_name());
            if !files.iter().any(|file| file.path == path) {
                leftovers.push(path);
            }
        }
    }
    leftovers.sort();
    Ok(leftovers)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy() -> PathBuf {
        let name = std::thread::current()
            .name()
            .unwrap_or("test")
            .replace("::", "-");
        let root = std::env::temp_dir().join(format!("keelson-{}-{name}", std::process::id()));
        write(&root).unwrap();
        root
    }

    #[test]
    fn committed_files_are_what_the_types_say() {
        check(crate::workspace_root()).unwrap();
    }

    #[test]
    fn a_changed_file_is_named_with_the_command_that_mends_it() {
        let root = copy();
        let path = Path::new(crds::FOLDER).join("seinodes.sei.io.yaml");
        fs::write(root.join(&path), "edited by hand").unwrap();

        let error = check(&root).unwrap_err().to_string();
        fs::remove_dir_all(&root).unwrap();

        assert!(
            error.contains("deploy/crds/seinodes.sei.io.yaml"),
            "{error}"
        );
        assert!(error.contains("make generate"), "{error}");
        assert!(!error.contains("nmstates"), "{error}");
    }

    #[test]
    fn a_stale_description_of_the_api_is_named() {
        let root = copy();
        let text = fs::read_to_string(root.join(openapi::PATH)).unwrap();
        fs::write(root.join(openapi::PATH), text.replace("3.1.0", "3.0.0")).unwrap();

        let error = check(&root).unwrap_err().to_string();
        fs::remove_dir_all(&root).unwrap();

        assert!(error.contains("docs/sidecar-openapi.yaml"), "{error}");
        assert!(!error.contains("crds"), "{error}");
    }

    #[test]
    fn a_missing_file_and_a_leftover_one_are_named() {
        let root = copy();
        fs::remove_file(root.join("deploy/crds/nmstates.nmstate.io.yaml")).unwrap();
        fs::write(root.join("deploy/crds/forgotten.yaml"), "").unwrap();

        let error = check(&root).unwrap_err().to_string();
        write(&root).unwrap();
        let mended = check(&root);
        fs::remove_dir_all(&root).unwrap();

        assert!(
            error.contains("deploy/crds/nmstates.nmstate.io.yaml"),
            "{error}"
        );
        assert!(error.contains("deploy/crds/forgotten.yaml"), "{error}");
        mended.unwrap();
    }
}
