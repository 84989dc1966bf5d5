//! Log lines, on standard error.

use crate::settings::Log;
use std::fmt::Display;
use std::process::ExitCode;

/// Starts logging.
pub fn start(log: Log) {
    let lines = tracing_subscriber::fmt()
        .with_max_level(log.level)
        .with_writer(std::io::stderr);
    // A second subscriber is a mistake of whoever embeds this, and no reason to stop.
    let _ = match log.json {
        true => lines.json().flatten_event(true).try_init(),
        false => lines.with_ansi(false).try_init(),
    };
}

/// Says why the process ends.
pub fn failed(why: &impl Display) -> ExitCode {
    eprintln!("keelson-sidecar: {why}");
    ExitCode::FAILURE
}
