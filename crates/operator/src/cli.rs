//! The command line: the original's flags, and ours.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgAction, Parser, ValueEnum};

use crate::controllers::Half;

/// Runs SeiNodes on Kubernetes, and the host components of NMStates.
///
/// What the platform of SeiNodes is comes from SEI_* variables, or from one YAML file;
/// docs/platform.md lists them all.
#[derive(Clone, Debug, Parser)]
#[command(name = "keelson-operator", version)]
pub struct Cli {
    /// What is looked after: sei (SeiNodes), nmstate (NMStates), or both with a comma between. Without
    /// it, SeiNodes, and NMStates where RELATED_IMAGE_HANDLER_IMAGE is set.
    #[arg(long, value_delimiter = ',')]
    pub controllers: Vec<Half>,

    /// Where metrics are served, as host:port or :port; 0 serves none.
    #[arg(long, default_value = ":8080")]
    pub metrics_bind_address: String,

    /// Where /healthz and /readyz are served, as host:port or :port; 0 serves none.
    #[arg(long, default_value = ":8081")]
    pub health_probe_bind_address: String,

    /// Works only while no other operator does.
    #[arg(long, default_value_t = true, num_args = 0..=1, default_missing_value = "true", action = ArgAction::Set)]
    pub leader_elect: bool,

    /// A YAML file with the platform's settings. A variable of the same name wins.
    #[arg(long)]
    pub platform_file: Option<PathBuf>,

    /// Looks after the SeiNodes of this namespace and of no other.
    #[arg(long)]
    pub namespace: Option<String>,

    /// How log lines look.
    #[arg(long, visible_alias = "zap-encoder", default_value = "json")]
    pub log_format: LogFormat,

    /// How much is logged: error, warn, info, debug or trace.
    #[arg(long, visible_alias = "zap-log-level", default_value = "info")]
    pub log_level: tracing::Level,

    /// Every sidecar is at this address. For tests.
    #[arg(long, hide = true)]
    pub sidecar_address: Option<SocketAddr>,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Console,
}

/// The address a flag of the original's form means: `:8080` is every address, `0` is none.
pub fn address(text: &str) -> Result<Option<SocketAddr>, String> {
    if text == "0" {
        return Ok(None);
    }
    let whole = match text.strip_prefix(':') {
        Some(port) => format!("[::]:{port}"),
        None => text.to_owned(),
    };
    whole
        .parse()
        .map(Some)
        .map_err(|_| format!("{text:?} is no address: use :8080, 127.0.0.1:8080 or 0 for none"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_originals_addresses_are_understood() {
        let text = |text: &str| address(text).map(|it| it.map(|it| it.to_string()));
        assert_eq!(text(":8080"), Ok(Some("[::]:8080".to_owned())));
        assert_eq!(text("127.0.0.1:1"), Ok(Some("127.0.0.1:1".to_owned())));
        assert_eq!(text("0"), Ok(None));
        assert!(text("here").is_err());
    }
}
