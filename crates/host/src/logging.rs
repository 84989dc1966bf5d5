//! Log lines, on standard error.
//!
//! Of every call that fails kube's client says only that it did, several times a second while the API
//! server is away. Who made the call says what was done and why it failed, once: that is enough.

use crate::cli::{Cli, LogFormat};
use std::fmt::Display;
use std::process::ExitCode;
use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::FilterFn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Whose lines nobody needs.
const CLIENT: &str = "kube_client";

/// Starts logging.
pub fn start(cli: &Cli) {
    let most = cli.log_level;
    let wanted = FilterFn::new(move |it| most > Level::INFO || !it.target().starts_with(CLIENT))
        .with_max_level_hint(LevelFilter::from_level(most));
    let lines = tracing_subscriber::fmt()
        .with_max_level(most)
        .with_writer(std::io::stderr);
    // A second subscriber is a mistake of whoever embeds this, and no reason to stop.
    let _ = match cli.log_format {
        LogFormat::Json => {
            let lines = lines.json().flatten_event(true).finish();
            lines.with(wanted).try_init()
        }
        LogFormat::Console => lines.with_ansi(false).finish().with(wanted).try_init(),
    };
}

/// Says why the process ends.
pub fn failed(why: &impl Display, code: u8) -> ExitCode {
    eprintln!("keelson-host: {why}");
    ExitCode::from(code)
}
