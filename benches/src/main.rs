//! `make bench-proxy`: keelson-proxy beside the upstream itself, nginx, raw hyper and kube-rbac-proxy.
//!
//! Same upstream, same tool, alternating order, medians. What counts is the processor time of the
//! process for one request, never wall time alone. [`cases`] says what is measured, [`peers`] starts
//! who is measured, [`steady`], [`fresh`] and [`mod@footprint`] measure, and [`verdict`], [`document`]
//! and [`chart`] say what was found. Whatever was not measured is not written down.

mod cases;
mod chart;
mod client;
mod document;
mod footprint;
mod fresh;
mod load;
mod nginx;
mod peers;
mod place;
mod results;
mod steady;
mod verdict;
mod world;

use cases::{CASES, Case, Column};
use clap::Parser;
use fresh::GUARDS;
use keelson_bench::checkout::{self, released};
use keelson_bench::machine::{self, Run};
use keelson_bench::tell;
use peers::{Doors, Stage};
use place::Processors;
use results::{Footprint, Results};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;
use steady::Field;
use world::World;

/// Measures keelson-proxy beside what else stands before servers.
#[derive(Debug, Parser)]
struct Arguments {
    /// Rounds of every steady row.
    #[arg(long, default_value_t = 7)]
    rounds: usize,
    /// Seconds of load in a round.
    #[arg(long, default_value_t = 2)]
    seconds: u64,
    /// Two minutes instead of twenty; the numbers decide nothing.
    #[arg(long)]
    quick: bool,
    /// Only steady rows whose id starts with this, or `footprint`; nothing is written down.
    #[arg(long)]
    only: Option<String>,
    /// Start everything, say where it is, and wait for Ctrl-C: for a profiler.
    #[arg(long)]
    hold: bool,
}

/// How much of everything.
struct Plan {
    rounds: usize,
    during: Duration,
    storm: usize,
    crowd: usize,
    /// Tokens that fill the caches.
    fill: usize,
    expiry: Option<Duration>,
}

impl Plan {
    fn of(arguments: &Arguments) -> Self {
        match arguments.quick {
            true => Self {
                rounds: 2,
                during: Duration::from_secs(1),
                storm: 60,
                crowd: 40,
                fill: 400,
                expiry: None,
            },
            false => Self {
                rounds: arguments.rounds,
                during: Duration::from_secs(arguments.seconds),
                storm: 300,
                crowd: 40,
                fill: 4096,
                expiry: Some(Duration::from_secs(130)),
            },
        }
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let count = std::thread::available_parallelism()?.get();
    let processors = Processors::of(count)?;
    // Threads and processes started from here on stay off the proxy's processor.
    peers::stay_on(&processors.load)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()?;
    runtime.block_on(bench(&arguments, processors, count))
}

async fn bench(arguments: &Arguments, processors: Processors, count: usize) -> anyhow::Result<()> {
    keelson_testbed::provide_bench_tools()?;
    let plan = Plan::of(arguments);
    let before = machine::load();
    tell("starting the API server");
    let world = World::start().await?;
    let doors = Doors::free()?;
    let stage = Stage {
        folder: world.folder.clone(),
        processors,
        upstream: doors.plain,
    };
    let upstream = stage.start_upstream(doors)?;
    let (_way, kubeconfig) = world.way("steady")?;
    let mut columns = BTreeMap::from([(Column::Direct, upstream)]);
    for column in &Column::ALL[1..] {
        columns.insert(*column, stage.start_column(*column, &kubeconfig)?);
    }
    let field = Field {
        peers: columns,
        token: world.tokens(1).await?.remove(0),
        rounds: plan.rounds,
        during: plan.during,
    };
    if arguments.hold {
        return hold(&field, &stage).await;
    }
    let wanted = |case: &&Case| match &arguments.only {
        Some(start) => case.id.starts_with(start.as_str()),
        None => true,
    };
    let mut steady = Vec::new();
    for case in CASES.iter().filter(wanted) {
        steady.push(field.measure(case).await?);
    }
    match arguments.only.as_deref() {
        Some("footprint") => {
            footprints(&plan, &world, &stage).await?;
            return Ok(());
        }
        Some(_) => return Ok(()),
        None => {}
    }
    let upstream = field.peers;
    let mut results = Results {
        run: Run {
            quick: arguments.quick,
            rounds: plan.rounds,
            seconds: Some(plan.during.as_secs()),
            day: machine::day(),
            processor: machine::processor(),
            processors: count,
            load: [before, before],
            versions: versions()?,
        },
        steady,
        storm: Vec::new(),
        crowd: Vec::new(),
        expiry: Vec::new(),
        footprint: Vec::new(),
    };
    about_tokens(&mut results, &plan, &world, &stage).await?;
    drop(upstream);
    results.run.load[1] = machine::load();
    keep(&results)?;
    for verdict in verdict::verdicts(&results) {
        tell(&verdict.to_string());
    }
    Ok(())
}

/// Leaves everything running until Ctrl-C. The token is in a file: it must not be in a log.
async fn hold(field: &Field, stage: &Stage) -> anyhow::Result<()> {
    std::fs::write(stage.folder.join("token"), &field.token)?;
    tell(&format!(
        "files in {}, upstream at {}",
        stage.folder.display(),
        stage.upstream
    ));
    for (column, peer) in &field.peers {
        let (pid, ports) = (peer.pid(), peer.doors);
        tell(&format!("{}: process {pid}, {ports:?}", column.title()));
    }
    tokio::signal::ctrl_c().await?;
    Ok(())
}

/// The rows in which the API server is asked.
async fn about_tokens(
    results: &mut Results,
    plan: &Plan,
    world: &World,
    stage: &Stage,
) -> anyhow::Result<()> {
    for column in GUARDS {
        let storm = fresh::storm(world, stage, column, plan.storm).await?;
        results.storm.push(storm);
        let crowd = fresh::crowd(world, stage, column, plan.crowd).await?;
        results.crowd.push(crowd);
    }
    if let Some(during) = plan.expiry {
        results.expiry = fresh::expiry(world, stage, 16, during).await?;
    }
    results.footprint = footprints(plan, world, stage).await?;
    Ok(())
}

/// What it takes for each of the guards to be there.
async fn footprints(plan: &Plan, world: &World, stage: &Stage) -> anyhow::Result<Vec<Footprint>> {
    let mut all = Vec::new();
    for column in GUARDS {
        let shown = match column {
            Column::Ours => plan.fill,
            _ => 1,
        };
        tell(&format!("{shown} tokens for {}", column.title()));
        let tokens = world.tokens(shown).await?;
        all.push(footprint::footprint(world, stage, column, &tokens, plan.during).await?);
    }
    Ok(all)
}

/// Writes results, document and chart.
fn keep(results: &Results) -> anyhow::Result<()> {
    let page = place::document();
    let renewed = document::renewed(&checkout::read(&page)?, results)?;
    checkout::write(&page, &renewed)?;
    checkout::write(&place::chart(), &chart::chart(results))?;
    let json = serde_json::to_string_pretty(results)?;
    checkout::write(&place::results(), &(json + "\n"))?;
    tell(&format!("written: {}", place::results().display()));
    Ok(())
}

/// The tools and peers, in their own words.
fn versions() -> anyhow::Result<Vec<String>> {
    let mut found = vec![machine::version(&released("keelson-proxy")?, "--version")?];
    for (program, flag) in [("nginx", "-v"), ("wrk", "-v"), ("h2load", "--version")] {
        found.push(machine::version(Path::new(program), flag)?);
    }
    found.push("kube-rbac-proxy v0.19.1".to_owned());
    Ok(found)
}
