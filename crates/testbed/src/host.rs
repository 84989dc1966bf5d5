//! Hosts for tests of host networking: each a network of its own with a real NetworkManager in it,
//! plugged into a switch by one cable that a test can cut.
//!
//! A host is an enclosure like a cluster's, furnished for a NetworkManager (see `network_manager`). The
//! switch is a bridge in another network: a cluster's, so that hosts reach the API server at the cluster's
//! address, or one with nothing else in it. What runs on a host and what becomes of its network is for the
//! test.

use crate::cache;
use crate::cluster::Cluster;
use crate::enclosure::{ADDRESS, BRIDGE, Enclosure, NAMES_OF_LINKS, bridge, cover, ip};
use crate::error::{Doing, Error};
use crate::faults::Place;
use crate::network_manager::{self, NetworkManager, PROFILES};
use crate::packages;
use crate::process::{Launch, Process};
use crate::programs::pause;
use crate::state::State;
use crate::wait::until;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

/// The device of a host that its cable is plugged into.
pub const DEVICE: &str = "eth0";

/// The last part of the first host's address; the switch has the first of the network.
const FIRST_HOST: u8 = 10;

/// How long a host may take to be on the network.
const CONNECTED: Duration = Duration::from_secs(20);

/// Where what hosts find behind their gateway is: at the switch too, under an address of another network.
const BEYOND: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 1);

/// How long an answer to a ping may take, in seconds.
const PING: u64 = 1;

/// A switch that hosts are plugged into, at [`Network::address`].
#[derive(Clone, Debug)]
pub struct Network {
    enclosure: Arc<Enclosure>,
}

impl Network {
    /// A network with nothing in it but its switch.
    pub fn bare() -> Result<Self, Error> {
        packages::require_root()?;
        packages::provide(packages::CONTROL_PLANE)?;
        let enclosure = Arc::new(Enclosure::raise(&pause()?, for_a_switch)?);
        Ok(Self { enclosure })
    }

    /// The network of a cluster: its API server is at this address, port 6443.
    pub fn of_cluster(cluster: &Cluster) -> Self {
        Self {
            enclosure: Arc::clone(cluster.enclosure()),
        }
    }

    /// Where the switch itself is: the hosts' gateway.
    pub fn address(&self) -> Ipv4Addr {
        ADDRESS.parse().expect("a constant address")
    }

    /// A listener at the switch, which hosts reach over their cables.
    pub fn listen(&self) -> Result<TcpListener, Error> {
        let address = self.address();
        self.enclosure
            .run(move || TcpListener::bind((address, 0)))
            .doing(|| "no port could be had at the switch")
    }

    /// Runs a command at the switch, words apart by spaces, and gives what it printed.
    pub fn run(&self, words: &str) -> Result<String, Error> {
        self.enclosure.said(words)
    }

    pub(crate) fn enclosure(&self) -> &Arc<Enclosure> {
        &self.enclosure
    }

    /// Whether an address answers a ping from the switch within a second.
    pub async fn pings(&self, address: Ipv4Addr) -> Result<bool, Error> {
        let mut ping = Command::new("/bin/busybox");
        ping.args(["ping", "-c", "1", "-W", &PING.to_string()]);
        ping.arg(address.to_string()).stdin(Stdio::null());
        ping.stdout(Stdio::null()).stderr(Stdio::null());
        let started = || "a ping could not be started at the switch";
        // Started inside and waited for outside: others have jobs there too.
        let mut child = self.enclosure.spawn(ping).doing(started)?;
        let ended = tokio::task::spawn_blocking(move || child.wait()).await;
        let ended = ended.unwrap_or_else(|error| Err(error.into()));
        Ok(ended.doing(started)?.success())
    }

    /// A place behind the hosts' gateway.
    pub(crate) fn beyond(&self) -> Result<Place, Error> {
        self.ip(format!("addr replace {BEYOND}/32 dev {BRIDGE}"))?;
        Ok(Place::Behind(Arc::clone(&self.enclosure), BEYOND))
    }

    fn ip(&self, words: String) -> Result<(), Error> {
        self.enclosure.run(move || ip(&words))
    }
}

/// A host; dropping it removes every trace.
#[derive(Debug)]
pub struct Host {
    // Declared in the order of dropping: programs, then walls, then files.
    network_manager: NetworkManager,
    enclosure: Arc<Enclosure>,
    state: State,
    network: Network,
    port: String,
    address: Ipv4Addr,
}

impl Host {
    /// Starts a host with a cable to this network and waits until NetworkManager has brought up its
    /// profile: a fixed address, and the switch as the gateway.
    pub async fn start(network: &Network) -> Result<Self, Error> {
        packages::provide(packages::HOSTS)?;
        // One count for all networks of a process: a network may be had twice from one cluster.
        static COUNT: AtomicU8 = AtomicU8::new(FIRST_HOST);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let [a, b, c, _] = network.address().octets();
        let address = Ipv4Addr::new(a, b, c, number);
        let name = format!("test-{}-host-{number}", std::process::id());
        let state = State::create(&cache::clusters(), &name)?;
        let enclosure = Arc::new(Enclosure::raise(&pause()?, for_a_host)?);
        let port = format!("host{number}");
        plug(network, &port, &enclosure, DEVICE)?;
        let profile = profile(address, network.address());
        let written = enclosure.run(move || write_profile(&profile));
        written.doing(|| format!("the profile of {address} could not be written"))?;
        let host = Self {
            network_manager: NetworkManager::new(state.folder(), &enclosure),
            enclosure,
            network: network.clone(),
            port,
            address,
            state,
        };
        host.network_manager.start().await?;
        host.connected(DEVICE).await?;
        Ok(host)
    }

    /// Waits until NetworkManager says that a device is connected.
    pub async fn connected(&self, device: &str) -> Result<(), Error> {
        let asked = format!("nmcli --terse --fields GENERAL.STATE device show {device}");
        let what = format!("{device} of {}", self.address);
        until(&what, CONNECTED, async || {
            let said = self.run(&asked).map_err(|error| error.to_string())?;
            match said.contains("100 (connected)") {
                true => Ok(()),
                false => Err(said),
            }
        })
        .await
    }

    /// Its address on the network when it was started.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// A folder of the host's own that outlives its processes.
    pub fn folder(&self) -> &Path {
        self.state.folder()
    }

    /// Its system bus, to kill and start again.
    pub fn bus(&self) -> &Process {
        &self.network_manager.bus
    }

    /// Its NetworkManager, to kill, freeze and start again.
    pub fn network_manager(&self) -> &Process {
        &self.network_manager.process
    }

    /// A program on the host, not started yet; its output goes to a log of this name.
    pub fn program(
        &self,
        name: &'static str,
        program: PathBuf,
        args: Vec<String>,
        env: Vec<(String, String)>,
    ) -> Process {
        let launch = Launch {
            name,
            program,
            args,
            env,
        };
        Process::new(launch, self.state.folder(), Arc::clone(&self.enclosure))
    }

    /// Runs a command on the host, words apart by spaces, and gives what it printed.
    pub fn run(&self, words: &str) -> Result<String, Error> {
        self.enclosure.said(words)
    }

    /// Does a short job on the host: in its network, with its files.
    pub fn inside<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        self.enclosure.run(job)
    }

    /// Whether the host reaches an address within so long.
    pub fn reaches(&self, address: SocketAddr, within: Duration) -> std::io::Result<()> {
        self.inside(move || std::net::TcpStream::connect_timeout(&address, within).map(drop))
    }

    /// A second cable to the same network, plugged into a device of this name that nobody has
    /// configured. What is done to the first does not concern it.
    pub fn plug(&self, device: &str) -> Result<(), Error> {
        let port = format!("{}-{device}", self.port);
        plug(&self.network, &port, &self.enclosure, device)
    }

    /// Pulls the cable: the device loses its carrier.
    pub fn cut(&self) -> Result<(), Error> {
        self.network.ip(format!("link set {} down", self.port))
    }

    /// Leaves the cable in and lets nothing through: no carrier is lost, and nothing answers.
    pub fn black_hole(&self) -> Result<(), Error> {
        self.network.ip(format!("link set {} nomaster", self.port))
    }

    /// Puts right what was cut or let nothing through.
    pub fn mend(&self) -> Result<(), Error> {
        let port = &self.port;
        self.network
            .ip(format!("link set {port} master {BRIDGE}"))?;
        self.network.ip(format!("link set {port} up"))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.network_manager.process.tail(20);
            eprintln!("--- NetworkManager of {} ---\n{log}", self.address);
        }
    }
}

/// A cable, one end at the switch and one in the host. Made from outside: neither sees the other.
fn plug(network: &Network, port: &str, host: &Enclosure, device: &str) -> Result<(), Error> {
    let (switch, host) = (network.enclosure.first(), host.first());
    ip(&format!(
        "link add name {port} netns {switch} type veth peer name {device} netns {host}"
    ))?;
    network.ip(format!("link set {port} master {BRIDGE}"))?;
    network.ip(format!("link set {port} up"))
}

fn for_a_switch() -> Result<(), Error> {
    bridge().iter().try_for_each(|line| ip(line))
}

fn for_a_host() -> Result<(), Error> {
    cover("/run")?;
    cover(NAMES_OF_LINKS)?;
    network_manager::furnish("")?;
    ip("link set lo up")
}

/// The profile of a host's cable: a fixed address, and the switch as the gateway.
fn profile(address: Ipv4Addr, gateway: Ipv4Addr) -> String {
    format!(
        "[connection]\nid={DEVICE}\ntype=ethernet\ninterface-name={DEVICE}\n\
         uuid=00000000-0000-4000-8000-{:012x}\n\n\
         [ipv4]\nmethod=manual\naddress1={address}/24,{gateway}\n\n[ipv6]\nmethod=link-local\n",
        u32::from(address)
    )
}

/// NetworkManager takes no profile that others may read.
fn write_profile(profile: &str) -> std::io::Result<()> {
    let path = Path::new(PROFILES).join(format!("{DEVICE}.nmconnection"));
    std::fs::write(&path, profile)?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))
}
