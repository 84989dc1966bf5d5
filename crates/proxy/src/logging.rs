//! Log lines, on standard error; what ends the process is said in the reference's form.

use crate::settings::Log;
use std::fmt::Display;
use std::process::ExitCode;
use tracing::Level;

/// Starts logging.
pub fn start(log: &Log) {
    let level = match log.level {
        ..=0 => Level::INFO,
        1..=4 => Level::DEBUG,
        _ => Level::TRACE,
    };
    let lines = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr);
    // A second subscriber is a mistake of whoever embeds this, and no reason to stop.
    let _ = match log.json {
        true => lines.json().try_init(),
        false => lines.with_ansi(false).try_init(),
    };
}

/// Says why the process ends.
pub fn failed(why: &impl Display) -> ExitCode {
    eprintln!("\"command failed\" err={:?}", why.to_string());
    ExitCode::FAILURE
}
