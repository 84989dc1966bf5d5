//! What is told of this host: its network as it is, whenever that changed or somebody asks.

use super::network_manager::NetworkManager;
use super::run::Handler;
use super::server::StateReport;
use super::state::report::reported;

/// The version of nmstate in this program; a test compares it with the lock file.
pub(super) const NMSTATE_VERSION: &str = "2.2.62";

impl Handler {
    /// Looks at the network and has it told. While it cannot be read, what was told last stays.
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
                    state: reported(&state),
                    host_network_manager_version: manager.ok(),
                    handler_nmstate_version: Some(NMSTATE_VERSION.to_owned()),
                    conditions: Vec::new(),
                });
            }
            Err(trouble) => tracing::warn!("the network cannot be read: {trouble}"),
        }
    }
}
