//! How each column is started, on which processors, and where it listens. Each process serves all
//! protocols at once, so that one process is measured in all rows.

use crate::cases::{Column, Protocol};
use crate::nginx;
use crate::place::Processors;
use anyhow::Context;
use keelson_bench::checkout::released;
use keelson_bench::program::{self, Program};
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Ports, by what is spoken there.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doors {
    pub(crate) plain: u16,
    pub(crate) tls: u16,
    pub(crate) h2c: u16,
}

impl Doors {
    /// Where a client of this protocol goes.
    pub(crate) fn of(self, protocol: Protocol) -> u16 {
        match protocol {
            Protocol::Http1 => self.plain,
            Protocol::TlsHttp1 | Protocol::TlsHttp2 => self.tls,
            Protocol::H2c => self.h2c,
        }
    }

    /// Three ports nobody has.
    pub(crate) fn free() -> anyhow::Result<Self> {
        let [plain, tls, h2c] = program::free_ports()?;
        Ok(Self { plain, tls, h2c })
    }
}

/// Everything that a column needs to be started.
#[derive(Debug)]
pub(crate) struct Stage {
    /// Configurations, keys and logs.
    pub(crate) folder: PathBuf,
    pub(crate) processors: Processors,
    /// Where the upstream listens, plaintext.
    pub(crate) upstream: u16,
}

/// A column that runs. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Peer {
    program: Program,
    pub(crate) doors: Doors,
    /// From the start to the first connection it took.
    pub(crate) listening_after: Duration,
}

impl Peer {
    pub(crate) fn pid(&self) -> u32 {
        self.program.pid()
    }

    pub(crate) fn cpu_time(&self) -> anyhow::Result<Duration> {
        self.program.cpu_time()
    }

    pub(crate) fn resident(&self) -> anyhow::Result<u64> {
        self.program.resident()
    }
}

/// kube-rbac-proxy, built from its published module where that has not been done.
pub(crate) fn kube_rbac_proxy() -> anyhow::Result<PathBuf> {
    Ok(keelson_testbed::peer(keelson_testbed::Peer::KubeRbacProxy)?)
}

impl Stage {
    /// Starts the upstream.
    pub(crate) fn start_upstream(&self, doors: Doors) -> anyhow::Result<Peer> {
        let page = nginx::upstream(&self.folder, doors);
        let words = self.nginx("upstream", &page)?;
        self.start("upstream", &words, &[], doors, &self.processors.upstream)
    }

    /// Starts a column; those that ask an API server find it with the kubeconfig.
    pub(crate) fn start_column(&self, column: Column, kubeconfig: &Path) -> anyhow::Result<Peer> {
        let mut doors = Doors::free()?;
        let own = &self.processors.proxy;
        match column {
            Column::Direct => anyhow::bail!("the upstream is not started as a column"),
            Column::Nginx => {
                let page = nginx::proxy(&self.folder, doors, self.upstream);
                self.start("nginx", &self.nginx("nginx", &page)?, &[], doors, own)
            }
            Column::RawHyper => {
                doors.h2c = doors.plain;
                let mut words = vec![released("raw-hyper")?.into()];
                words.extend(Self::flags([
                    format!("--plain=127.0.0.1:{}", doors.plain),
                    format!("--tls=127.0.0.1:{}", doors.tls),
                    format!("--certificate={}/tls.crt", self.folder.display()),
                    format!("--key={}/tls.key", self.folder.display()),
                    format!("--upstream=127.0.0.1:{}", self.upstream),
                ]));
                self.start("raw-hyper", &words, &[], doors, own)
            }
            Column::Ours => {
                doors.h2c = doors.plain;
                let mut words = vec![released("keelson-proxy")?.into()];
                words.extend(self.guard(doors, kubeconfig));
                self.start("keelson-proxy", &words, &[], doors, own)
            }
            Column::ReferenceOne | Column::ReferenceTwo => {
                doors.h2c = doors.plain;
                let (threads, on) = match column {
                    Column::ReferenceOne => ("1", own),
                    _ => ("2", &self.processors.wide),
                };
                let mut words = vec![kube_rbac_proxy()?.into()];
                words.extend(self.guard(doors, kubeconfig));
                let name = format!("kube-rbac-proxy-{threads}");
                self.start(&name, &words, &[("GOMAXPROCS", threads)], doors, on)
            }
        }
    }

    /// The flags both authorizing proxies take, word for word.
    fn guard(&self, doors: Doors, kubeconfig: &Path) -> Vec<OsString> {
        let folder = self.folder.display();
        Self::flags([
            format!("--insecure-listen-address=127.0.0.1:{}", doors.plain),
            format!("--secure-listen-address=127.0.0.1:{}", doors.tls),
            format!("--tls-cert-file={folder}/tls.crt"),
            format!("--tls-private-key-file={folder}/tls.key"),
            format!("--upstream=http://127.0.0.1:{}/", self.upstream),
            format!("--config-file={folder}/config.yaml"),
            format!("--kubeconfig={}", kubeconfig.display()),
            "--auth-header-fields-enabled=true".to_owned(),
            "--v=0".to_owned(),
        ])
    }

    fn flags<const N: usize>(words: [String; N]) -> Vec<OsString> {
        words.map(OsString::from).into()
    }

    fn nginx(&self, name: &str, page: &str) -> anyhow::Result<Vec<OsString>> {
        let file = self.folder.join(format!("{name}.conf"));
        std::fs::write(&file, page)?;
        Ok(vec!["nginx".into(), "-c".into(), file.into()])
    }

    fn start(
        &self,
        name: &str,
        words: &[OsString],
        environment: &[(&str, &str)],
        doors: Doors,
        on: &[usize],
    ) -> anyhow::Result<Peer> {
        let log = self.folder.join(format!("{name}.out"));
        let mut command = program::command(words, &log)?;
        command.envs(environment.iter().copied());
        let mut program = on_processors(on, &self.processors.load, || {
            Program::start(name, &mut command, &log)
        })??;
        for port in [doors.plain, doors.tls, doors.h2c] {
            let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            program.until(&format!("listen at {address}"), || {
                TcpStream::connect(address).ok()
            })?;
        }
        let listening_after = program.started.elapsed();
        Ok(Peer {
            program,
            doors,
            listening_after,
        })
    }
}

/// Does something on these processors; a process started by it stays there.
fn on_processors<T>(on: &[usize], back: &[usize], act: impl FnOnce() -> T) -> anyhow::Result<T> {
    stay_on(on)?;
    let done = act();
    stay_on(back)?;
    Ok(done)
}

/// Keeps this thread, and all it starts from now on, on these processors.
pub(crate) fn stay_on(processors: &[usize]) -> anyhow::Result<()> {
    let mut set = CpuSet::new();
    for processor in processors {
        set.set(*processor)?;
    }
    sched_setaffinity(Pid::from_raw(0), &set).context("the processors could not be chosen")
}
