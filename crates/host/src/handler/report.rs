//! What is told of this host: its network as it is, whenever that changed or somebody asks.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use keelson_api::condition::{HostCondition, Truth};
use keelson_api::host_condition::{StateCondition, StateReason};

use super::network_manager::NetworkManager;
use super::run::Handler;
use super::server::StateReport;
use super::state::report::reported;

/// The version of nmstate in this program; a test compares it with the lock file.
pub(super) const NMSTATE_VERSION: &str = "2.2.62";

impl Handler {
    /// Looks at the network and has it told. While it cannot be read, what was told last stays, and is
    /// said to be old.
    pub(super) async fn report(&mut self) {
        let manager = async { NetworkManager::meet().await?.version().await };
        let manager = manager.await.map_err(|trouble| trouble.to_string());
        let state = self.changes.worker.state().await;
        let words = match (&manager, &state) {
            (Ok(version), Ok(_)) => format!("version {version}"),
            (Err(trouble), _) => trouble.clone(),
            (_, Err(trouble)) => trouble.to_string(),
        };
        self.pulse.counts.network_manager(manager.is_ok());
        self.pulse
            .note(|told| told.network_manager.clone_from(&words));
        match state {
            Ok(state) => {
                self.server.report(StateReport {
                    state: reported(state),
                    host_network_manager_version: manager.ok(),
                    handler_nmstate_version: Some(NMSTATE_VERSION.to_owned()),
                    conditions: vec![readable(Ok(()))],
                });
            }
            Err(trouble) => {
                tracing::warn!("the network cannot be read: {trouble}");
                self.server.report_again(vec![readable(Err(words))]);
            }
        }
    }
}

/// Whether the state that is told is the host's as it is.
fn readable(read: Result<(), String>) -> HostCondition {
    let (truth, reason) = match &read {
        Ok(()) => (Truth::True, StateReason::NetworkRead),
        Err(_) => (Truth::False, StateReason::NetworkUnreadable),
    };
    let now = Time(Timestamp::now());
    HostCondition::new(
        StateCondition::Available,
        truth,
        Some(reason),
        read.err(),
        now,
    )
}
