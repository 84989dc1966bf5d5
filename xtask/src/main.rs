//! Commands of this workspace: what is generated from the types, and the check that it is current.
//!
//! Run as `cargo xtask <command>`. What is generated is committed, so that a reader and a cluster
//! see it without building anything.

use std::path::Path;

use anyhow::Result;
use clap::{Parser, Subcommand};

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
}

fn main() -> Result<()> {
    let root = workspace_root();
    match Args::parse().command {
        Command::Generate { check: false } => generate::write(root),
        Command::Generate { check: true } => generate::check(root),
    }
}

/// The folder that holds this crate's folder.
fn workspace_root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}
