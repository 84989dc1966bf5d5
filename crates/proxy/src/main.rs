//! `keelson-proxy`: asks who calls and whether they may, before every sidecar. A drop-in for
//! kube-rbac-proxy.

use keelson_proxy::flags::{Invocation, help, parse};
use keelson_proxy::settings::{Settings, settle};
use keelson_proxy::{assemble, check, logging, run};
use std::process::ExitCode;

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)) {
        Ok(Invocation::Help) => print!("{}", help()),
        Ok(Invocation::Version(_)) => println!("keelson-proxy {}", env!("CARGO_PKG_VERSION")),
        Ok(Invocation::Run(flags, given)) => {
            return match settle(&flags, &given) {
                Ok((settings, _)) if flags.check => check::check(&settings),
                Ok((settings, mut notices)) => {
                    notices.extend(assemble::without_effect(&given));
                    serve(settings, &notices)
                }
                Err(refusal) => logging::failed(&refusal),
            };
        }
        Err(error) => {
            eprintln!("Error: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn serve(settings: Settings, notices: &[String]) -> ExitCode {
    logging::start(&settings.log);
    for notice in notices {
        tracing::warn!("{notice}");
    }
    // One thread serves a sidecar's callers with less work than two would.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    match runtime {
        Err(error) => logging::failed(&error),
        Ok(runtime) => match runtime.block_on(run::run(settings)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(refusal) => logging::failed(&refusal),
        },
    }
}
