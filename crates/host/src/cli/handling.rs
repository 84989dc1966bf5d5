//! What a handler is told: by the operator in variables, by a person on a console in words.

use clap::Args;
use jiff::SignedDuration;
use keelson_api::host::{
    BOOTSTRAP_DIR, CHECKPOINT_TIMEOUT_VARIABLE, DEFAULT_CHECKPOINT_SECONDS, DEFAULT_NAMESPACE,
    DEFAULT_PROBE_SECONDS, DISPATCH_SCRIPTS_VARIABLE, HANDLER_SOCKET, HANDLER_STATE_DIR,
    INITIAL_BACKOFF_VARIABLE, LOCK_FILE, LOCK_FILE_VARIABLE, MAX_BACKOFF_VARIABLE,
    MAX_RETRIES_VARIABLE, NODE_NAME_VARIABLE, POD_NAMESPACE_VARIABLE, PROBE_DNS_HOST_VARIABLE,
    PROBE_DNS_SERVERS_VARIABLE, PROBE_GATEWAYS_VARIABLE, PROBE_TIMEOUT_VARIABLE,
};
use keelson_api::nmstate::{DEFAULT_DNS_PROBE_HOST, DispatchScripts};
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::handler::changes::Times;
use crate::handler::enactment::Retries;

/// The settings of a handler.
#[derive(Clone, Debug, Args)]
pub struct Handling {
    /// The Kubernetes node this host is.
    #[arg(long, env = NODE_NAME_VARIABLE)]
    pub node_name: Option<String>,

    /// The namespace the host components are installed to.
    #[arg(long, env = POD_NAMESPACE_VARIABLE, default_value = DEFAULT_NAMESPACE)]
    pub namespace: String,

    /// The folder on the host that outlives a handler: journal, known policies, what is still to be told.
    #[arg(long, default_value = HANDLER_STATE_DIR)]
    pub state_dir: PathBuf,

    /// The file a handler locks, so that two never change one host.
    #[arg(long, env = LOCK_FILE_VARIABLE, default_value = LOCK_FILE)]
    pub lock_file: PathBuf,

    /// Where the handler answers probes and questions.
    #[arg(long, default_value = HANDLER_SOCKET)]
    pub socket: PathBuf,

    /// The folder of policies a host starts with, before it has heard from the API server.
    #[arg(long, default_value = BOOTSTRAP_DIR)]
    pub bootstrap_dir: PathBuf,

    /// The name the DNS probe looks up.
    #[arg(long, env = PROBE_DNS_HOST_VARIABLE, default_value = DEFAULT_DNS_PROBE_HOST)]
    pub probe_dns_host: String,

    /// The name servers the DNS probe asks, apart by commas; none: those of the host.
    #[arg(long, env = PROBE_DNS_SERVERS_VARIABLE, default_value = "")]
    pub probe_dns_servers: Addresses,

    /// The addresses the gateway probe asks, apart by commas; none: the host's default gateways.
    #[arg(long, env = PROBE_GATEWAYS_VARIABLE, default_value = "")]
    pub probe_gateways: Addresses,

    /// How many seconds all probes after a change have together.
    #[arg(long, env = PROBE_TIMEOUT_VARIABLE, default_value_t = DEFAULT_PROBE_SECONDS)]
    pub probe_timeout_seconds: u32,

    /// After how many seconds NetworkManager undoes a change that nobody verified.
    #[arg(long, env = CHECKPOINT_TIMEOUT_VARIABLE, default_value_t = DEFAULT_CHECKPOINT_SECONDS)]
    pub checkpoint_timeout_seconds: u32,

    /// Whether policies may bring scripts that run as root: Allowed or Refused.
    #[arg(long, env = DISPATCH_SCRIPTS_VARIABLE, default_value_t = DispatchScripts::Refused)]
    pub dispatch_scripts: DispatchScripts,

    /// How often each generation of a policy is tried.
    #[arg(long, env = MAX_RETRIES_VARIABLE, default_value_t = 5)]
    pub max_retries: u32,

    /// How many seconds lie between two attempts at most.
    #[arg(long, env = MAX_BACKOFF_VARIABLE, default_value_t = 30)]
    pub max_backoff_seconds: u32,

    /// How many seconds lie before the second attempt.
    #[arg(long, env = INITIAL_BACKOFF_VARIABLE, default_value_t = 1)]
    pub initial_backoff_seconds: u32,

    /// How many seconds a handler that starts waits for the API server before it goes by what the host
    /// itself knows.
    #[arg(long, default_value_t = 5)]
    pub server_patience_seconds: u32,

    /// How many seconds lie between two looks at the network that nobody asked for.
    #[arg(long, default_value_t = 60)]
    pub refresh_seconds: u32,

    /// How many seconds a host keeps its turn longer than a change can take. Tests shorten it.
    #[arg(long, hide = true, default_value_t = 60)]
    pub claim_spare_seconds: u32,
}

impl Handling {
    /// How long the parts of a change may take.
    pub fn times(&self) -> Times {
        Times {
            checkpoint: Duration::from_secs(self.checkpoint_timeout_seconds.into()),
            probes: Duration::from_secs(self.probe_timeout_seconds.into()),
        }
    }

    /// How long a handler that starts waits for the API server.
    pub fn patience(&self) -> Duration {
        Duration::from_secs(self.server_patience_seconds.into())
    }

    /// How long a host keeps its turn without asking again: longer than a change can take.
    pub fn turn(&self) -> SignedDuration {
        let checkpoints = i64::from(self.checkpoint_timeout_seconds) * 2;
        let probes = i64::from(self.probe_timeout_seconds);
        SignedDuration::from_secs(checkpoints + probes + i64::from(self.claim_spare_seconds))
    }

    /// How often a policy is tried, and with which pauses.
    pub fn retries(&self) -> Retries {
        Retries {
            attempts: self.max_retries,
            first: SignedDuration::from_secs(self.initial_backoff_seconds.into()),
            longest: SignedDuration::from_secs(self.max_backoff_seconds.into()),
        }
    }
}

/// Addresses apart by commas.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addresses(pub Vec<IpAddr>);

/// A word among addresses that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not an IP address: write addresses apart by commas, such as 10.0.0.1,fd00::1")]
pub struct NoAddress(String);

impl FromStr for Addresses {
    type Err = NoAddress;

    fn from_str(text: &str) -> Result<Self, NoAddress> {
        let words = text.split(',').map(str::trim).filter(|it| !it.is_empty());
        let addresses = words.map(|word| word.parse().map_err(|_| NoAddress(word.to_owned())));
        Ok(Self(addresses.collect::<Result<_, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_apart_by_commas_and_may_be_none() {
        assert_eq!("".parse(), Ok(Addresses::default()));
        let two = "10.0.0.1, fd00::1".parse::<Addresses>().expect("two");
        assert_eq!(two.0.len(), 2);
        let error = "10.0.0.1,gateway".parse::<Addresses>();
        let error = error.expect_err("a refusal").to_string();
        assert!(
            error.contains("\"gateway\" is not an IP address"),
            "{error}"
        );
    }
}
