//! `keelson-handler`: what `keelson-host` becomes to change the network of its host.

use clap::Parser;
use keelson_host::cli::Cli;
use keelson_host::run;
use mimalloc::MiMalloc;
use std::process::ExitCode;

/// A look at a large host takes much memory for a moment, which this one gives back: at once, as
/// `keelson-host` tells it.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    run::handler(&Cli::parse())
}
