//! What the cluster shows, read once at the top of a reconcile.
//!
//! Everything a task writes has a place here. What could not be seen has a value of its own
//! (`Unknown`, `None`), which is never taken for a difference.

use crate::target::{Pod, Tls};

/// What the cluster shows of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observed {
    /// Whether the data volume's claim exists.
    pub volume: bool,
    /// What the volume holds.
    pub data: Data,
    /// What the Certificate orders, if there is one.
    pub certificate: Option<Tls>,
    /// What the proxy's ConfigMap says, if there is one.
    pub proxy_config: Option<ProxyConfig>,
    /// Whether the NetworkPolicy is as it should be.
    pub network_policy: bool,
    /// Whether the Service is as it should be.
    pub service: bool,
    /// The template of the StatefulSet, if there is one.
    pub template: Option<Pod>,
    /// The pod, if there is one.
    pub running: Option<Running>,
    /// What the sidecar's port speaks, by a handshake.
    pub served: Served,
    /// Digest of the configuration intent the sidecar has written. `None`: not known.
    pub settings: Option<String>,
    /// Digest of the configuration intent the process was started with. `None`: it does not run, or
    /// it is not known.
    pub process: Option<String>,
    /// Digest of the peers the sidecar has written. `None`: not known.
    pub peers: Option<String>,
    /// Whether the sidecar uploads snapshots. `None`: not known.
    pub publishing: Option<bool>,
    /// Whether the start of the process is approved. `None`: not known.
    pub approved: Option<bool>,
    /// Whether anything of the bootstrap Job is still there: the Job, a pod of it, its Service.
    pub bootstrap: bool,
}

/// A pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Identity of the pod.
    pub uid: String,
    /// What it is made of, read from its own containers and volumes.
    pub pod: Pod,
    /// Whether it is being deleted.
    pub leaving: bool,
}

/// What the data volume holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Data {
    /// Nothing a node's process was ever approved on.
    Empty,
    /// What a bootstrap Job left when it was complete.
    Bootstrapped,
    /// The data of a node that was approved once.
    Complete,
}

/// What the proxy is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProxyConfig {
    /// The TLS it shall serve.
    pub tls: Option<Tls>,
    /// Digest of its policy.
    pub policy: String,
}

/// What the sidecar's port speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Served {
    /// Nobody answered, or the answer was not understood.
    Unknown,
    /// Plaintext.
    Plaintext,
    /// TLS, with a certificate verified to come from here.
    Tls(Tls),
}

impl Served {
    /// Whether something is known to be served, and it is not this.
    pub fn contradicts(&self, tls: Option<&Tls>) -> bool {
        match self {
            Self::Unknown => false,
            Self::Plaintext => tls.is_some(),
            Self::Tls(served) => tls != Some(served),
        }
    }
}
