//! What a listener has loaded, for whoever asks: a value for a status page, and metrics.
//!
//! Facts and one sentence about the last failure; no secret. Where they are published is the
//! caller's.

use jiff::Timestamp;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use serde::{Serialize, Serializer};

use super::decide::Serving;
use crate::certificate::Fingerprint;

/// What is being served, since when, and what was wrong with the last attempt to change it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Loaded {
    /// One more with every change, beginning at 1.
    pub generation: u64,
    /// SHA-256 of the certificate's DER.
    pub fingerprint: Fingerprint,
    /// The certificate's serial number, lower-case hexadecimal.
    pub serial: String,
    /// When the certificate expires.
    #[serde(serialize_with = "text")]
    pub not_after: Timestamp,
    /// Hash of the profile.
    pub profile_hash: String,
    /// What became of the profile, one sentence each; empty if all of it is served.
    pub profile_notes: Vec<String>,
    /// When the files were last taken over, or found good again after a failure.
    #[serde(serialize_with = "text")]
    pub last_reload: Timestamp,
    /// What is wrong with the files as they are now; what is served is older than they.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

impl Loaded {
    /// The facts of a state taken over at this time.
    pub fn new(serving: &Serving, at: Timestamp) -> Self {
        Self {
            generation: serving.generation,
            fingerprint: serving.leaf.fingerprint,
            serial: serving.leaf.serial.clone(),
            not_after: serving.leaf.not_after,
            profile_hash: serving.profile_hash.clone(),
            profile_notes: serving.report.sentences(),
            last_reload: at,
            last_error: None,
        }
    }
}

fn text<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(at)
}

/// The metrics of one listener. Several of them in one registry are told apart by a label the
/// caller puts on a sub-registry.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    not_after: Gauge,
    success: Gauge,
    reloaded: Gauge,
    failures: Counter,
}

impl Metrics {
    /// Registers the metrics; they follow the listener from then on.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "tls_cert_not_after_seconds",
            "When the certificate being served expires, in seconds since 1970",
            self.not_after.clone(),
        );
        registry.register(
            "tls_last_reload_success",
            "Whether the certificate, key, CA and profile files are good as they are now",
            self.success.clone(),
        );
        registry.register(
            "tls_last_reload_timestamp_seconds",
            "When the files were last taken over, in seconds since 1970",
            self.reloaded.clone(),
        );
        registry.register(
            "tls_reload_failures",
            "Failures to take over the files, each counted when it begins",
            self.failures.clone(),
        );
    }

    /// Sets the gauges to what is loaded.
    pub fn show(&self, loaded: &Loaded) {
        self.not_after.set(loaded.not_after.as_second());
        self.success.set(i64::from(loaded.last_error.is_none()));
        self.reloaded.set(loaded.last_reload.as_second());
    }

    /// Counts one failure.
    pub fn fail(&self) {
        self.failures.inc();
    }
}
