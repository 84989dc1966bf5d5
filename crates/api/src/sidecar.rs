//! The sidecar beside a node's process: its image, port, resources and TLS.
//!
//! The proxy in front of it, its policy and its probes are the operator's and not part of the spec.

use k8s_openapi::api::core::v1::ResourceRequirements;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::crds::undescribed;
use crate::vocabulary::vocabulary;

/// Port the sidecar listens on where the spec names none.
pub const DEFAULT_SIDECAR_PORT: i32 = 7777;

/// The sidecar beside the node's process.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new(
    "!has(self.resources) || !has(self.resources.claims) || size(self.resources.claims) == 0"
).message("resources.claims names resource claims of the pod, and a node's pod has none: remove it."))]
#[serde(rename_all = "camelCase")]
pub struct SidecarConfig {
    /// Image to run instead of the platform's. A change replaces that container alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,

    /// Port the sidecar listens on inside the pod.
    #[serde(default = "default_port")]
    #[schemars(range(min = 1, max = 65535))]
    pub port: i32,

    /// Resources of the sidecar's container.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "undescribed::<ResourceRequirements>")]
    pub resources: Option<ResourceRequirements>,

    /// Serves the sidecar's API over TLS. Absent: plaintext behind the authorizing proxy. May be
    /// enabled, changed and removed on a running node, without replacing its pod.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<SidecarTls>,
}

fn default_port() -> i32 {
    DEFAULT_SIDECAR_PORT
}

impl Default for SidecarConfig {
    fn default() -> Self {
        Self {
            image: None,
            port: DEFAULT_SIDECAR_PORT,
            resources: None,
            tls: None,
        }
    }
}

/// Where the sidecar's certificate comes from: exactly one of `issuerName` and `secretName`.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("has(self.issuerName) != has(self.secretName)").message(
    "The certificate has exactly one source: set one of issuerName and secretName."
))]
#[x_kube(validation = Rule::new("!has(self.issuerKind) || has(self.issuerName)").message(
    "issuerKind says what issuerName names: set issuerName too, or remove issuerKind."
))]
#[serde(rename_all = "camelCase")]
pub struct SidecarTls {
    /// cert-manager issuer the operator orders a Certificate from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub issuer_name: Option<String>,

    /// Kind of the issuer. Absent means ClusterIssuer.
    // No default in the schema: it would write itself into objects that name a Secret, and the rule
    // above would then refuse them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issuer_kind: Option<IssuerKind>,

    /// A Secret of type kubernetes.io/tls that someone else provides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub secret_name: Option<String>,
}

vocabulary! {
    /// Kinds of cert-manager issuers.
    pub enum IssuerKind {
        /// An issuer of the node's namespace.
        Issuer => "Issuer",
        /// An issuer of the whole cluster.
        ClusterIssuer => "ClusterIssuer",
    }
}

impl SidecarTls {
    /// The issuer and its kind, where the certificate is ordered from one.
    pub fn issuer(&self) -> Option<(&str, IssuerKind)> {
        let name = self.issuer_name.as_deref()?;
        Some((name, self.issuer_kind.unwrap_or(IssuerKind::ClusterIssuer)))
    }
}
