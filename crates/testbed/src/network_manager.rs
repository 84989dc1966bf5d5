//! A real NetworkManager and the system bus it is reached by: on a host, or on the machine of a cluster
//! whose pods change its network.
//!
//! It has a sysfs of the network it is in, folders that are new and empty, and a bus with the policy
//! Debian ships, because one that allows everything hides what a program may not do. What it finds on
//! that network, and who talks to it, is for others.

use crate::cluster::Cluster;
use crate::enclosure::{Enclosure, cover, mount_new, remount};
use crate::error::{Doing, Error};
use crate::packages;
use crate::process::{Launch, Process};
use crate::programs::pause;
use crate::wait::until;
use nix::mount::{MsFlags, mount};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How the names of the links begin that the NetworkManager of a cluster's machine looks after. The
/// cluster's own, which carries all pods, and theirs are none of its business.
pub const LAB: &str = "lab";

/// Where NetworkManager keeps its profiles.
pub(crate) const PROFILES: &str = "/etc/NetworkManager/system-connections";

/// Covered by empty folders, so that nothing of the machine's NetworkManager is seen or written.
const COVERED: [&str; 3] = [
    "/etc/NetworkManager",
    "/usr/lib/NetworkManager/conf.d",
    "/var/lib/NetworkManager",
];

/// Its settings: profiles are files, and none is made up for a device nobody asked for.
const SETTINGS: &str = "[main]\nplugins=keyfile\nauth-polkit=false\ndns=none\nno-auto-default=*\n";

/// How long bus and NetworkManager may take to answer.
const ANSWERED: Duration = Duration::from_secs(20);

/// A NetworkManager and its bus, running or not.
#[derive(Debug)]
pub(crate) struct NetworkManager {
    pub(crate) process: Process,
    pub(crate) bus: Process,
    place: Arc<Enclosure>,
}

impl NetworkManager {
    /// In a place that was [furnished](furnish) for it, with logs in this folder.
    pub(crate) fn new(folder: &Path, place: &Arc<Enclosure>) -> Self {
        Self {
            process: Process::new(network_manager(), folder, Arc::clone(place)),
            // It starts programs of NetworkManager's, which look for scripts in its folders.
            bus: Process::new(dbus_daemon(), folder, Arc::clone(place)),
            place: Arc::clone(place),
        }
    }

    /// Starts both; what NetworkManager does then takes its time.
    pub(crate) async fn start(&self) -> Result<(), Error> {
        self.bus.start()?;
        until("the system bus", ANSWERED, async || {
            let connect = || UnixStream::connect("/run/dbus/system_bus_socket");
            let socket = self.place.run(connect);
            socket.map(drop).map_err(|error| error.to_string())
        })
        .await?;
        self.process.start()
    }
}

/// The NetworkManager of a cluster's machine. It ends when this is dropped; what it made stays.
#[derive(Debug)]
pub struct OnMachine(NetworkManager);

impl Drop for OnMachine {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.0.process.tail(20);
            eprintln!("--- NetworkManager of the machine ---\n{log}");
        }
        self.0.process.ask_to_end();
        self.0.bus.ask_to_end();
    }
}

impl Cluster {
    /// Starts a NetworkManager on the cluster's machine, with its bus where pods look for the host's,
    /// and waits until it answers. It looks after links whose names begin with [`LAB`].
    pub async fn network_manager(&self) -> Result<OnMachine, Error> {
        packages::provide(packages::HOSTS)?;
        let walls = self.enclosure();
        let room = Arc::new(walls.room(&pause()?, for_a_machine)?);
        let started = OnMachine(NetworkManager::new(self.folder(), &room));
        started.0.start().await?;
        until("the machine's NetworkManager", ANSWERED, async || {
            let said = walls.said("nmcli --terse --fields RUNNING general");
            match said.map_err(|error| error.to_string())?.trim() {
                "running" => Ok(()),
                other => Err(other.to_owned()),
            }
        })
        .await?;
        Ok(started)
    }
}

/// A room for the NetworkManager of a machine: the rest of the cluster keeps the sysfs with its cgroups.
fn for_a_machine() -> Result<(), Error> {
    furnish(&format!(
        "\n[keyfile]\nunmanaged-devices=*,except:interface-name:{LAB}*\n"
    ))
}

/// Makes a place one for NetworkManager, with these settings besides those every one has.
pub(crate) fn furnish(also: &str) -> Result<(), Error> {
    mount_new("sysfs", "/sys", None)?;
    // NetworkManager waits for udev where it may write to /sys, and writes a bridge's options there.
    let devices = Some("/sys/devices");
    mount(
        devices,
        "/sys/devices",
        None::<&str>,
        MsFlags::MS_BIND,
        None::<&str>,
    )
    .doing(|| "the devices of a host could not be kept writable")?;
    remount(
        "/sys",
        MsFlags::MS_REMOUNT | MsFlags::MS_BIND | MsFlags::MS_RDONLY,
    )?;
    COVERED.into_iter().try_for_each(cover)?;
    for folder in ["/run/dbus", PROFILES] {
        std::fs::create_dir_all(folder).doing(|| format!("{folder} could not be made inside"))?;
    }
    let settings = "/etc/NetworkManager/NetworkManager.conf";
    std::fs::write(settings, format!("{SETTINGS}{also}"))
        .doing(|| format!("{settings} could not be written"))
}

fn dbus_daemon() -> Launch {
    let words = ["--system", "--nofork", "--nopidfile", "--nosyslog"];
    Launch {
        name: "dbus-daemon",
        program: "dbus-daemon".into(),
        args: words.map(str::to_owned).into(),
        env: Vec::new(),
    }
}

fn network_manager() -> Launch {
    let words = ["--no-daemon", "--log-level=INFO"];
    Launch {
        name: "NetworkManager",
        program: "NetworkManager".into(),
        args: words.map(str::to_owned).into(),
        env: Vec::new(),
    }
}
