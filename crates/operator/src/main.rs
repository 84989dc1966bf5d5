//! `keelson-operator`: runs SeiNodes on Kubernetes, and the host components of NMStates. A drop-in for
//! sei-k8s-controller and for the operator of kubernetes-nmstate.

use std::process::ExitCode;

use clap::Parser;
use keelson_operator::cli::Cli;
use keelson_operator::run;
use mimalloc::MiMalloc;

/// What is known of the nodes lies between what a look at one needed for a moment, which an allocator
/// that keeps sizes apart gives back.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    run::run(Cli::parse())
}
