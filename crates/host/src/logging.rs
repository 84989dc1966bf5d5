//! Log lines, on standard error.

use crate::cli::{Cli, LogFormat};
use std::fmt::Display;
use std::process::ExitCode;

/// Starts logging.
pub fn start(cli: &Cli) {
    let lines = tracing_subscriber::fmt()
        .with_max_level(cli.log_level)
        .with_writer(std::io::stderr);
    // A second subscriber is a mistake of whoever embeds this, and no reason to stop.
    let _ = match cli.log_format {
        LogFormat::Json => lines.json().flatten_event(true).try_init(),
        LogFormat::Console => lines.with_ansi(false).try_init(),
    };
}

/// Says why the process ends.
pub fn failed(why: &impl Display, code: u8) -> ExitCode {
    eprintln!("keelson-host: {why}");
    ExitCode::from(code)
}
