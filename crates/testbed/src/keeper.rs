//! The cluster behind `make up`: it outlives the command that asked for it.
//!
//! A *keeper* process owns it and waits to be told to end. The command and its keeper talk over the
//! keeper's standard streams while it starts: lines of progress one way, and the other way nothing
//! but the open pipe, so that a keeper whose command is gone before the cluster was ready takes
//! everything down again.

use crate::cache;
use crate::cluster::{Cluster, Size, prepare};
use crate::components::NODE;
use crate::error::{Doing, Error};
use crate::images;
use crate::install::{pods, ready_pods};
use crate::packages;
use crate::products::Profile;
use crate::programs::Program;
use crate::progress::{Progress, say, spelled};
use crate::state;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

const READY: &str = "ready";
/// How often it is shown how many components are started.
const GLANCE: Duration = Duration::from_millis(500);
/// How many nodes a person may have at once.
const VOLUMES: usize = 16;

/// The folder of the named cluster.
pub(crate) fn folder(name: &str) -> PathBuf {
    cache::clusters().join(name)
}

/// How many components of the named cluster were started.
fn started_of(name: &str) -> usize {
    let pids = std::fs::read_dir(folder(name).join("pids"));
    pids.map_or(0, |pids| pids.flatten().count())
}

/// Whether the named cluster is up.
pub(crate) fn is_up(name: &str) -> Result<bool, Error> {
    Ok(state::is_held(&cache::clusters(), name)? && folder(name).join(READY).exists())
}

/// Brings the named cluster up, or finds it up.
pub(crate) async fn up(name: &str) -> Result<(), Error> {
    let started = Instant::now();
    packages::require_root()?;
    // Everything slow happens here, where its progress is seen.
    let pods = pods(Profile::Dev, VOLUMES)?;
    prepare(&Size::Pods(pods))?;
    if is_up(name)? {
        say(&format!("Cluster {name} is up already."));
        return Ok(());
    }
    let progress = Progress::start(format!("starting cluster {name}"));
    let program = std::env::current_exe().doing(|| "this program's own file is not known")?;
    // Not our standard error: a reader of ours would wait for the keeper's end too.
    let log_file = cache::folder().join(format!("{name}.log"));
    let log = std::fs::File::create(&log_file)
        .doing(|| format!("{} could not be written", log_file.display()))?;
    let mut keeper = Command::new(program)
        .args(["--name", name, "keep"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .doing(|| "the process that keeps the cluster could not be started")?;
    let mut lines = BufReader::new(keeper.stdout.take().expect("it is piped")).lines();
    let heard = async {
        loop {
            tokio::select! {
                line = lines.next_line() => match line {
                    Ok(Some(line)) if line == READY => return true,
                    Ok(Some(_)) => {}
                    Ok(None) | Err(_) => return false,
                },
                // There is a process for each program: kubectl has none, and containerd one besides.
                () = tokio::time::sleep(GLANCE) => progress.at(started_of(name), Program::ALL.len()),
            }
        }
    };
    let ready = tokio::select! {
        ready = heard => ready,
        () = asked_to_end() => {
            // The closed pipe tells the keeper; it takes down what it has put up.
            drop(keeper.stdin.take());
            let _ = keeper.wait().await;
            return Err(Error::Command {
                doing: format!("starting cluster {name}"),
                status: "interrupted".into(),
                output: "nothing was left behind".into(),
            });
        }
    };
    if !ready {
        let status = keeper.wait().await;
        return Err(Error::Command {
            doing: format!("starting cluster {name}"),
            status: status.map_or_else(|error| error.to_string(), |it| it.to_string()),
            output: std::fs::read_to_string(&log_file).unwrap_or_default(),
        });
    }
    progress.done();
    say(&format!(
        "Cluster {name} is up, {} after you asked.",
        spelled(started.elapsed())
    ));
    Ok(())
}

/// The keeper itself: starts the cluster, says so, and waits for the word to end.
pub(crate) async fn keep(name: &str) -> Result<(), Error> {
    // Ctrl-C and a closed terminal are for the command, not for the cluster.
    let _ = nix::unistd::setsid();
    let cluster = tokio::select! {
        cluster = start(name) => cluster?,
        () = abandoned() => return Ok(()),
        () = asked_to_end() => return Ok(()),
    };
    println!("{READY}");
    asked_to_end().await;
    drop(cluster);
    Ok(())
}

async fn start(name: &str) -> Result<Cluster, Error> {
    let images = images::written(&cache::images());
    let cluster = Cluster::named(name, Size::Pods(ready_pods(VOLUMES, images))).await?;
    cluster.install_crds().await?;
    let ready = cluster.folder().join(READY);
    std::fs::write(folder(name).join("keeper"), std::process::id().to_string())
        .and_then(|()| std::fs::write(&ready, NODE))
        .doing(|| format!("{} could not be written", ready.display()))?;
    Ok(cluster)
}

/// Takes the named cluster down; says whether there was one.
pub(crate) async fn down(name: &str) -> Result<bool, Error> {
    let root = cache::clusters();
    let folder = folder(name);
    let held = state::is_held(&root, name)?;
    if held {
        let keeper = std::fs::read_to_string(folder.join("keeper")).unwrap_or_default();
        let keeper: i32 = keeper.trim().parse().map_err(|_| Error::StateFolder {
            path: folder.clone(),
            why: "its cluster is still starting; try again in a moment".into(),
        })?;
        let progress = Progress::start(format!("taking cluster {name} down"));
        kill(Pid::from_raw(keeper), Signal::SIGTERM)
            .doing(|| format!("process {keeper}, which keeps cluster {name}, could not be told"))?;
        crate::until(
            &format!("the end of cluster {name}"),
            Duration::from_secs(60),
            async || match state::is_held(&root, name) {
                Ok(false) => Ok(()),
                Ok(true) => Err(format!("process {keeper} still holds it")),
                Err(error) => Err(error.to_string()),
            },
        )
        .await?;
        progress.done();
    }
    let swept = state::sweep(&root)?;
    Ok(held || swept.iter().any(|it| it == name))
}

/// The command at the other end of standard input is gone. Read by a thread of its own: a read
/// that never returns must not hold up this process's end.
async fn abandoned() {
    let (tell, told) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = tell.send(());
    });
    let _ = told.await;
}

async fn asked_to_end() {
    let Ok(mut terminate) = signal(SignalKind::terminate()) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = tokio::signal::ctrl_c() => {}
        _ = terminate.recv() => {}
    }
}
