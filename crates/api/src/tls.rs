//! The TLS profile as a person writes it.
//!
//! Types and names only. Where its file lies is in [`host`](crate::host). What a profile means to
//! rustls, and what of it cannot be carried out, is for the crate `tls`; which source wins is for the
//! operator.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use crate::vocabulary::vocabulary;

vocabulary! {
    /// Where the TLS profile comes from.
    pub enum ProfileSource {
        /// The cluster's profile where there is one, else the one written here, else Intermediate.
        Auto => "Auto",
        /// The cluster's profile and no other.
        Cluster => "Cluster",
        /// The profile written here, on any platform.
        Explicit => "Explicit",
        /// No profile: the library's defaults, on any platform.
        None => "None",
    }
}

vocabulary! {
    /// Named profiles.
    pub enum ProfileType {
        /// For very old clients.
        Old => "Old",
        /// For general use.
        Intermediate => "Intermediate",
        /// TLS 1.3 only.
        Modern => "Modern",
        /// Written out in `custom`.
        Custom => "Custom",
    }
}

vocabulary! {
    /// Versions of TLS.
    pub enum TlsVersion {
        /// TLS 1.0.
        Tls10 => "VersionTLS10",
        /// TLS 1.1.
        Tls11 => "VersionTLS11",
        /// TLS 1.2.
        Tls12 => "VersionTLS12",
        /// TLS 1.3.
        Tls13 => "VersionTLS13",
    }
}

/// TLS of the webhook and of the metrics endpoint.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("self.source != 'Explicit' || has(self.profile)").message(
    "The source Explicit needs a profile: set profile, or choose another source."
))]
#[x_kube(validation = Rule::new("!has(self.profile) || self.source in ['Auto', 'Explicit']").message(
    "A profile is used only by the sources Auto and Explicit: remove profile, or choose one of them."
))]
#[serde(rename_all = "camelCase")]
pub struct TlsConfig {
    /// Where the profile comes from.
    #[serde(default = "auto")]
    pub source: ProfileSource,

    /// The profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<TlsProfile>,
}

fn auto() -> ProfileSource {
    ProfileSource::Auto
}

impl Default for TlsConfig {
    fn default() -> Self {
        Self {
            source: auto(),
            profile: None,
        }
    }
}

/// A TLS profile.
#[derive(KubeSchema, Clone, Debug, PartialEq, Serialize, Deserialize)]
#[x_kube(validation = Rule::new("(self.type == 'Custom') == has(self.custom)").message(
    "custom is for the profile type Custom and belongs to no other: set both, or neither."
))]
#[serde(rename_all = "camelCase")]
pub struct TlsProfile {
    /// Which profile.
    #[serde(rename = "type")]
    pub type_: ProfileType,

    /// The profile, where the type is Custom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom: Option<CustomProfile>,
}

/// A profile written out.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CustomProfile {
    /// Lowest version spoken. Absent means VersionTLS12.
    #[serde(
        rename = "minTLSVersion",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub min_tls_version: Option<TlsVersion>,

    /// Cipher suites in order of preference, by OpenSSL or IANA name. Absent: the library's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128), inner(length(min = 1, max = 128)))]
    pub ciphers: Vec<String>,

    /// Groups for key exchange in order of preference, for example `X25519`. Absent: the library's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(min = 1, max = 64)))]
    pub groups: Vec<String>,
}
