//! `keelson-operator`: runs SeiNodes on Kubernetes. A drop-in for sei-k8s-controller.

use std::process::ExitCode;

use clap::Parser;
use keelson_operator::cli::Cli;
use keelson_operator::run;

fn main() -> ExitCode {
    run::run(Cli::parse())
}
