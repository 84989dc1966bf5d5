//! A host for one policy, with the NICs it needs, and the steps that are taken on it.

use crate::cables::{Servers, furnish};
use crate::files::Example;
use crate::steps::FILE;
use keelson_testbed::{Host, Network, until};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long the switch may take to answer, and how long a host may take to reach it.
const SOON: Duration = Duration::from_secs(1);
const REACHED: Duration = Duration::from_secs(10);

/// A host, and what serves the networks of its NICs.
pub(crate) struct Place {
    host: Arc<Host>,
    _servers: Servers,
}

impl Place {
    /// Starts a host that has what a policy needs.
    pub(crate) async fn raise(network: &Network, example: &Example) -> Result<Self, String> {
        let host = Host::start(network).await;
        let host = host.map_err(|error| format!("{}: {error}", example.file))?;
        Ok(Self {
            _servers: furnish(&host, example),
            host: Arc::new(host),
        })
    }

    /// The host itself.
    #[allow(dead_code, reason = "each test binary uses its part")]
    pub(crate) fn host(&self) -> &Host {
        &self.host
    }

    /// Runs a command on the host.
    pub(crate) fn run(&self, words: &str) {
        self.host.run(words).expect(words);
    }

    /// Takes a step on the host and waits for the leases it asks for. NetworkManager hears only
    /// processes of the host, so this program is run there again.
    pub(crate) async fn step(&self, step: &str, example: &Example) -> Result<(), String> {
        let program = std::env::current_exe().expect("this program");
        let words = format!(
            "env {FILE}={} {} --exact --ignored steps::{step}_on_a_host",
            example.file,
            program.display()
        );
        let failed = |error| format!("{}: {error}", example.file);
        // It takes seconds, and others are tried meanwhile.
        let host = Arc::clone(&self.host);
        let taken = tokio::task::spawn_blocking(move || host.run(&words)).await;
        taken.expect("a thread").map_err(failed)?;
        if step == "apply" {
            for leased in example.leased() {
                self.host.connected(leased).await.map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Waits until the way to an address is open.
    pub(crate) async fn reaches(&self, address: SocketAddr) -> Result<(), String> {
        let reached = until("the switch", REACHED, async || {
            let host = Arc::clone(&self.host);
            let tried = tokio::task::spawn_blocking(move || host.reaches(address, SOON)).await;
            tried.expect("a thread").map_err(|error| error.to_string())
        });
        reached.await.map_err(|error| error.to_string())
    }
}
