//! `NMState`: installs the host components, what a person asks for.
//!
//! Served as `v1` and, deprecated, as `v1beta1`. The two have one schema and are converted by the
//! API server changing the version's name, so there is one Rust type; see [`crds`](crate::crds).

use std::collections::BTreeMap;
use std::net::IpAddr;

use k8s_openapi::api::core::v1::{Affinity, Toleration};
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

use crate::condition::HostCondition;
use crate::crds::undescribed;
use crate::host::{DEFAULT_CHECKPOINT_SECONDS, DEFAULT_PROBE_SECONDS};
use crate::tls::TlsConfig;
use crate::tolerant;
use crate::vocabulary::vocabulary;

/// How the host components shall run.
#[derive(CustomResource, KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[kube(
    group = "nmstate.io",
    version = "v1",
    kind = "NMState",
    plural = "nmstates",
    status = "NMStateStatus",
    derive = "PartialEq",
    derive = "Default",
    doc = "Installs the components that configure the network of hosts, and says how they run.",
    printcolumn(
        name = "Status",
        type_ = "string",
        json_path = r#".status.conditions[?(@.status=="True")].type"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.status=="True")].reason"#
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
pub struct NMStateSpec {
    /// Affinity of the handler.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "undescribed::<Affinity>")]
    pub affinity: Option<Affinity>,

    /// Nodes the handler runs on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,

    /// Taints the handler tolerates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "undescribed::<Vec<Toleration>>")]
    pub tolerations: Vec<Toleration>,

    /// Affinity of webhook and metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "undescribed::<Affinity>")]
    pub infra_affinity: Option<Affinity>,

    /// Nodes that webhook and metrics run on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub infra_node_selector: BTreeMap<String, String>,

    /// Taints that webhook and metrics tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "undescribed::<Vec<Toleration>>")]
    pub infra_tolerations: Vec<Toleration>,

    /// How often the certificates we make ourselves are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub self_sign_configuration: Option<SelfSignConfiguration>,

    /// What the handler checks after a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {}))]
    pub probe_configuration: Option<ProbeConfiguration>,

    /// Where metrics are served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {}))]
    pub metrics_configuration: Option<MetricsConfiguration>,

    /// Who may read metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metrics: Option<MetricsAccess>,

    /// TLS of webhook and metrics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<TlsConfig>,

    /// Whether policies may install dispatch scripts, which run as root on the host. Absent means
    /// Refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dispatch_scripts: Option<DispatchScripts>,

    /// How much the handler logs.
    #[serde(default = "info", skip_serializing_if = "Option::is_none")]
    pub log_level: Option<LogLevel>,
}

fn info() -> Option<LogLevel> {
    Some(LogLevel::Info)
}

/// How often the certificates we make ourselves are replaced; durations such as `8760h0m0s`.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelfSignConfiguration {
    /// How long a CA is used. Absent means 8760h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_rotate_interval: Option<String>,

    /// How long an old CA is trusted beside a new one. Absent means 24h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_overlap_interval: Option<String>,

    /// How long a certificate is used. Absent means 4380h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_rotate_interval: Option<String>,

    /// How long before its end a certificate is replaced. Absent means 24h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_overlap_interval: Option<String>,
}

/// What the handler checks after a change.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
// Both are always there by their defaults, but for the moment in which the API server looks at the
// default of the whole.
#[x_kube(validation = Rule::new(
    "!has(self.checkpointSeconds) || !has(self.timeoutSeconds) || self.checkpointSeconds >= self.timeoutSeconds + 10"
).message(
    "NetworkManager would undo a change before its probes have come to an end: checkpointSeconds must be at least 10 more than timeoutSeconds."
))]
#[serde(rename_all = "camelCase")]
pub struct ProbeConfiguration {
    /// Seconds that all probes of a change have together.
    #[serde(default = "default_probe_seconds")]
    #[schemars(range(min = 1), extend("format" = "int32"))]
    pub timeout_seconds: u32,

    /// Seconds after which NetworkManager undoes a change that nobody verified.
    #[serde(default = "default_checkpoint_seconds")]
    #[schemars(extend("format" = "int32"))]
    #[x_kube(validation = Rule::new("self <= 480").message(
        "A handler that is told to end has 600 seconds to finish or undo a change: checkpointSeconds must be at most 480."
    ))]
    pub checkpoint_seconds: u32,

    /// The DNS probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = {}))]
    pub dns: Option<DnsProbe>,

    /// The gateway probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway: Option<GatewayProbe>,
}

fn default_probe_seconds() -> u32 {
    DEFAULT_PROBE_SECONDS
}

fn default_checkpoint_seconds() -> u32 {
    DEFAULT_CHECKPOINT_SECONDS
}

impl Default for ProbeConfiguration {
    fn default() -> Self {
        Self {
            timeout_seconds: default_probe_seconds(),
            checkpoint_seconds: default_checkpoint_seconds(),
            dns: None,
            gateway: None,
        }
    }
}

/// Name the DNS probe looks up where the spec has none.
pub const DEFAULT_DNS_PROBE_HOST: &str = "root-servers.net";

/// The DNS probe.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DnsProbe {
    /// Name to look up.
    #[serde(default = "default_dns_probe_host")]
    pub host: String,

    /// Name servers to ask; one that answers is enough. Absent: those of the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "addresses")]
    #[x_kube(validation = Rule::new("self.all(it, isIP(it))").message(
        "An entry of dns.servers is not an IP address: write it as 192.0.2.1 or 2001:db8::1, without a port."
    ))]
    pub servers: Vec<IpAddr>,
}

fn default_dns_probe_host() -> String {
    DEFAULT_DNS_PROBE_HOST.to_owned()
}

impl Default for DnsProbe {
    fn default() -> Self {
        Self {
            host: default_dns_probe_host(),
            servers: Vec::new(),
        }
    }
}

/// The gateway probe.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GatewayProbe {
    /// Addresses to ask; one that answers is enough. Absent: the host's default gateways.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "addresses")]
    #[x_kube(validation = Rule::new("self.all(it, isIP(it))").message(
        "An entry of gateway.addresses is not an IP address: write it as 192.0.2.1 or 2001:db8::1."
    ))]
    pub addresses: Vec<IpAddr>,
}

// Bounded because admission looks at each entry, and the API server wants to know what that may cost.
fn addresses(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "maxItems": 16,
        "items": { "type": "string", "maxLength": 45 },
    })
}

/// Where metrics are served.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricsConfiguration {
    /// Address to listen on.
    #[serde(default = "default_bind_address")]
    pub bind_address: String,
}

fn default_bind_address() -> String {
    ":8089".to_owned()
}

impl Default for MetricsConfiguration {
    fn default() -> Self {
        Self {
            bind_address: default_bind_address(),
        }
    }
}

/// Who may read metrics.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricsAccess {
    /// How a reader is checked.
    #[serde(default = "token_review")]
    pub auth: MetricsAuth,
}

fn token_review() -> MetricsAuth {
    MetricsAuth::TokenReview
}

impl Default for MetricsAccess {
    fn default() -> Self {
        Self {
            auth: token_review(),
        }
    }
}

vocabulary! {
    /// How a reader of metrics is checked.
    pub enum MetricsAuth {
        /// By token and authorization, through the API server.
        TokenReview => "TokenReview",
        /// Not at all.
        None => "None",
    }
}

vocabulary! {
    /// Whether policies may install dispatch scripts.
    pub enum DispatchScripts {
        /// They are refused.
        Refused => "Refused",
        /// They are installed.
        Allowed => "Allowed",
    }
}

vocabulary! {
    /// How much the handler logs.
    pub enum LogLevel {
        /// What an operator of the cluster wants to know.
        Info => "info",
        /// What a developer wants to know.
        Debug => "debug",
    }
}

/// What the operator found out about the host components.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NMStateStatus {
    /// Generation of the spec this status is about.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "tolerant::option"
    )]
    pub observed_generation: Option<i64>,

    /// What holds and what does not.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "tolerant::list"
    )]
    pub conditions: Vec<HostCondition>,
}

impl NMStateSpec {
    /// TLS of webhook and metrics, with its default where the spec has none.
    pub fn tls(&self) -> TlsConfig {
        self.tls.clone().unwrap_or_default()
    }

    /// How a reader of metrics is checked.
    pub fn metrics_auth(&self) -> MetricsAuth {
        self.metrics.clone().unwrap_or_default().auth
    }

    /// What the handler checks after a change, with defaults where the spec has nothing.
    pub fn probes(&self) -> ProbeConfiguration {
        self.probe_configuration.clone().unwrap_or_default()
    }
}
