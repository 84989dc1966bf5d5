//! The objects of the host components, as a pure function of one value.
//!
//! [`HostInstall`] is everything that was decided before: what the NMState asks for, what the cluster
//! can do, which TLS profile is in force, who makes certificates. [`objects`] gives every object of the
//! installation in the order it is applied in, which is written here and nowhere else; what is no
//! longer among them is found by [`leftover`]. Deciding, applying, watching and removing are the
//! operator's. The types themselves (`deploy/crds`) are installed with the operator and are not here.

use std::net::SocketAddr;

use keelson_api::NMStateSpec;
use keelson_api::host::{HEALTH_PORT, METRICS_PORT};
use keelson_api::nmstate::MetricsConfiguration;

use crate::platform::Source;

pub use object::{Identity, KINDS, Kind, Object, leftover};

mod accounts;
mod admission;
mod configuration;
mod console;
mod handler;
mod metadata;
mod metrics;
mod monitoring;
mod network;
mod object;
mod pod;
mod rights;
mod webhook;

/// What an installation is made from.
#[derive(Clone, Debug)]
pub struct HostInstall<'a> {
    /// Name of the NMState.
    pub name: &'a str,
    /// Its uid.
    pub uid: &'a str,
    /// What a person asks for.
    pub spec: &'a NMStateSpec,
    /// Namespace of the host components.
    pub namespace: &'a str,
    /// Namespace of the usual scraper.
    pub monitoring_namespace: &'a str,
    /// The operator's pods: they look at health and handshakes of ours.
    pub operator: &'a Source,
    /// Image of `keelson-host`.
    pub image: &'a str,
    /// What the cluster can do.
    pub capabilities: Capabilities,
    /// The profile in force.
    pub profile: Profile<'a>,
    /// Who makes the certificates of webhook and metrics.
    pub certificates: Certificates<'a>,
    /// How many webhooks there shall be.
    pub webhook_replicas: i32,
    /// Ports the API server is reached at, by its Service and behind it.
    pub api_ports: &'a [u16],
    /// How the handler tries again.
    pub retries: Retries,
    /// The console's plugin, where it is wanted.
    pub plugin: Option<Plugin<'a>>,
}

/// What a cluster can do beyond plain Kubernetes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The platform is OpenShift: pods are told so, and pods have their users from the platform.
    pub openshift: bool,
    /// A privileged pod needs the right to use a SecurityContextConstraints.
    pub security_constraints: bool,
    /// The console takes plugins.
    pub console: bool,
    /// Metrics are scraped where a ServiceMonitor says so.
    pub service_monitors: bool,
    /// Rules are taken from PrometheusRules.
    pub prometheus_rules: bool,
}

/// A TLS profile that was decided on.
#[derive(Clone, Copy, Debug)]
pub struct Profile<'a> {
    /// Its canonical bytes, as text: what `profile.json` says.
    pub text: &'a str,
    /// The hash of those.
    pub hash: &'a str,
}

/// Who makes the certificates of webhook and metrics.
#[derive(Clone, Copy, Debug)]
pub enum Certificates<'a> {
    /// OpenShift's service CA, which also tells the API server whom to trust.
    ServiceCa,
    /// The operator.
    Operator {
        /// Certificates of every CA that is trusted now, as PEM.
        ca_bundle: &'a str,
    },
}

/// How the handler tries a policy again that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retries {
    /// Attempts for each generation of a policy.
    pub attempts: u32,
    /// Seconds before the second attempt.
    pub first_seconds: u32,
    /// Seconds between attempts at most.
    pub longest_seconds: u32,
}

impl Default for Retries {
    fn default() -> Self {
        Self {
            attempts: 5,
            first_seconds: 1,
            longest_seconds: 30,
        }
    }
}

/// The console's plugin.
#[derive(Clone, Copy, Debug)]
pub struct Plugin<'a> {
    /// Its name, and the name of its objects.
    pub name: &'a str,
    /// Its image.
    pub image: &'a str,
    /// The port it listens on.
    pub port: u16,
}

/// Why no objects can be made of an NMState.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unrenderable {
    /// Something is missing.
    #[error("the {0} of the installation is empty: set it")]
    Incomplete(&'static str),
    /// Not an address to listen on.
    #[error(
        "spec.metricsConfiguration.bindAddress is {0:?}, which is no address to listen on: use a port, for example \":8443\", or an IP address and a port"
    )]
    NoAddress(String),
    /// A port of something else in the pod.
    #[error(
        "spec.metricsConfiguration.bindAddress has the port {HEALTH_PORT}, which is the pod's port of health: use another, for example {METRICS_PORT}"
    )]
    PortTaken,
}

/// Every object of the installation, in the order it is applied in: what pods refer to before the
/// pods, and the webhook configuration, which makes the API server call them, after all.
pub fn objects(install: &HostInstall<'_>) -> Result<Vec<Object>, Unrenderable> {
    install.check()?;
    let listen = install.metrics_address()?;
    let parts = [
        vec![metadata::namespace(install)],
        accounts::objects(install),
        rights::objects(install),
        configuration::objects(install),
        admission::objects(install),
        network::objects(install, listen.port()),
        webhook::reached_by(install),
        metrics::reached_by(install),
        vec![handler::daemon_set(install)],
        vec![webhook::deployment(install)],
        vec![metrics::deployment(install, &listen)],
        monitoring::objects(install),
        console::objects(install),
        vec![webhook::configuration(install)],
    ];
    Ok(parts.into_iter().flatten().collect())
}

impl HostInstall<'_> {
    fn check(&self) -> Result<(), Unrenderable> {
        let parts = [
            (self.name, "name"),
            (self.uid, "uid"),
            (self.namespace, "namespace"),
            (self.image, "image"),
            (self.profile.text, "TLS profile"),
            (self.profile.hash, "TLS profile's hash"),
        ];
        match parts.into_iter().find(|(text, _)| text.is_empty()) {
            Some((_, name)) => Err(Unrenderable::Incomplete(name)),
            None => Ok(()),
        }
    }

    /// Where metrics are served. The schema fills in `:8089` where a person says nothing, which the
    /// original ignored: its pods listen at 8443, and so do ours until somebody wants another port.
    fn metrics_address(&self) -> Result<Listen, Unrenderable> {
        let said = self.spec.metrics_configuration.clone().unwrap_or_default();
        let text = match said == MetricsConfiguration::default() {
            true => format!(":{METRICS_PORT}"),
            false => said.bind_address,
        };
        let listen = Listen::read(&text).ok_or(Unrenderable::NoAddress(text))?;
        match listen.port() == HEALTH_PORT {
            true => Err(Unrenderable::PortTaken),
            false => Ok(listen),
        }
    }
}

/// An address to listen on, as a person wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listen {
    text: String,
    port: u16,
}

impl Listen {
    /// A colon and a port, or an IP address with one.
    fn read(text: &str) -> Option<Self> {
        let port = match text.strip_prefix(':') {
            Some(port) => port.parse().ok()?,
            None => text.parse::<SocketAddr>().ok()?.port(),
        };
        let text = text.to_owned();
        (port > 0).then_some(Self { text, port })
    }

    fn port(&self) -> u16 {
        self.port
    }
}
