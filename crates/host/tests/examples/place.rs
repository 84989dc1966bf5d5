//! A host for one policy, with the NICs it needs. They lead to a network beside the switch's, where
//! somebody answers DHCP if the policy asks for it.

use crate::files::Example;
use crate::steps::FILE;
use keelson_testbed::{Host, Network, Process, until};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// How long the switch may take to answer, and how long a host may take to reach it.
const SOON: Duration = Duration::from_secs(1);
const REACHED: Duration = Duration::from_secs(10);

/// What answers DHCP, with what it leases.
const DHCP: &str = "netns exec outside dnsmasq --keep-in-foreground --conf-file=/dev/null --pid-file= \
     --user=root --dhcp-leasefile=/run/leases --bind-dynamic --port=0 --dhcp-authoritative \
     --dhcp-range=192.0.2.200,192.0.2.250,1h --dhcp-range=2001:db8:d::100,2001:db8:d::200,64,1h \
     --enable-ra --dhcp-option=option:dns-server,192.0.2.1";

/// A host, and what serves the networks of its NICs.
pub(crate) struct Place {
    host: Arc<Host>,
    _servers: Vec<Process>,
}

impl Place {
    /// Starts a host that has what a policy needs.
    pub(crate) async fn raise(network: &Network, example: &Example) -> Result<Self, String> {
        let host = Host::start(network).await;
        let host = host.map_err(|error| format!("{}: {error}", example.file))?;
        let mut place = Self {
            host: Arc::new(host),
            _servers: Vec::new(),
        };
        place.run("ip netns add outside");
        place.run("ip -n outside link set lo up");
        for nic in example.nics() {
            place.run(&format!(
                "ip link add {nic} type veth peer name {nic} netns outside"
            ));
            place.run(&format!("ip -n outside link set {nic} up"));
        }
        for nic in example.nics_with_dhcp() {
            place.serve(nic);
        }
        Ok(place)
    }

    /// Has DHCP answered in the network of a NIC.
    fn serve(&mut self, nic: &str) {
        for address in ["192.0.2.1/24", "2001:db8:d::1/64"] {
            self.run(&format!("ip -n outside addr add {address} dev {nic} nodad"));
        }
        let words = format!("{DHCP} --interface={nic}");
        let words = words.split_whitespace().map(str::to_owned).collect();
        let server = self.host.program("dnsmasq", "ip".into(), words, Vec::new());
        server.start().expect("a server for DHCP");
        self._servers.push(server);
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
