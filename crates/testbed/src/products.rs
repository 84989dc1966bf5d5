//! Keelson's own programs, for what runs them from outside: images, and tests of other crates.
//!
//! Cargo names only a crate's own programs to its tests, and crates may not depend on each other as
//! they like, so cargo is asked to build them: what is built already costs a moment, and what is old
//! is built anew. All of them are asked for at once and always together, because each set of packages
//! has dependencies of its own, and so is built once.

use crate::cache;
use crate::command::succeeded;
use crate::error::{Doing, Error};
use crate::progress::{Progress, on_terminal};
use clap::ValueEnum;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A program of Keelson's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Product {
    /// The controllers.
    Operator,
    /// Before every sidecar.
    Proxy,
    /// Beside every node.
    Sidecar,
    /// The host components of nmstate.io.
    Host,
}

impl Product {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Operator, Self::Proxy, Self::Sidecar, Self::Host];

    /// Its name: of the program, of its package and of its image.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Operator => "keelson-operator",
            Self::Proxy => "keelson-proxy",
            Self::Sidecar => "keelson-sidecar",
            Self::Host => "keelson-host",
        }
    }

    /// The program it starts, which has to be beside it.
    pub(crate) const fn beside(self) -> Option<&'static str> {
        match self {
            Self::Host => Some("keelson-handler"),
            Self::Operator | Self::Proxy | Self::Sidecar => None,
        }
    }
}

/// How programs are built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Profile {
    /// In minutes: for tests and a first look.
    #[default]
    Dev,
    /// Small and fast: for what ships.
    Release,
}

/// A line of cargo's, as far as it is of use here.
#[derive(Deserialize)]
struct Line {
    executable: Option<PathBuf>,
    target: Option<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

/// The files of all programs, built where they are not there or old.
pub fn build(profile: Profile) -> Result<BTreeMap<Product, PathBuf>, Error> {
    let progress = Progress::beside("building Keelson's programs");
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let mut command = Command::new(cargo);
    command.args([
        "build",
        "--locked",
        "--bins",
        "--message-format=json-render-diagnostics",
    ]);
    for product in Product::ALL {
        command.args(["--package", product.name()]);
    }
    if profile == Profile::Release {
        command.arg("--release");
    }
    command.current_dir(cache::checkout());
    match on_terminal() {
        // Nobody knows better how much there is to build.
        true => command.stderr(Stdio::inherit()),
        false => command.arg("--quiet"),
    };
    let output = command.output().doing(|| "`cargo` could not be started")?;
    let said = succeeded("building Keelson's programs", &output)?;
    let built = programs(&said);
    for product in Product::ALL {
        if !built.contains_key(&product) {
            return Err(Error::Command {
                doing: format!("building {}", product.name()),
                status: "cargo named no such program".into(),
                output: said,
            });
        }
    }
    progress.done();
    Ok(built)
}

/// The programs cargo says it has built.
fn programs(said: &str) -> BTreeMap<Product, PathBuf> {
    let lines = said.lines().filter_map(|line| {
        let line: Line = serde_json::from_str(line).ok()?;
        let name = line.target?.name;
        let product = Product::ALL.into_iter().find(|it| it.name() == name)?;
        Some((product, line.executable?))
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_found_among_what_cargo_says() {
        let said = r#"{"reason":"compiler-artifact","target":{"name":"keelson-proxy"},"executable":null}
{"reason":"compiler-artifact","target":{"name":"other"},"executable":"/t/other"}
{"reason":"compiler-artifact","target":{"name":"keelson-proxy"},"executable":"/t/keelson-proxy"}
{"reason":"build-finished","success":true}"#;
        let found = programs(said);
        assert_eq!(found, [(Product::Proxy, "/t/keelson-proxy".into())].into());
    }
}
