//! What is counted of a handler, for whoever scrapes its socket.

use prometheus_client::encoding::{EncodeLabelSet, EncodeLabelValue, LabelValueEncoder};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::fmt::{self, Write};

use super::journal::End;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct How {
    end: Way,
}

/// How a change ended, as a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Way(&'static str);

impl EncodeLabelValue for Way {
    fn encode(&self, encoder: &mut LabelValueEncoder<'_>) -> Result<(), fmt::Error> {
        encoder.write_str(self.0)
    }
}

/// The counts of a handler. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    server: Gauge,
    network_manager: Gauge,
    ready: Gauge,
    changes: Family<How, Counter>,
}

impl Counts {
    /// Has them written on the page of a registry.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "keelson_host_server_connected",
            "Whether the API server is heard of",
            self.server.clone(),
        );
        registry.register(
            "keelson_host_network_manager_reachable",
            "Whether NetworkManager answered when the network was last looked at",
            self.network_manager.clone(),
        );
        registry.register(
            "keelson_host_ready",
            "Whether the handler holds the lock and has brought the last change to its end",
            self.ready.clone(),
        );
        registry.register(
            "keelson_host_changes",
            "Changes of this host's network, by how they ended",
            self.changes.clone(),
        );
    }

    /// Notes whether the API server is heard of.
    pub fn server(&self, connected: bool) {
        self.server.set(connected.into());
    }

    /// Notes whether NetworkManager answers.
    pub fn network_manager(&self, reachable: bool) {
        self.network_manager.set(reachable.into());
    }

    /// Notes whether the handler is ready.
    pub fn ready(&self, ready: bool) {
        self.ready.set(ready.into());
    }

    /// Counts a change.
    pub fn ended(&self, end: End) {
        let way = match end {
            End::Kept => "kept",
            End::Undone => "undone",
            End::NotBegun => "not_begun",
        };
        self.changes.get_or_create(&How { end: Way(way) }).inc();
    }
}
