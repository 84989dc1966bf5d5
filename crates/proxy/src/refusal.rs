//! Why the proxy does not start, in the words kube-rbac-proxy would use where it has words.
//!
//! People search for these texts and scripts match them, so they are contracts: each is a row of
//! the table test. Some are made here from flags alone; others only when a file is read or a socket
//! bound, by whoever does that.

use crate::config::NotLoaded;
use crate::golang::quote;

/// Why the proxy does not start.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The path lists are wrong; all that is wrong with them.
    #[error("{}", aggregate(.0))]
    Paths(Vec<PathFault>),
    /// `--upstream` is no URL.
    #[error("failed to parse upstream URL: {0}")]
    Upstream(String),
    /// A file named by a flag cannot be read.
    #[error("open {file}: {cause}")]
    File {
        /// Its name.
        file: String,
        /// What the system said.
        cause: String,
    },
    /// `--upstream-ca-file` has no certificate in it.
    #[error("error parsing upstream CA certificate")]
    UpstreamCa,
    /// `--upstream-client-cert-file` or its key cannot be used.
    #[error("failed to set up upstream TLS connection: {0}")]
    UpstreamPair(String),
    /// `--config-file` cannot be read.
    #[error(
        "failed to read the config file: failed to read resource-attribute file: open {file}: {cause}"
    )]
    ConfigFile {
        /// Its name.
        file: String,
        /// What the system said.
        cause: String,
    },
    /// `--config-file` is read and refused.
    #[error(transparent)]
    Config(#[from] NotLoaded),
    /// Neither `--kubeconfig` nor a pod's service account.
    #[error(
        "failed to load kubeconfig: cannot find Service Account in pod to build in-cluster rest config: {0}"
    )]
    NotInCluster(String),
    /// `--kubeconfig` cannot be used.
    #[error(
        "failed to load kubeconfig: unable to build rest config based on provided path to kubeconfig file: {0}"
    )]
    Kubeconfig(String),
    /// `--kube-api-qps` without `--kube-api-burst`.
    #[error(
        "failed to instantiate Kubernetes client: burst is required to be greater than 0 when RateLimiter is not set and QPS is set to greater than 0"
    )]
    Burst,
    /// The OpenID Connect flags are wrong; all that is wrong with them.
    #[error("failed to instantiate OIDC authenticator: {}", aggregate(.0))]
    Oidc(Vec<String>),
    /// `--client-ca-file` cannot be used.
    #[error("failed to instantiate delegating authenticator: {0}")]
    ClientCa(String),
    /// `--tls-cert-file` or its key cannot be used.
    #[error("failed to initialize certificate reloader: error loading certificates: {0}")]
    Certificate(String),
    /// `--tls-min-version` is no version.
    #[error("TLS version invalid: unknown tls version {}", quote(.0))]
    TlsVersion(String),
    /// `--tls-cipher-suites` names none of Go's.
    #[error(
        "failed to convert TLS cipher suite name to ID: Cipher suite {0} not supported or doesn't exist"
    )]
    CipherSuite(String),
    /// The plain listener cannot be had.
    #[error("failed to listen on insecure address: {0}")]
    ListenInsecure(String),
    /// The TLS listener cannot be had.
    #[error("failed to run groups: failed to listen on secure address: {0}")]
    ListenSecure(String),
    /// There is nothing to listen on.
    #[error("no listen address provided")]
    NoListener,
    /// Flags the reference does not have are wrong; all that is wrong with them, in one sentence.
    #[error("{}", .0.join("; "))]
    Flags(Vec<String>),
}

/// What can be wrong with the path lists.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathFault {
    /// Both lists.
    #[error("cannot use --allow-paths and --ignore-paths together")]
    Both,
    /// A malformed pattern to allow.
    #[error("failed to verify allow path: {0}")]
    Allow(String),
    /// A malformed pattern to ignore.
    #[error("failed to verify ignored path: {0}")]
    Ignore(String),
}

/// As Kubernetes joins errors: one as it is, more in brackets.
fn aggregate<T: ToString>(faults: &[T]) -> String {
    let texts: Vec<String> = faults.iter().map(T::to_string).collect();
    match texts.as_slice() {
        [one] => one.clone(),
        texts => format!("[{}]", texts.join(", ")),
    }
}

impl Refusal {
    /// The message of the log line that goes with exit code 1.
    pub fn log_message(&self) -> String {
        format!("\"command failed\" err={}", quote(&self.to_string()))
    }
}

/// What `net.Listen` says about an address it cannot have.
pub fn listen_fault(address: &str, cause: &str) -> String {
    format!("listen tcp {address}: bind: {cause}")
}
