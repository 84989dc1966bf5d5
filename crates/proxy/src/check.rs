//! `--check`: reads the configuration, says what it means, and serves nothing.

use crate::explain::explain;
use crate::follow::read;
use crate::settings::Settings;
use std::process::ExitCode;

/// Prints the configuration in words, or what is wrong with it.
pub fn check(settings: &Settings) -> ExitCode {
    match read(settings) {
        Err(refusal) => {
            eprintln!("{refusal}");
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
