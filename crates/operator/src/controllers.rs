//! Which controllers a process runs, and what each of them was told.
//!
//! Whoever needs one half of the operator asks for it with `--controllers`, and has to say nothing for
//! the other. Without that flag the settings decide: SeiNodes are looked after as by
//! sei-k8s-controller, which does not start without its settings, and NMStates where there is an image
//! for their hosts. Types that are not installed are waited for; only where their controllers were
//! asked for by name does readiness wait as well. Running them is for `run` of each half.

use std::path::Path;

use clap::ValueEnum;

use crate::host::settings::{IMAGE, Settings as Hosts};
use crate::platform::{self, Own, Problems, Settings, Told};

/// One half of the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Half {
    /// SeiNodes.
    Sei,
    /// NMStates, and the policies of their hosts.
    Nmstate,
}

/// What a process does.
#[derive(Clone, Debug, PartialEq)]
pub struct Duties {
    /// What it was told of itself.
    pub own: Own,
    /// The platform of SeiNodes, where they are looked after.
    pub nodes: Option<Settings>,
    /// What is said of the host components, where NMStates are looked after.
    pub hosts: Option<Hosts>,
}

/// Why a process cannot do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Settings of the platform are missing or wrong.
    #[error("{0}")]
    Platform(Problems),
    /// The same, where it may be that nobody wants SeiNodes here.
    #[error(
        "{0}\n{IMAGE} is set: start it with --controllers nmstate if NMStates are all it is to look \
         after"
    )]
    PlatformBesideHosts(Problems),
    /// A setting of the host components is wrong.
    #[error("{0}")]
    Hosts(String),
    /// NMStates are asked for, and there is nothing to install for them.
    #[error(
        "{IMAGE} is not set, and --controllers asks for nmstate: set it to the image of keelson-host, \
         or leave nmstate out"
    )]
    NoImage,
}

/// Who runs, and where its leases are.
#[derive(Clone, Debug)]
pub struct Who {
    /// The operator's own namespace.
    pub namespace: String,
    /// One name for each process.
    pub identity: String,
    /// Whether there is a lease at all.
    pub elects: bool,
}

/// What this process is to do.
pub fn of_process(asked: &[Half], file: Option<&Path>) -> Result<Duties, Refusal> {
    let told = Told::this_process(file).map_err(Refusal::Platform)?;
    read(asked, &told)
}

/// Reads what the halves that were asked for need; with none, what the settings are for.
pub fn read(asked: &[Half], told: &Told) -> Result<Duties, Refusal> {
    let (environment, file) = (&told.environment, told.file.as_deref());
    let wants = |half| asked.is_empty() || asked.contains(&half);
    let (nodes, own) = if wants(Half::Sei) {
        let settings = platform::read(environment, file).map_err(|problems| {
            let image = environment
                .get(IMAGE)
                .is_some_and(|it| !it.trim().is_empty());
            match asked.is_empty() && image {
                true => Refusal::PlatformBesideHosts(problems),
                false => Refusal::Platform(problems),
            }
        })?;
        let own = settings.own();
        (Some(settings), own)
    } else {
        let own = platform::read_own(environment, file).map_err(Refusal::Platform)?;
        (None, own)
    };
    let hosts = match wants(Half::Nmstate) {
        true => Hosts::read(environment, own.source.clone()).map_err(Refusal::Hosts)?,
        false => None,
    };
    match hosts {
        None if asked.contains(&Half::Nmstate) => Err(Refusal::NoImage),
        hosts => Ok(Duties { own, nodes, hosts }),
    }
}
