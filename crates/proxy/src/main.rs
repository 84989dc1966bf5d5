//! `keelson-proxy`: asks who calls and whether they may, before every sidecar. A drop-in for
//! kube-rbac-proxy.

use keelson_proxy::flags::{Flags, Invocation, help, parse, shown};
use keelson_proxy::settings::{Settings, settle};
use keelson_proxy::{check, logging, run};
use mimalloc::MiMalloc;
use std::process::ExitCode;

/// What is remembered for long lies between what a request needed for a moment. An allocator that
/// keeps sizes apart gives the room in between back: after 4,096 tokens it holds a third of glibc's.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

fn main() -> ExitCode {
    match parse(std::env::args().skip(1)) {
        Ok(Invocation::Help) => print!("{}", help()),
        Ok(Invocation::Version(_)) => println!("keelson-proxy {}", env!("CARGO_PKG_VERSION")),
        Ok(Invocation::Run(flags, given)) => {
            return match settle(&flags, &given) {
                Ok((settings, _)) if flags.check => check::check(&settings),
                Ok((settings, notices)) => serve(settings, &notices, &flags),
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

fn serve(settings: Settings, notices: &[String], flags: &Flags) -> ExitCode {
    let lines = logging::start(&settings.log);
    for flag in shown(flags) {
        tracing::debug!("FLAG: {flag}");
    }
    for notice in notices {
        tracing::warn!(target: logging::ONCE, "{notice}");
    }
    // One thread serves a sidecar's callers with less work than two would.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let served = match runtime {
        Err(error) => return logging::failed(&error),
        Ok(runtime) => runtime.block_on(async {
            tokio::select! {
                served = run::run(settings) => served,
                () = lines.tell() => Ok(()),
            }
        }),
    };
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(refusal) => logging::failed(&refusal),
    }
}
