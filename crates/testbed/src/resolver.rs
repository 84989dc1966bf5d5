//! A name server at a switch, which also leases addresses: dnsmasq, from Debian.
//!
//! It knows one small zone and asks nobody else: a name outside of it is refused. Hosts are not told of
//! it; a test has them ask, or changes their profile to one that takes a lease.

use crate::cache;
use crate::enclosure::BRIDGE;
use crate::error::Error;
use crate::host::Network;
use crate::packages;
use crate::process::{Launch, Process};
use crate::state::State;
use crate::wait::until;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long it may take to listen.
const LISTENING: Duration = Duration::from_secs(10);

/// A name as it stands in a record: `a.root-servers.net`.
const A_ROOT_SERVERS_NET: &str = "01610c726f6f742d73657276657273036e657400";

/// A name server; dropping it ends it.
#[derive(Debug)]
pub struct Resolver {
    // Declared in the order of dropping: the program, then its files.
    process: Process,
    _state: State,
}

impl Resolver {
    /// Names that have an address of IPv4, of IPv6, and none.
    pub const NAMES: [&str; 3] = ["four.example", "six.example", "none.example"];

    /// Starts one at the switch of this network, port 53 of its every address, and waits until it
    /// listens. It knows [`NAMES`](Self::NAMES) and the name servers of `root-servers.net`, and leases
    /// addresses that end in 200 to 250.
    pub async fn start(network: &Network) -> Result<Self, Error> {
        packages::provide(packages::HOSTS)?;
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("test-{}-resolver-{number}", std::process::id());
        let state = State::create(&cache::clusters(), &name)?;
        let leases = state.folder().join("leases").display().to_string();
        let launch = dnsmasq(network, &leases);
        let enclosure = network.enclosure();
        let process = Process::new(launch, state.folder(), Arc::clone(enclosure));
        process.start()?;
        let address = SocketAddr::from((network.address(), 53));
        until("the name server", LISTENING, async || {
            let reached = enclosure.run(move || TcpStream::connect(address));
            let log = || process.tail(5);
            let reached = reached.map_err(|error| format!("{error}\n{}", log()));
            reached.map(drop)
        })
        .await?;
        Ok(Self {
            process,
            _state: state,
        })
    }

    /// The program, to kill, freeze and start again.
    pub fn process(&self) -> &Process {
        &self.process
    }
}

impl Drop for Resolver {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- dnsmasq ---\n{}", self.process.tail(20));
        }
    }
}

fn dnsmasq(network: &Network, leases: &str) -> Launch {
    let [a, b, c, _] = network.address().octets();
    let [four, six, none] = Resolver::NAMES;
    let words = format!(
        "--keep-in-foreground --conf-file=/dev/null --log-facility=- --user=root --pid-file= \
         --interface={BRIDGE} --bind-dynamic --no-resolv --no-hosts --local=/example/ \
         --dns-rr=root-servers.net,2,{A_ROOT_SERVERS_NET} --host-record=a.root-servers.net,198.41.0.4 \
         --host-record={four},192.0.2.1 --host-record={six},2001:db8::1 --txt-record={none},nothing \
         --dhcp-range={a}.{b}.{c}.200,{a}.{b}.{c}.250,1h --dhcp-leasefile={leases} \
         --dhcp-authoritative --no-ping --log-dhcp"
    );
    Launch {
        name: "dnsmasq",
        program: "dnsmasq".into(),
        args: words.split(' ').map(str::to_owned).collect(),
        env: Vec::new(),
    }
}
