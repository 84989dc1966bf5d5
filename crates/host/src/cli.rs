//! The command line: a role and its settings. The original's variables and flags are understood.

mod handling;

pub use handling::{Addresses, Handling};

use clap::{Parser, Subcommand, ValueEnum};
use keelson_api::host::{
    HANDLER_SOCKET, HEALTH_PORT, METRICS_AUTH_VARIABLE, METRICS_BIND_ADDRESS_VARIABLE,
    METRICS_CERT_DIR, TLS_PROFILE_DIR, TLS_PROFILE_HASH_VARIABLE, TLS_PROFILE_KEY,
    WEBHOOK_CERT_DIR, WEBHOOK_PORT,
};
use keelson_api::nmstate::MetricsAuth;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The host components of nmstate.io.
///
/// Without a role on the command line, the variables RUN_WEBHOOK_SERVER and RUN_METRICS_MANAGER name
/// one by being there, as with kubernetes-nmstate; with neither it is the handler.
#[derive(Clone, Debug, Parser)]
#[command(name = "keelson-host", version)]
pub struct Cli {
    /// What to be, or what to ask a handler.
    #[command(subcommand)]
    pub task: Option<Task>,

    /// Where the webhook listens, as host:port or :port.
    #[arg(global = true, long, default_value_t = format!(":{WEBHOOK_PORT}"))]
    pub webhook_bind_address: String,

    /// Where metrics are served, as host:port or :port.
    #[arg(global = true, long, env = METRICS_BIND_ADDRESS_VARIABLE, default_value = ":8089")]
    pub metrics_bind_address: String,

    /// Where /healthz, /readyz and /tls are served in the clear, as host:port or :port.
    #[arg(global = true, long, default_value_t = format!(":{HEALTH_PORT}"))]
    pub health_probe_bind_address: String,

    /// The folder of tls.crt and tls.key; absent, where the operator mounts it for the role.
    #[arg(global = true, long)]
    pub cert_dir: Option<PathBuf>,

    /// The TLS profile.
    #[arg(global = true, long, default_value_os_t = Path::new(TLS_PROFILE_DIR).join(TLS_PROFILE_KEY))]
    pub tls_profile_file: PathBuf,

    /// The hash of the TLS profile this pod was made for.
    #[arg(global = true, long, env = TLS_PROFILE_HASH_VARIABLE, default_value = "", hide_env_values = true)]
    pub tls_profile_hash: String,

    /// How often the files are read again, in seconds; 0 reads them once.
    #[arg(global = true, long, env = "TLS_RELOAD_SECONDS", default_value_t = 5)]
    pub tls_reload_seconds: u64,

    /// How readers of metrics are checked: TokenReview or None.
    #[arg(global = true, long, env = METRICS_AUTH_VARIABLE, default_value_t = MetricsAuth::TokenReview)]
    pub metrics_auth: MetricsAuth,

    /// Where the API server is and who we are; absent, as every pod knows it.
    #[arg(global = true, long)]
    pub kubeconfig: Option<PathBuf>,

    /// How log lines look.
    #[arg(
        global = true,
        long,
        visible_alias = "zap-encoder",
        default_value = "json"
    )]
    pub log_format: LogFormat,

    /// How much is logged: error, warn, info, debug or trace.
    #[arg(global = true, long, visible_aliases = ["zap-log-level", "v"], default_value = "info")]
    pub log_level: tracing::Level,

    /// Prints the metrics there are as JSON, and ends.
    #[arg(global = true, long)]
    pub dump_metric_families: bool,

    /// Without effect: times in the log are always as in RFC 3339.
    #[arg(global = true, long, hide = true)]
    pub zap_time_encoding: Option<String>,

    /// Without effect.
    #[arg(global = true, long, hide = true)]
    pub zap_stacktrace_level: Option<String>,

    /// Without effect.
    #[arg(global = true, long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "true")]
    pub zap_devel: Option<bool>,
}

/// What to do.
#[derive(Clone, Debug, Subcommand)]
pub enum Task {
    /// Answers the API server's questions about policies that are written.
    Webhook,
    /// Counts policies, enactments, interfaces and routes.
    Metrics,
    /// Asks the handler of this container how it is; the exit code says it.
    Probe {
        /// Where the handler answers.
        #[arg(long, default_value = HANDLER_SOCKET)]
        socket: PathBuf,
        /// What to ask.
        question: Question,
    },
    /// What takes the network of this host.
    #[command(flatten)]
    OnHost(Box<OnHost>),
}

/// What takes the network of this host, and is done by a program of its own:
/// [`HANDLER_PROGRAM`](keelson_api::host::HANDLER_PROGRAM).
#[derive(Clone, Debug, Subcommand)]
pub enum OnHost {
    /// Brings the network of this host to what policies ask for.
    Handler(Handling),
    /// Says what the handler of this host does and what is in its journal; needs no API server.
    Status(Handling),
    /// Finishes or undoes the change in the journal; needs no API server. For a console, and before the
    /// kubelet starts.
    Recover(Handling),
}

/// What can be asked of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Question {
    /// Whether its main loop goes on.
    Live,
    /// Whether it holds the lock and has brought the last change to its end.
    Ready,
}

/// A role that serves others over the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// A role of the original that is somebody else's work here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{variable} asks for a role that this program does not have: {instead}")]
pub struct Elsewhere {
    /// The variable that is set.
    pub variable: &'static str,
    /// Who does it.
    pub instead: &'static str,
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

impl Task {
    /// What a variable names by being there, whatever its value. The handler needs none.
    pub fn named(set: impl Fn(&str) -> bool) -> Result<Option<Self>, Elsewhere> {
        let found = VARIABLES.into_iter().find(|(variable, _)| set(variable));
        match found {
            Some((_, Ok(Role::Webhook))) => Ok(Some(Self::Webhook)),
            Some((_, Ok(Role::Metrics))) => Ok(Some(Self::Metrics)),
            Some((variable, Err(instead))) => Err(Elsewhere { variable, instead }),
            None => Ok(None),
        }
    }
}

impl Role {
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

    fn named(set: &[&str]) -> Result<Option<Task>, String> {
        Task::named(|name| set.contains(&name)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_role_is_a_variable_that_is_there_and_else_the_handler() {
        assert!(matches!(
            named(&["RUN_WEBHOOK_SERVER"]),
            Ok(Some(Task::Webhook))
        ));
        assert!(matches!(
            named(&["RUN_METRICS_MANAGER"]),
            Ok(Some(Task::Metrics))
        ));
        let both = ["RUN_METRICS_MANAGER", "RUN_WEBHOOK_SERVER"];
        let first = named(&both);
        assert!(matches!(first, Ok(Some(Task::Webhook))), "{first:?}");
        assert!(matches!(named(&[]), Ok(None)), "as with the original");
    }

    #[test]
    fn a_role_that_is_not_ours_is_refused_by_name() {
        let refused = |set: &[&str]| named(set).expect_err("a refusal");
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
        assert!(matches!(cli.task, Some(Task::Metrics)), "{:?}", cli.task);
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
