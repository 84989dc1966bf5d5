//! `keelson-testbed`: a real Kubernetes on one machine. See `keelson-testbed --help`.

use clap::Parser;
use keelson_testbed::cli::{Arguments, explain, run};
use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    match run(Arguments::parse()).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("keelson-testbed: {}", explain(&error));
            ExitCode::FAILURE
        }
    }
}
