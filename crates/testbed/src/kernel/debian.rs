//! Debian's kernel as it is packaged, fetched once and kept: the kernel itself, and the modules a guest
//! needs. It is not installed: the machine keeps its own.

use crate::error::{Doing, Error};
use crate::progress::Progress;
use crate::{cache, packages};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The package that stands for the newest kernel of the release. The one for clouds has no 9p.
const PACKAGE: &str = "linux-image-amd64";

/// What is not in the kernel itself: a way out, a disk that is the machine's, memory over it, cables and
/// switches as the machine has them too, and the devices all this is for.
const MODULES: [&str; 11] = [
    "virtio_pci",
    "virtio_net",
    "9pnet_virtio",
    "9p",
    "overlay",
    "veth",
    "bridge",
    "8021q",
    "bonding",
    "dummy",
    "vrf",
];

/// A kernel and its modules.
#[derive(Debug)]
pub(super) struct Kernel {
    /// As the package is named.
    pub(super) name: String,
    pub(super) image: PathBuf,
    /// In the order they can be loaded in.
    pub(super) modules: Vec<PathBuf>,
}

/// The kernel that is kept, fetched where there is none.
pub(super) fn kernel() -> Result<Kernel, Error> {
    let kept = cache::folder().join("kernel").join(PACKAGE);
    let wanted = MODULES.join("\n");
    let of = kept.join("wanted");
    // Kept by an earlier version of this list, it lacks something.
    if std::fs::read_to_string(&of).is_ok_and(|it| it == wanted) {
        return read(&kept);
    }
    let progress = Progress::start(format!("fetching Debian's kernel ({PACKAGE})"));
    let partial = kept.with_extension("partial");
    let unpacked = kept.with_extension("unpacked");
    for folder in [&partial, &unpacked, &kept] {
        clear(folder)?;
    }
    let package = packages::fetch(PACKAGE, &unpacked)?;
    select(&unpacked, &partial)?;
    for (file, text) in [("name", package.as_str()), ("wanted", &wanted)] {
        let path = partial.join(file);
        std::fs::write(&path, text).doing(|| format!("{} could not be written", path.display()))?;
    }
    std::fs::rename(&partial, &kept).doing(|| format!("{} could not be kept", kept.display()))?;
    clear(&unpacked)?;
    progress.done();
    read(&kept)
}

fn clear(folder: &Path) -> Result<(), Error> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).doing(|| format!("{} could not be removed", folder.display()))
        }
        _ => Ok(()),
    }
}

fn read(kept: &Path) -> Result<Kernel, Error> {
    let reading = || format!("{} could not be read", kept.display());
    let name = std::fs::read_to_string(kept.join("name")).doing(reading)?;
    let modules = std::fs::read_dir(kept.join("modules")).doing(reading)?;
    let mut modules: Vec<PathBuf> = modules.flatten().map(|it| it.path()).collect();
    modules.sort();
    Ok(Kernel {
        name,
        image: kept.join("vmlinuz"),
        modules,
    })
}

/// Takes the kernel and the modules out of what a package brings.
fn select(unpacked: &Path, into: &Path) -> Result<(), Error> {
    let modules = into.join("modules");
    std::fs::create_dir_all(&modules)
        .doing(|| format!("{} could not be made", modules.display()))?;
    let mut image = None;
    let mut known = BTreeMap::new();
    for path in files(unpacked)? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.starts_with("vmlinuz-") {
            image = Some(path);
        } else if let Some(stem) = name.strip_suffix(".ko") {
            known.insert(stem.replace('-', "_"), path);
        }
    }
    let image = image.ok_or_else(|| lacks("kernel"))?;
    copy(&image, &into.join("vmlinuz"))?;
    for (number, name) in in_order(&known)?.iter().enumerate() {
        copy(
            &known[name],
            &modules.join(format!("{number:02}-{name}.ko")),
        )?;
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> Result<(), Error> {
    let copied = std::fs::copy(from, to);
    copied
        .map(drop)
        .doing(|| format!("{} could not be kept", from.display()))
}

/// The names of all modules that are needed, each after those it needs itself.
fn in_order(known: &BTreeMap<String, PathBuf>) -> Result<Vec<String>, Error> {
    let mut order = Vec::new();
    for name in MODULES {
        place(name, known, &mut order)?;
    }
    Ok(order)
}

fn place(
    name: &str,
    known: &BTreeMap<String, PathBuf>,
    order: &mut Vec<String>,
) -> Result<(), Error> {
    if order.iter().any(|it| it == name) {
        return Ok(());
    }
    let path = known.get(name).ok_or_else(|| lacks(name))?;
    let module = std::fs::read(path).doing(|| format!("{} could not be read", path.display()))?;
    for needed in needs(&module) {
        place(&needed, known, order)?;
    }
    order.push(name.to_owned());
    Ok(())
}

/// What a module says it needs: `depends=a,b` between two zero bytes.
fn needs(module: &[u8]) -> Vec<String> {
    let said = module
        .split(|byte| *byte == 0)
        .find_map(|it| it.strip_prefix(b"depends="));
    let said = String::from_utf8_lossy(said.unwrap_or_default());
    let names = said.split(',').filter(|it| !it.is_empty());
    names.map(|it| it.replace('-', "_")).collect()
}

fn lacks(what: &str) -> Error {
    Error::Command {
        doing: format!("unpacking {PACKAGE}"),
        status: format!("there is no {what} in it"),
        output: "`make test-kernel` knows the packages of Debian 12".into(),
    }
}

/// Every file below a folder.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut find = Command::new("find");
    find.arg(folder).args(["-type", "f"]);
    let found = crate::command::run(find)?;
    Ok(found.lines().map(PathBuf::from).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_comes_after_what_it_needs_itself() {
        assert_eq!(needs(b"x\0license=GPL\0depends=stp,llc\0y"), ["stp", "llc"]);
        assert_eq!(needs(b"x\0depends=\0y"), Vec::<String>::new());
        assert_eq!(needs(b"x\0depends=crc32c-intel\0"), ["crc32c_intel"]);
    }
}
