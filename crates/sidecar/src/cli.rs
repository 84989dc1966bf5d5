//! What may be typed: `serve` and `healthcheck`, under whatever name the program is called
//! (`keelson-sidecar`, or `seictl` where the original's name is expected).

use crate::settings::Flags;
use clap::{Args, Parser, Subcommand, ValueEnum};

/// Runs tasks beside a node and holds the gate before its start.
#[derive(Debug, Parser)]
#[command(name = "keelson-sidecar", version)]
pub struct Cli {
    #[command(flatten)]
    places: Places,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Args)]
struct Places {
    /// The node's home [env: SEI_HOME] [default: /sei]
    #[arg(long, global = true)]
    home: Option<String>,
    /// The port of the API [env: SEI_SIDECAR_PORT] [default: 7777]
    #[arg(long, global = true)]
    port: Option<String>,
    /// The address of the API [env: KEELSON_SIDECAR_BIND]
    #[arg(long, global = true)]
    bind: Option<String>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serves the API
    Serve,
    /// Asks the sidecar beside it how it is, for probes
    Healthcheck {
        /// What to ask
        question: Question,
    },
}

/// What a probe may ask.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Question {
    /// Whether the sidecar works
    Livez,
    /// Whether the gate is open
    Healthz,
}

impl Cli {
    /// The flags, for the settings.
    pub fn flags(&self) -> Flags {
        Flags {
            home: self.places.home.clone(),
            port: self.places.port.clone(),
            bind: self.places.bind.clone(),
        }
    }
}
