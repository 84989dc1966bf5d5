//! `keelson-sidecar`: runs tasks beside a node and holds the gate before its start. A drop-in for
//! `seictl serve`.

use clap::Parser;
use keelson_sidecar::cli::{Cli, Command};
use keelson_sidecar::settings::{self, Settings};
use keelson_sidecar::{logging, probe, serve};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let variable = |name: &str| std::env::var(name).ok();
    match cli.command {
        Command::Serve => match Settings::read(&cli.flags(), variable) {
            Ok(settings) => run(settings),
            Err(bad) => logging::failed(&bad),
        },
        Command::Healthcheck { question } => {
            let asked = settings::port(&cli.flags(), variable)
                .map_err(|bad| bad.to_string())
                .and_then(|port| probe::ask(question, port));
            match asked {
                Ok(()) => ExitCode::SUCCESS,
                Err(problem) => logging::failed(&problem),
            }
        }
    }
}

fn run(settings: Settings) -> ExitCode {
    logging::start(settings.log);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    match runtime {
        Err(error) => logging::failed(&error),
        Ok(runtime) => {
            let served = runtime.block_on(serve::serve(settings));
            // Work that does not listen must not keep the process from ending.
            runtime.shutdown_background();
            match served {
                Ok(()) => ExitCode::SUCCESS,
                Err(refusal) => logging::failed(&refusal),
            }
        }
    }
}
