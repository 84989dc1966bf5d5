//! Commands of this workspace: what is generated from the types, the check that it is current, and
//! the runs of the fuzz targets.
//!
//! Run as `cargo xtask <command>`. What is generated is committed, so that a reader and a cluster
//! see it without building anything.

use std::path::Path;

use anyhow::Result;
use clap::{Parser, Subcommand};

mod fuzz;
mod generate;

/// Commands of this workspace.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Writes what is generated from the types.
    Generate {
        /// Changes nothing; fails if a committed file is not what would be written.
        #[arg(long)]
        check: bool,
    },
    /// Looks for inputs that break a law of keelson-proxy's readers.
    Fuzz {
        /// How long each target runs.
        #[arg(long, default_value_t = 600)]
        seconds: u32,
        /// Only these targets.
        targets: Vec<String>,
    },
}

fn main() -> Result<()> {
    let root = workspace_root();
    match Args::parse().command {
        Command::Generate { check: false } => generate::write(root),
        Command::Generate { check: true } => generate::check(root),
        Command::Fuzz { seconds, targets } => fuzz::run(root, seconds, &targets),
    }
}

/// The folder that holds this crate's folder.
fn workspace_root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}
