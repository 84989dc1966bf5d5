//! `keelson-host`: the webhook and the metrics of `nmstate.io`, and the way to the handler. A drop-in for
//! the program in the handler image of kubernetes-nmstate.

use clap::Parser;
use keelson_host::cli::Cli;
use keelson_host::run;
use mimalloc::MiMalloc;
use std::process::ExitCode;

/// What is known of the hosts lies between what an event needed for a moment, which an allocator
/// that keeps sizes apart gives back.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    run::host(&Cli::parse())
}
