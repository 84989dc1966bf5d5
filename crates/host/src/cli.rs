//! The command line: a role and its settings. The original's variables and flags are understood.

use clap::{Parser, ValueEnum};
use keelson_api::host::{
    HEALTH_PORT, METRICS_AUTH_VARIABLE, METRICS_BIND_ADDRESS_VARIABLE, METRICS_CERT_DIR,
    TLS_PROFILE_DIR, TLS_PROFILE_HASH_VARIABLE, TLS_PROFILE_KEY, WEBHOOK_CERT_DIR, WEBHOOK_PORT,
};
use keelson_api::nmstate::MetricsAuth;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The host components of nmstate.io.
///
/// Without a role on the command line, the variables RUN_WEBHOOK_SERVER and RUN_METRICS_MANAGER name
/// one by being there, as with kubernetes-nmstate.
#[derive(Clone, Debug, Parser)]
#[command(name = "keelson-host", version)]
pub struct Cli {
    /// What to be.
    pub role: Option<Role>,

    /// Where the webhook listens, as host:port or :port.
    #[arg(long, default_value_t = format!(":{WEBHOOK_PORT}"))]
    pub webhook_bind_address: String,

    /// Where metrics are served, as host:port or :port.
    #[arg(long, env = METRICS_BIND_ADDRESS_VARIABLE, default_value = ":8089")]
    pub metrics_bind_address: String,

    /// Where /healthz, /readyz and /tls are served in the clear, as host:port or :port.
    #[arg(long, default_value_t = format!(":{HEALTH_PORT}"))]
    pub health_probe_bind_address: String,

    /// The folder of tls.crt and tls.key; absent, where the operator mounts it for the role.
    #[arg(long)]
    pub cert_dir: Option<PathBuf>,

    /// The TLS profile.
    #[arg(long, default_value_os_t = Path::new(TLS_PROFILE_DIR).join(TLS_PROFILE_KEY))]
    pub tls_profile_file: PathBuf,

    /// The hash of the TLS profile this pod was made for.
    #[arg(long, env = TLS_PROFILE_HASH_VARIABLE, default_value = "", hide_env_values = true)]
    pub tls_profile_hash: String,

    /// How often the files are read again, in seconds; 0 reads them once.
    #[arg(long, env = "TLS_RELOAD_SECONDS", default_value_t = 5)]
    pub tls_reload_seconds: u64,

    /// How readers of metrics are checked: TokenReview or None.
    #[arg(long, env = METRICS_AUTH_VARIABLE, default_value_t = MetricsAuth::TokenReview)]
    pub metrics_auth: MetricsAuth,

    /// Where the API server is and who we are; absent, as every pod knows it.
    #[arg(long)]
    pub kubeconfig: Option<PathBuf>,

    /// How log lines look.
    #[arg(long, visible_alias = "zap-encoder", default_value = "json")]
    pub log_format: LogFormat,

    /// How much is logged: error, warn, info, debug or trace.
    #[arg(long, visible_aliases = ["zap-log-level", "v"], default_value = "info")]
    pub log_level: tracing::Level,

    /// Prints the metrics there are as JSON, and ends.
    #[arg(long)]
    pub dump_metric_families: bool,

    /// Without effect: times in the log are always as in RFC 3339.
    #[arg(long, hide = true)]
    pub zap_time_encoding: Option<String>,

    /// Without effect.
    #[arg(long, hide = true)]
    pub zap_stacktrace_level: Option<String>,

    /// Without effect.
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub zap_devel: Option<bool>,
}

/// What this process is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Role {
    /// Answers the API server's questions about policies that are written.
    Webhook,
    /// Counts policies, enactments, interfaces and routes.
    Metrics,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Console,
}

/// Why there is no role to play.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoRole {
    /// Neither word nor variable.
    #[error(
        "no role is named: say webhook or metrics, or set RUN_WEBHOOK_SERVER or RUN_METRICS_MANAGER"
    )]
    Unnamed,
    /// A role of the original that is somebody else's work here.
    #[error("{variable} asks for a role that this program does not have: {instead}")]
    Elsewhere {
        /// The variable that is set.
        variable: &'static str,
        /// Who does it.
        instead: &'static str,
    },
}

/// The original's variables, in its order.
const VARIABLES: [(&str, Result<Role, &str>); 4] = [
    (
        "RUN_CERT_MANAGER",
        Err("keelson-operator makes and renews the webhook's certificates; remove this Deployment"),
    ),
    ("RUN_WEBHOOK_SERVER", Ok(Role::Webhook)),
    ("RUN_METRICS_MANAGER", Ok(Role::Metrics)),
    ("RUN_OPERATOR", Err("run keelson-operator")),
];

impl Role {
    /// The role that is named by a word, or else by a variable that is there, whatever its value.
    pub fn named(word: Option<Self>, set: impl Fn(&str) -> bool) -> Result<Self, NoRole> {
        if let Some(role) = word {
            return Ok(role);
        }
        let found = VARIABLES.iter().find(|(variable, _)| set(variable));
        match found {
            Some((_, Ok(role))) => Ok(*role),
            Some((variable, Err(instead))) => Err(NoRole::Elsewhere { variable, instead }),
            None => Err(NoRole::Unnamed),
        }
    }

    /// Where the operator mounts the certificate.
    pub fn cert_dir(self) -> &'static Path {
        Path::new(match self {
            Self::Webhook => WEBHOOK_CERT_DIR,
            Self::Metrics => METRICS_CERT_DIR,
        })
    }
}

impl Cli {
    /// How often the files are read again; none for never.
    pub fn reload(&self) -> Option<Duration> {
        (self.tls_reload_seconds > 0).then(|| Duration::from_secs(self.tls_reload_seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(word: Option<Role>, set: &[&str]) -> Result<Role, String> {
        Role::named(word, |name| set.contains(&name)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_role_is_a_word_or_a_variable_that_is_there() {
        assert_eq!(named(Some(Role::Webhook), &[]), Ok(Role::Webhook));
        assert_eq!(named(None, &["RUN_WEBHOOK_SERVER"]), Ok(Role::Webhook));
        assert_eq!(named(None, &["RUN_METRICS_MANAGER"]), Ok(Role::Metrics));
        let both = ["RUN_METRICS_MANAGER", "RUN_WEBHOOK_SERVER"];
        assert_eq!(
            named(None, &both),
            Ok(Role::Webhook),
            "the original's order"
        );
        assert_eq!(
            named(Some(Role::Metrics), &["RUN_WEBHOOK_SERVER"]),
            Ok(Role::Metrics),
            "the word wins"
        );
    }

    #[test]
    fn a_role_that_is_not_ours_is_refused_by_name() {
        let refused = |set: &[&str]| named(None, set).expect_err("a refusal");
        assert!(refused(&[]).contains("say webhook or metrics"));
        let set = ["RUN_CERT_MANAGER", "RUN_WEBHOOK_SERVER"];
        let said = refused(&set);
        assert!(said.contains("RUN_CERT_MANAGER") && said.contains("keelson-operator"));
        assert!(refused(&["RUN_OPERATOR"]).contains("run keelson-operator"));
    }

    #[test]
    fn the_originals_arguments_are_understood() {
        let words = [
            "keelson-host",
            "--v",
            "debug",
            "--zap-time-encoding=iso8601",
            "--zap-devel",
            "--zap-stacktrace-level=error",
            "metrics",
        ];
        let cli = Cli::try_parse_from(words).expect("a command line");
        assert_eq!(cli.role, Some(Role::Metrics));
        assert_eq!(cli.log_level, tracing::Level::DEBUG);
        assert_eq!(cli.metrics_bind_address, ":8089");
        assert_eq!(cli.metrics_auth, MetricsAuth::TokenReview);
    }

    #[test]
    fn an_unknown_way_to_check_readers_is_refused() {
        let words = ["keelson-host", "metrics", "--metrics-auth=none"];
        let error = Cli::try_parse_from(words)
            .expect_err("a refusal")
            .to_string();
        assert!(error.contains("TokenReview"), "{error}");
    }
}
