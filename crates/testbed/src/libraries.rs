//! A program as an image needs it: without what only a debugger reads, and with the shared libraries
//! it is linked to.
//!
//! The dynamic loader itself is asked which libraries those are, so that no list has to be kept.

use crate::command::{run, succeeded};
use crate::error::{Doing, Error};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The shared libraries of a program, and the loader; none where it is linked static.
pub(crate) fn libraries(program: &Path) -> Result<Vec<PathBuf>, Error> {
    let mut command = Command::new("ldd");
    command.arg(program).env("LC_ALL", "C");
    let output = command.output().doing(|| "`ldd` could not be started")?;
    if String::from_utf8_lossy(&output.stderr).contains("not a dynamic executable") {
        return Ok(Vec::new());
    }
    let doing = format!("looking for the libraries of {}", program.display());
    let said = succeeded(&doing, &output)?;
    if let Some(missing) = said.lines().find(|line| line.contains("=> not found")) {
        return Err(Error::Command {
            doing,
            status: "a library is missing".into(),
            output: missing.trim().into(),
        });
    }
    Ok(said.lines().filter_map(library).collect())
}

/// The file a line of `ldd` names. What the kernel brings (`linux-vdso.so.1`) has none.
fn library(line: &str) -> Option<PathBuf> {
    let line = line.split_once("=>").map_or(line, |(_, found)| found);
    let file = line.split_whitespace().next()?;
    file.starts_with('/').then(|| PathBuf::from(file))
}

/// A copy of the program in the folder without symbols and debug information. One that was made of
/// this very program is kept.
pub(crate) fn stripped(program: &Path, folder: &Path) -> Result<PathBuf, Error> {
    std::fs::create_dir_all(folder).doing(|| format!("{} could not be made", folder.display()))?;
    let state = state(program).doing(|| format!("{} could not be read", program.display()))?;
    let name = program.file_name().unwrap_or(program.as_os_str());
    let (copy, note) = (folder.join(name), folder.join(name).with_extension("of"));
    if copy.exists() && std::fs::read_to_string(&note).is_ok_and(|it| it == state) {
        return Ok(copy);
    }
    let partial = copy.with_extension(format!("{}.partial", std::process::id()));
    let mut command = Command::new("strip");
    command.args(["--strip-all", "-o"]).arg(&partial);
    command.arg(program);
    run(command)?;
    std::fs::rename(&partial, &copy)
        .and_then(|()| std::fs::write(&note, state))
        .doing(|| format!("{} could not be kept", copy.display()))?;
    Ok(copy)
}

/// What tells a file from what it was before: its path, its size, and when it was written.
pub(crate) fn state(file: &Path) -> std::io::Result<String> {
    let seen = std::fs::metadata(file)?;
    let (size, second, part) = (seen.len(), seen.mtime(), seen.mtime_nsec());
    Ok(format!("{} {size} {second}.{part}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_loader_names_a_file_or_none() {
        let found = |line| library(line).map(|file| file.display().to_string());
        assert_eq!(found("\tlinux-vdso.so.1 (0x00007f6cce17a000)"), None);
        let library = "\tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007f6ccde14000)";
        let file = Some("/lib/x86_64-linux-gnu/libc.so.6".to_owned());
        assert_eq!(found(library), file);
        let loader = "\t/lib64/ld-linux-x86-64.so.2 (0x00007f6cce17c000)";
        assert_eq!(
            found(loader),
            Some("/lib64/ld-linux-x86-64.so.2".to_owned())
        );
        assert_eq!(found("\tstatically linked"), None);
    }

    #[test]
    fn a_program_is_found_with_its_libraries_and_its_loader_and_a_static_one_with_none() {
        let own = std::env::current_exe().expect("this program");
        let names: Vec<_> = libraries(&own)
            .expect("its libraries")
            .into_iter()
            .collect();
        let named = |part: &str| {
            names
                .iter()
                .any(|it| it.display().to_string().contains(part))
        };
        assert!(named("libc.so") && named("/ld-linux"), "{names:?}");
        let busybox = libraries(Path::new("/bin/busybox")).expect("its libraries");
        assert!(busybox.is_empty(), "{busybox:?}");
    }
}
