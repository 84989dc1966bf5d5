//! `--check`: reads the configuration, says what it means, and serves nothing.

use crate::config::{Config, load};
use crate::explain::explain;
use crate::settings::Settings;
use std::process::ExitCode;

/// Prints the configuration in words, or what is wrong with it.
pub fn check(settings: &Settings) -> ExitCode {
    let config = match &settings.config_file {
        None => Ok((Config::default(), Vec::new())),
        Some(file) => std::fs::read_to_string(file)
            .map_err(|error| format!("{file}: {error}"))
            .and_then(|text| {
                load(&text, settings.strictness).map_err(|error| format!("{file}: {error}"))
            }),
    };
    match config {
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
        Ok((config, warnings)) => {
            for warning in warnings {
                eprintln!("warning: {warning}");
            }
            for sentence in explain(settings, &config) {
                println!("{sentence}");
            }
            ExitCode::SUCCESS
        }
    }
}
