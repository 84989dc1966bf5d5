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
mod process;
mod results;
mod rounds;
mod statistics;
mod steady;
mod verdict;
mod world;

use anyhow::Context;
use cases::{CASES, Case, Column};
use clap::Parser;
use fresh::GUARDS;
use peers::{Doors, Stage};
use place::Processors;
use results::{Footprint, Results, Run};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::Command;
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
    let before = machine_load();
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
            seconds: plan.during.as_secs(),
            day: jiff::Zoned::now().strftime("%Y-%m-%d").to_string(),
            processor: processor(),
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
    results.run.load[1] = machine_load();
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
    let write = |file: &Path, text: String| {
        std::fs::write(file, text)
            .with_context(|| format!("{} could not be written", file.display()))
    };
    let page = place::document();
    let text = std::fs::read_to_string(&page)
        .with_context(|| format!("{} could not be read", page.display()))?;
    write(&page, document::renewed(&text, results)?)?;
    write(&place::chart(), chart::chart(results))?;
    let json = serde_json::to_string_pretty(results)?;
    write(&place::results(), json + "\n")?;
    tell(&format!("written: {}", place::results().display()));
    Ok(())
}

/// The kernel's load of the last minute.
fn machine_load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|it| it.parse().ok()).unwrap_or_default()
}

fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let name = name.map(|it| it.trim_start_matches([' ', '\t', ':']));
    name.unwrap_or("unnamed").to_owned()
}

/// The tools and peers, in their own words.
fn versions() -> anyhow::Result<Vec<String>> {
    let first_line = |program: &Path, flag: &str| -> anyhow::Result<String> {
        let output = Command::new(program)
            .arg(flag)
            .output()
            .with_context(|| format!("{} could not be started", program.display()))?;
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8_lossy(&said);
        Ok(said.lines().next().unwrap_or_default().trim().to_owned())
    };
    let mut found = vec![first_line(&place::released("keelson-proxy")?, "--version")?];
    for (program, flag) in [("nginx", "-v"), ("wrk", "-v"), ("h2load", "--version")] {
        found.push(first_line(Path::new(program), flag)?);
    }
    found.push("kube-rbac-proxy v0.19.1".to_owned());
    Ok(found)
}

/// A line for the person who waits.
fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
