//! Programs built from Go modules of this repository, kept in the cache under a key of what they
//! are made from.
//!
//! The key is per module: its files, our few sources, the flags and the Go version. So a change to
//! one module builds nothing of another again. One process builds at a time, the others wait; a
//! binary appears under its name only when it is whole. Which programs there are, and which of them
//! someone wants, is for [`crate::programs`] and [`crate::peers`] to say.

use crate::cache;
use crate::command::succeeded;
use crate::error::{Doing, Error};
use crate::progress::Progress;
use crate::state::lock;
use nix::fcntl::{Flock, FlockArg};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A Go module below `testbed/go`, with module files of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Module {
    /// Its folder in the checkout.
    pub(crate) folder: &'static str,
    /// Our own sources in it, beside `go.mod` and `go.sum`.
    pub(crate) sources: &'static [&'static str],
    /// What is linked into a program so that it says its version: names and values for `-X`.
    pub(crate) stamps: &'static [(&'static str, &'static str)],
}

/// A program of a module.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source {
    /// Its name, as in `ps`.
    pub(crate) name: &'static str,
    /// The Go package it is built from.
    pub(crate) package: &'static str,
}

impl Module {
    /// Where the programs of this module are, once built.
    pub(crate) fn built(&self) -> Result<PathBuf, Error> {
        Ok(root().join(self.key()?))
    }

    /// Builds these programs into the folder, one after another.
    pub(crate) fn build(&self, missing: &[Source], built: &Path) -> Result<(), Error> {
        for (done, source) in missing.iter().enumerate() {
            let count = format!("{} of {}", done + 1, missing.len());
            let progress = Progress::start(format!("building {} ({count})", source.name));
            progress.at(done, missing.len());
            self.build_one(*source, &built.join(source.name))?;
            progress.done();
        }
        Ok(())
    }

    fn build_one(&self, source: Source, target: &Path) -> Result<(), Error> {
        let folder = target.parent().unwrap_or(target);
        std::fs::create_dir_all(folder)
            .doing(|| format!("{} could not be made", folder.display()))?;
        let partial = target.with_extension("partial");
        let mut command = self.go();
        command.args(["build", "-trimpath", "-ldflags", &self.link_flags(), "-o"]);
        command.arg(&partial).arg(source.package);
        let output = command.output().doing(|| "`go` could not be started")?;
        succeeded(format!("building {}", source.name), &output)?;
        std::fs::rename(&partial, target)
            .doing(|| format!("{} could not be kept", target.display()))
    }

    /// `go` in the module's folder, with what we say and nothing the machine says.
    pub(crate) fn go(&self) -> Command {
        let mut command = Command::new("go");
        command.current_dir(self.place());
        command
            .env("CGO_ENABLED", "0")
            .env("GOFLAGS", "-mod=readonly -buildvcs=false")
            .env("GOWORK", "off");
        command
    }

    fn place(&self) -> PathBuf {
        cache::checkout().join(self.folder)
    }

    fn link_flags(&self) -> String {
        let stamps = self
            .stamps
            .iter()
            .map(|(name, value)| format!(" -X {name}={value}"));
        std::iter::once("-s -w".to_owned()).chain(stamps).collect()
    }

    /// The name under which builds of this module with this Go are kept.
    fn key(&self) -> Result<String, Error> {
        let version = Command::new("go")
            .arg("version")
            .output()
            .map_err(|_| Error::NoGo)?;
        let mut parts = vec![version.stdout, self.link_flags().into_bytes()];
        for name in ["go.mod", "go.sum"].iter().chain(self.sources) {
            let file = self.place().join(name);
            parts.push(
                std::fs::read(&file).doing(|| format!("{} could not be read", file.display()))?,
            );
        }
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        Ok(cache::key(&parts))
    }
}

/// The folder of everything that is built, made if need be, and the right to build there until the
/// lock is dropped.
pub(crate) fn alone() -> Result<(PathBuf, Flock<File>), Error> {
    let root = root();
    std::fs::create_dir_all(&root).doing(|| format!("{} could not be made", root.display()))?;
    let held = lock(&root.join(".lock"), FlockArg::LockExclusive)
        .doing(|| format!("{} could not be locked", root.display()))?;
    Ok((root, held))
}

fn root() -> PathBuf {
    cache::folder().join("programs")
}
