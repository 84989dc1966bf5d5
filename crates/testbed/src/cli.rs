//! The command `keelson-testbed`: what is behind `make up` and `make down`.

use crate::cluster::{Size, prepare};
use crate::error::{Doing, Error, chain};
use crate::install::Installer;
use crate::keeper;
use crate::kubectl::Kubectl;
use crate::node::Pods;
use crate::openshift::api_server_crd;
use crate::peers::{Peer, peer};
use crate::products::Profile;
use crate::programs::{KUBERNETES, Program, Programs};
use crate::progress::Progress;
use crate::{cache, images, kernel, packages, state, up};
use clap::{Parser, Subcommand};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Duration;

/// A real Kubernetes on one machine, from published parts.
#[derive(Debug, Parser)]
#[command(name = "keelson-testbed", version)]
pub struct Arguments {
    /// Which cluster; several run side by side.
    #[arg(long, global = true, default_value = "local")]
    name: String,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Bring a cluster up with Keelson and a chain of three nodes in it; what is up is left as it is.
    Up(Where),
    /// Take the cluster down and remove every trace of it, or take Keelson out of a cluster of yours.
    Down(Where),
    /// Say what is up.
    Status,
    /// Print the kubeconfig of the cluster.
    Kubeconfig {
        /// Print where the file is instead of what is in it.
        #[arg(long)]
        path: bool,
    },
    /// Run kubectl against the cluster.
    #[command(disable_help_flag = true)]
    Kubectl {
        /// What kubectl is to do.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Install the packages and build the programs that tests and `up` need.
    Prepare,
    /// Write the container images into a folder.
    Images {
        /// The folder.
        #[arg(default_value = "target/images")]
        folder: PathBuf,
        /// How Keelson's own programs are built.
        #[arg(long, value_enum, default_value_t = Profile::Release)]
        profile: Profile,
    },
    /// Run a program in a second kernel that has bond, VLAN, dummy and VRF devices.
    Kernel {
        /// How long it may take, in minutes.
        #[arg(long, default_value_t = 15)]
        minutes: u64,
        /// The program and its words.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
        words: Vec<OsString>,
    },
    /// Remove what killed clusters left.
    Sweep,
    /// Hold a cluster until told to end; `up` starts this.
    #[command(hide = true)]
    Keep,
}

/// Which cluster to go to.
#[derive(Debug, clap::Args)]
struct Where {
    /// Use the cluster of this kubeconfig instead of one on this machine.
    #[arg(long)]
    kubeconfig: Option<PathBuf>,
    /// The registry that cluster has the images of `make images` from.
    #[arg(long, requires = "kubeconfig", default_value = "localhost")]
    registry: String,
    /// The storage class for the data of nodes there.
    #[arg(long, requires = "kubeconfig")]
    storage_class: Option<String>,
}

/// Does what was asked, and says what to end with.
pub async fn run(arguments: Arguments) -> Result<ExitCode, Error> {
    let name = arguments.name.as_str();
    match arguments.verb {
        Verb::Up(at) => match &at.kubeconfig {
            Some(kubeconfig) => up_elsewhere(kubeconfig, &at).await?,
            None => up(name).await?,
        },
        Verb::Down(at) => match &at.kubeconfig {
            Some(kubeconfig) => {
                let progress = Progress::start("taking Keelson and its chain out");
                installer(kubeconfig, &at)?.remove()?;
                progress.done();
                println!("Keelson is out of that cluster.");
            }
            None => match keeper::down(name).await? {
                true => println!("Cluster {name} is gone."),
                false => println!("There was no cluster {name}."),
            },
        },
        Verb::Status => status(name)?,
        Verb::Kubeconfig { path } => {
            let file = kubeconfig_of(name)?;
            match path {
                true => println!("{}", file.display()),
                false => print!("{}", read(&file)?),
            }
        }
        Verb::Kubectl { words } => kubectl(name, &words)?,
        Verb::Prepare => {
            prepare(&Size::Pods(Pods::default()))?;
            packages::provide(packages::HOSTS)?;
            for it in Peer::ALL {
                peer(it)?;
            }
            api_server_crd()?;
        }
        Verb::Images { folder, profile } => write_images(&folder, profile)?,
        Verb::Kernel { minutes, words } => {
            return kernel::run(&words, Duration::from_secs(60 * minutes)).await;
        }
        Verb::Sweep => {
            for swept in state::sweep(&cache::clusters())? {
                println!("Removed what cluster {swept} had left.");
            }
        }
        Verb::Keep => keeper::keep(name).await?,
    }
    Ok(ExitCode::SUCCESS)
}

async fn up(name: &str) -> Result<(), Error> {
    keeper::up(name).await?;
    let file = kubeconfig_of(name)?;
    let program = program(Program::Kubectl)?;
    let kubectl = Kubectl::new(program.clone(), &file);
    let installer = Installer::new(kubectl.clone());
    up::up(&kubectl, &installer, &BTreeMap::new()).await?;
    let folder = program.parent().unwrap_or(&program).display();
    println!("\nKubernetes {KUBERNETES} with Keelson. For a shell that finds it:\n");
    println!("  export KUBECONFIG={} PATH={folder}:$PATH", file.display());
    println!("\nThen try:\n\n{}", up::next("localhost"));
    println!("\n`make down` takes everything away.");
    Ok(())
}

/// Keelson in a cluster someone else runs.
async fn up_elsewhere(kubeconfig: &Path, at: &Where) -> Result<(), Error> {
    let installer = installer(kubeconfig, at)?;
    installer.check()?;
    let classes = at.storage_class.iter().flat_map(|class| {
        let settings = ["PERF", "DEFAULT", "ARCHIVE"];
        settings.map(|it| (format!("SEI_STORAGE_CLASS_{it}"), class.clone()))
    });
    let kubectl = Kubectl::new(program(Program::Kubectl)?, kubeconfig);
    up::up(&kubectl, &installer, &classes.collect()).await?;
    println!("\nTry:\n\n{}", up::next(&at.registry));
    Ok(())
}

fn installer(kubeconfig: &Path, at: &Where) -> Result<Installer, Error> {
    let kubectl = Kubectl::new(program(Program::Kubectl)?, kubeconfig);
    Ok(Installer::new(kubectl).images(&at.registry))
}

fn status(name: &str) -> Result<(), Error> {
    if !keeper::is_up(name)? {
        println!("Cluster {name} is down. `make up` brings it up.");
        return Ok(());
    }
    let folder = keeper::folder(name);
    println!(
        "Cluster {name} is up: Kubernetes {KUBERNETES}, kubeconfig {}",
        kubeconfig_of(name)?.display()
    );
    let pids = std::fs::read_dir(folder.join("pids")).doing(|| "its processes are not known")?;
    let mut names: Vec<String> = pids
        .flatten()
        .map(|it| it.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    for component in names {
        let pid = read(&folder.join("pids").join(&component))?;
        let state = match Path::new("/proc").join(pid.trim()).exists() {
            true => format!("running, process {pid}"),
            false => "not running".into(),
        };
        println!("  {component:<24} {state}");
    }
    println!("Logs are in {}", folder.join("logs").display());
    Ok(())
}

/// Becomes kubectl, so that terminals and exit codes are kubectl's own.
fn kubectl(name: &str, words: &[String]) -> Result<(), Error> {
    let file = kubeconfig_of(name)?;
    let mut command = Command::new(program(Program::Kubectl)?);
    let refused = command.args(words).env("KUBECONFIG", file).exec();
    Err(refused).doing(|| "kubectl could not be started")
}

fn write_images(folder: &Path, profile: Profile) -> Result<(), Error> {
    packages::provide(packages::IMAGES)?;
    // What may be missing on a machine is found out before what takes minutes.
    let mut wanted = images::standard()?;
    wanted.extend(images::products(profile, &folder.join("programs"))?);
    wanted.extend(images::peers()?);
    for image in images::write_all(&wanted, folder)? {
        let size = image.size as f64 / 1e6;
        println!("{size:>8.2} MB  {}  {}", image.digest, image.name);
    }
    println!("They are in {}, one OCI layout each.", folder.display());
    Ok(())
}

fn kubeconfig_of(name: &str) -> Result<PathBuf, Error> {
    if keeper::is_up(name)? {
        return Ok(keeper::folder(name).join("kubeconfig"));
    }
    Err(Error::Down {
        name: name.to_owned(),
    })
}

fn program(program: Program) -> Result<PathBuf, Error> {
    Ok(Programs::prepare(&[program])?.path(program))
}

fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).doing(|| format!("{} could not be read", path.display()))
}

/// An error with everything below it, for the end of a command.
pub fn explain(error: &Error) -> String {
    chain(error)
}
