//! The Certificate that is ordered from cert-manager, as far as we write one.
//!
//! The type has the fields we own and no others: server-side apply leaves the rest to cert-manager.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

use crate::node::Node;
use crate::{metadata, names, tls};

/// A Certificate of cert-manager.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Certificate {
    /// Always that of cert-manager.
    pub api_version: String,
    /// Always `Certificate`.
    pub kind: String,
    /// Metadata.
    pub metadata: ObjectMeta,
    /// What is ordered.
    pub spec: CertificateSpec,
}

/// What is ordered. There is no common name: 64 bytes are too few for the name of a pod.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CertificateSpec {
    /// The Secret it is written to.
    pub secret_name: String,
    /// How long it is good.
    pub duration: String,
    /// How long before its end it is renewed.
    pub renew_before: String,
    /// The names it is for.
    pub dns_names: Vec<String>,
    /// What its key may be used for.
    pub usages: Vec<String>,
    /// How its key is made.
    pub private_key: PrivateKey,
    /// Who issues it.
    pub issuer_ref: IssuerRef,
}

/// How a key is made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PrivateKey {
    /// The algorithm.
    pub algorithm: String,
    /// Its size in bits.
    pub size: i32,
    /// Whether a renewal makes a new one.
    pub rotation_policy: String,
}

/// Who issues a Certificate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IssuerRef {
    /// API group of the issuer.
    pub group: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
}

/// API group of cert-manager.
const GROUP: &str = "cert-manager.io";

/// The Certificate of a node, where it asks for one from an issuer.
pub fn certificate(node: &Node<'_>) -> Option<Certificate> {
    let (issuer, kind) = tls::source(node)?.issuer()?;
    let name = names::certificate(node.name);
    Some(Certificate {
        api_version: format!("{GROUP}/v1"),
        kind: "Certificate".to_owned(),
        metadata: metadata::owned(node, name.clone(), metadata::labels(node)),
        spec: CertificateSpec {
            secret_name: name,
            duration: "2160h0m0s".to_owned(),
            renew_before: "360h0m0s".to_owned(),
            dns_names: names::dns(node.name, node.namespace).to_vec(),
            usages: ["digital signature", "server auth"]
                .map(str::to_owned)
                .to_vec(),
            private_key: PrivateKey {
                algorithm: "ECDSA".to_owned(),
                size: 256,
                rotation_policy: "Always".to_owned(),
            },
            issuer_ref: IssuerRef {
                group: GROUP.to_owned(),
                kind: kind.to_string(),
                name: issuer.to_owned(),
            },
        },
    })
}
