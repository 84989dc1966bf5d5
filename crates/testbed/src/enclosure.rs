//! The kernel's walls around one cluster, or one host: a network, process and mount namespace of its
//! own.
//!
//! Everything that is started there lives inside, so nothing has to be cleaned up by hand: when the
//! first process of the namespace ends, the kernel ends every other one, takes down the mounts and
//! drops the network with its rules. That first process ends with the thread that made it, hence
//! with the test, however the test ends. Only cgroups and files outlive this; see `state`.
//!
//! The walls belong to a *thread*: it unshares, then runs short jobs for others (start a process,
//! make a socket). A socket stays in the network it was made in, so a caller may use it anywhere.

use crate::command::run;
use crate::error::{Doing, Error};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, setns, unshare};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread::JoinHandle;

/// The address of the cluster's only machine inside its network.
pub(crate) const ADDRESS: &str = "10.77.0.1";

/// The bridge that carries it.
pub(crate) const BRIDGE: &str = "tb0";

/// Where nmstate keeps other names of links, on the host and in a handler's pod.
pub(crate) const NAMES_OF_LINKS: &str = "/etc/systemd/network";

/// Kernel settings the kubelet writes for the whole machine. Inside, each is a plain file in
/// front of the real one, so the machine's own never change.
pub const MASKED_SYSCTLS: [&str; 6] = [
    "kernel/keys/root_maxbytes",
    "kernel/keys/root_maxkeys",
    "kernel/panic",
    "kernel/panic_on_oops",
    "vm/overcommit_memory",
    "vm/panic_on_oom",
];

type Job = Box<dyn FnOnce() + Send>;

/// What makes of an inside what it is to be.
type Furnish = fn() -> Result<(), Error>;

/// What an enclosure has for itself.
#[derive(Clone, Copy, Debug)]
enum Walls {
    /// A network, processes and mounts.
    OfItsOwn,
    /// Mounts alone: a room of the enclosure with this first process.
    Within(Pid),
}

/// A running enclosure; dropping it ends everything inside.
#[derive(Debug)]
pub(crate) struct Enclosure {
    jobs: Option<mpsc::Sender<Job>>,
    first: Pid,
    thread: Option<JoinHandle<()>>,
}

impl Enclosure {
    /// Raises the walls. `first` is the program that becomes the first process inside; it must
    /// reap orphans and do nothing else. `furnish` makes of the inside what it is to be.
    pub(crate) fn raise(first: &Path, furnish: Furnish) -> Result<Self, Error> {
        Self::begin(first.to_owned(), Walls::OfItsOwn, furnish)
    }

    /// A room within these walls: the same network, processes and files, and on top of them the mounts
    /// that `furnish` makes, which nobody outside the room sees. What is started there ends with the
    /// walls, not with the room.
    pub(crate) fn room(&self, first: &Path, furnish: Furnish) -> Result<Self, Error> {
        Self::begin(first.to_owned(), Walls::Within(self.first), furnish)
    }

    fn begin(program: PathBuf, walls: Walls, furnish: Furnish) -> Result<Self, Error> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let (tell, told) = mpsc::sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("enclosure".into())
            .spawn(move || {
                let mut child = match enter(&program, walls, furnish) {
                    Ok(child) => child,
                    Err(error) => return drop(tell.send(Err(error))),
                };
                let _ = tell.send(Ok(Pid::from_raw(child.id().cast_signed())));
                // Ends when every sender is gone, that is, when the enclosure is dropped.
                queue.into_iter().for_each(|job| job());
                let _ = child.kill();
                let _ = child.wait();
            })
            .doing(|| "a thread for the cluster's namespaces could not be started")?;
        let first = told.recv().unwrap_or_else(|_| {
            Err(Error::System {
                doing: "the thread of the cluster's namespaces ended early".into(),
                source: std::io::ErrorKind::BrokenPipe.into(),
            })
        })?;
        Ok(Self {
            jobs: Some(jobs),
            first,
            thread: Some(thread),
        })
    }

    /// Runs a short job inside and waits for its result.
    pub(crate) fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (tell, told) = mpsc::sync_channel(1);
        let job: Job = Box::new(move || drop(tell.send(job())));
        let sent = self.jobs.as_ref().map(|jobs| jobs.send(job));
        assert!(
            matches!(sent, Some(Ok(()))),
            "the enclosure's thread lives as long as it does"
        );
        told.recv().expect("a job always answers")
    }

    /// Starts a process inside.
    pub(crate) fn spawn(&self, mut command: Command) -> std::io::Result<Child> {
        self.run(move || command.spawn())
    }

    /// Runs a command inside to its end and returns what it printed.
    pub(crate) fn output(&self, command: Command) -> Result<String, Error> {
        self.run(move || run(command))
    }

    /// The same with a command of words apart by spaces.
    pub(crate) fn said(&self, words: &str) -> Result<String, Error> {
        let mut words = words.split(' ');
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        self.output(command)
    }

    /// The first process, as seen from outside: `nsenter --target` takes it.
    pub(crate) fn first(&self) -> Pid {
        self.first
    }
}

impl Drop for Enclosure {
    fn drop(&mut self) {
        let _ = kill(self.first, Signal::SIGKILL);
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Moves the calling thread behind new walls and furnishes the inside.
fn enter(first: &Path, walls: Walls, furnish: Furnish) -> Result<Child, Error> {
    let (unshared, sharing) = match walls {
        Walls::OfItsOwn => (
            CloneFlags::CLONE_NEWNET | CloneFlags::CLONE_NEWNS | CloneFlags::CLONE_NEWPID,
            MsFlags::MS_PRIVATE,
        ),
        Walls::Within(other) => {
            join(other).doing(|| "the walls of another enclosure could not be entered")?;
            // What is unmounted outside must not stay in the room: a pod's network would live on.
            (CloneFlags::CLONE_NEWNS, MsFlags::MS_SLAVE)
        }
    };
    unshare(unshared).doing(|| "the kernel refused a network, mount and process namespace")?;
    remount("/", MsFlags::MS_REC | sharing)?;

    // The first child of this thread is process 1 behind walls of its own. It dies with the thread.
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(first);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = command
        .spawn()
        .doing(|| "the first process of the cluster's namespace could not be started")?;
    let shown = match walls {
        Walls::OfItsOwn => show_processes(),
        Walls::Within(_) => Ok(()),
    };
    if let Err(error) = shown.and_then(|()| furnish()) {
        let _ = child.kill();
        let _ = child.wait();
        return Err(error);
    }
    Ok(child)
}

/// Moves the calling thread behind the walls this process is behind.
fn join(process: Pid) -> std::io::Result<()> {
    let namespace = |name| File::open(format!("/proc/{process}/ns/{name}"));
    let all = [namespace("net")?, namespace("pid")?, namespace("mnt")?];
    // Threads share the folder they are in, and none that does gets other mounts.
    unshare(CloneFlags::CLONE_FS)?;
    for namespace in all {
        setns(namespace, CloneFlags::empty())?;
    }
    Ok(())
}

/// `/proc` of those who live inside. A program mounts it: this thread is not one of them.
fn show_processes() -> Result<(), Error> {
    let mut mount = Command::new("mount");
    mount.args(["-t", "proc", "proc", "/proc"]);
    run(mount).map(drop)
}

/// The inside of a cluster: a bridge with the address of its machine, and nothing of the machine's
/// own that a kubelet would write to.
pub(crate) fn for_a_cluster() -> Result<(), Error> {
    cover_run_and_var()?;
    cover(NAMES_OF_LINKS)?;
    mask_sysctls()?;
    // Volumes want to see mounts made later by the kubelet: sharing stays within these walls.
    remount("/", MsFlags::MS_REC | MsFlags::MS_SHARED)?;
    let default = format!("route add default dev {BRIDGE}");
    for line in bridge().into_iter().chain([default]) {
        ip(&line)?;
    }
    std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")
        .doing(|| "forwarding could not be turned on inside the cluster's network")
}

/// The words that make the bridge of a network. Its hardware address is given: by itself a bridge takes
/// that of a port, so it would change with those who come and go, and the others would lose it.
pub(crate) fn bridge() -> [String; 4] {
    [
        "link set lo up".to_owned(),
        format!("link add {BRIDGE} address 02:00:00:4b:4c:01 type bridge"),
        format!("addr add {ADDRESS}/24 dev {BRIDGE}"),
        format!("link set {BRIDGE} up"),
    ]
}

/// `ip` with these words, where the caller is.
pub(crate) fn ip(words: &str) -> Result<(), Error> {
    let mut ip = Command::new("ip");
    ip.args(words.split(' '));
    run(ip).map(drop)
}

/// `/run` is new and empty inside, and what is written below `/var` (by CNI, by the kubelet)
/// lands in memory: neither reaches the machine's own.
fn cover_run_and_var() -> Result<(), Error> {
    mount_new("tmpfs", "/run", None)?;
    for folder in ["/run/var/upper", "/run/var/work", "/run/netns", "/run/lock"] {
        std::fs::create_dir_all(folder).doing(|| format!("{folder} could not be made inside"))?;
    }
    mount_new(
        "overlay",
        "/var",
        Some("lowerdir=/var,upperdir=/run/var/upper,workdir=/run/var/work"),
    )
}

/// A new and empty folder in the place of one of the machine's, where it has one.
pub(crate) fn cover(folder: &str) -> Result<(), Error> {
    match Path::new(folder).exists() {
        true => mount_new("tmpfs", folder, None),
        false => Ok(()),
    }
}

fn mask_sysctls() -> Result<(), Error> {
    for name in MASKED_SYSCTLS {
        let real = PathBuf::from("/proc/sys").join(name);
        if !real.exists() {
            continue;
        }
        let value = std::fs::read(&real).doing(|| format!("sysctl {name} could not be read"))?;
        let mask = PathBuf::from("/run/sysctl").join(name);
        let folder = mask.parent().unwrap_or(Path::new("/run/sysctl"));
        std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&mask, value))
            .doing(|| format!("a stand-in for sysctl {name} could not be written"))?;
        mount(
            Some(&mask),
            &real,
            None::<&str>,
            MsFlags::MS_BIND,
            None::<&str>,
        )
        .doing(|| format!("sysctl {name} could not be covered inside"))?;
    }
    Ok(())
}

pub(crate) fn mount_new(kind: &str, target: &str, data: Option<&str>) -> Result<(), Error> {
    mount(Some(kind), target, Some(kind), MsFlags::empty(), data)
        .doing(|| format!("{kind} could not be mounted on {target} inside"))
}

pub(crate) fn remount(target: &str, flags: MsFlags) -> Result<(), Error> {
    mount(None::<&str>, target, None::<&str>, flags, None::<&str>)
        .doing(|| format!("the sharing of mounts below {target} could not be changed"))
}
