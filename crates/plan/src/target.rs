//! What the spec asks for, boiled down to what plans are made of.
//!
//! A target is made by the operator from the spec and the platform's settings. What only has to be
//! compared and never understood here (resources, labels, configuration intents) comes as a digest.

use std::collections::BTreeMap;

use keelson_api::sidecar::IssuerKind;
use serde::{Deserialize, Serialize};

/// What a node shall be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// What its pod is made of.
    pub pod: Pod,
    /// TLS of the sidecar. `None` is plaintext.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Digest of the proxy's policy, which TLS is no part of.
    pub proxy_policy: String,
    /// Digest of the configuration intent: overrides and external address.
    pub settings: String,
    /// Digest of the peers. `None`: the node is given none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peers: Option<String>,
    /// How a new node gets its data.
    pub start: Start,
    /// Which Secrets have to be there before a pod mounts them.
    pub keys: Keys,
    /// Whether the node uploads snapshots.
    pub publishes: bool,
    /// Whether the platform wants a NetworkPolicy per node.
    pub network_policy: bool,
}

/// What a pod is made of: asked for by the spec, written in the template, running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pod {
    /// Image of the node's process.
    pub image: String,
    /// Image of the sidecar; can be changed in place.
    pub sidecar_image: String,
    /// Image of the proxy; can be changed in place.
    pub proxy_image: String,
    /// The TLS a pod is born with: the source's name where the proxy takes TLS from its flags or from
    /// a Secret of another name, empty where it takes it from its configuration.
    pub tls: String,
    /// What else a person may change and only a new pod has (resources, labels, volumes): the digest
    /// of each, by the name a person knows it by.
    pub rest: BTreeMap<String, String>,
    /// Digest of what an operator upgrade may change. Alone it never replaces a pod.
    pub made_by: String,
}

impl Pod {
    /// Whether only a new pod makes this one what another is. What only an operator upgrade changed
    /// is no reason, and neither is what can be changed in place.
    pub fn rolls_to(&self, other: &Self) -> bool {
        self.image != other.image || self.rest != other.rest || self.tls != other.tls
    }
}

/// Where the sidecar's certificate comes from.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Tls {
    /// cert-manager issues it.
    Issuer {
        /// Name of the issuer.
        name: String,
        /// Kind of the issuer.
        kind: IssuerKind,
    },
    /// Someone else keeps it in this Secret.
    Secret(String),
}

impl Tls {
    /// Whether cert-manager issues the certificate.
    pub fn is_issued(&self) -> bool {
        matches!(self, Self::Issuer { .. })
    }
}

/// How a new node gets its data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Start {
    /// By itself, in the node's own pod.
    Base(Source),
    /// From a snapshot, in the pod of a Job which halts at a height; the node's pod goes on from there.
    Bootstrap {
        /// Digest of the snapshot's place, the height and the image.
        from: String,
    },
    /// As a member of a genesis ceremony.
    Genesis,
}

/// What a node that starts by itself starts from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Source {
    /// A snapshot in S3; the digest of its place.
    S3(String),
    /// A snapshot its peers offer.
    StateSync,
    /// The genesis block.
    Genesis,
}

/// Which Secrets have to be there before a pod mounts them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Keys {
    /// The signing key.
    pub signing: bool,
    /// The node key.
    pub node: bool,
    /// The operator's keyring.
    pub operator_keyring: bool,
}
