//! `make bench-operator`: keelson-operator on a real control plane, with played pods and sidecars.
//!
//! [`stage`] is where it runs, [`measure`] what is measured of it; [`verdict`] and [`document`] say what
//! was found. Whatever was not measured is not written down.

mod board;
mod document;
mod measure;
mod pods;
mod results;
mod sidecars;
mod stage;
mod tally;
mod verdict;

use clap::Parser;
use clap::builder::RangedU64ValueParser;
use keelson_bench::checkout::{self, file, released};
use keelson_bench::machine::{self, Run};
use keelson_bench::program::Program;
use keelson_bench::tell;
use keelson_testbed::KUBERNETES;
use measure::Fleet;
use results::{Results, Scale};
use stage::Stage;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// What is kept of a run.
const RESULTS: &str = "benches/results/operator.json";
/// The page with the tables.
const DOCUMENT: &str = "docs/operator-performance.md";

/// Measures keelson-operator with many nodes.
#[derive(Debug, Parser)]
struct Arguments {
    /// Nodes that are made at once, and then given another image.
    #[arg(long, default_value_t = 1000, value_parser = RangedU64ValueParser::<usize>::new().range(1..50_000))]
    nodes: usize,
    /// Nodes that are settled in the end.
    #[arg(long, default_value_t = 10_000, value_parser = RangedU64ValueParser::<usize>::new().range(1..50_000))]
    settled: usize,
    /// Minutes that so many are left alone; the first ones are left alone for two.
    #[arg(long, default_value_t = 10)]
    minutes: u64,
    /// A hundred nodes, then three hundred, a minute each; the numbers decide nothing.
    #[arg(long)]
    quick: bool,
    /// The operator's program, where it is not the one `make bench-operator` builds. Nothing is written
    /// down.
    #[arg(long)]
    program: Option<PathBuf>,
}

/// How much of everything.
struct Plan {
    nodes: usize,
    settled: usize,
    /// Nodes beside one that hangs.
    beside: usize,
    edits: usize,
    alone: [Duration; 2],
}

impl Plan {
    fn of(arguments: &Arguments) -> Self {
        let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
        match arguments.quick {
            true => Self {
                nodes: 100,
                settled: 300,
                beside: 20,
                edits: 50,
                alone: [minutes(1); 2],
            },
            false => Self {
                nodes: arguments.nodes,
                settled: arguments.settled,
                beside: 100,
                edits: 200,
                alone: [minutes(2), minutes(arguments.minutes)],
            },
        }
    }
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let plan = Plan::of(&arguments);
    let program = match &arguments.program {
        Some(program) => program.clone(),
        None => released("keelson-operator")?,
    };
    let before = machine::load();
    let hanging = {
        let stage = Stage::raise(&program).await?;
        measure::hanging(&stage, plan.beside).await?
    };
    let stage = Stage::raise(&program).await?;
    let mut operator = stage.operator().await?;
    let first = Fleet::new("first", plan.nodes);
    let created = measure::created(&stage, &operator, &first).await?;
    let edited = measure::edited(&stage, &operator, &first).await?;
    let mut scales = vec![scale(&stage, &mut operator, &[&first], &plan, plan.alone[0]).await?];
    let mut added = None;
    if plan.settled > plan.nodes {
        let more = Fleet::new("more", plan.settled - plan.nodes);
        added = Some(measure::created(&stage, &operator, &more).await?);
        let all = [&first, &more];
        scales.push(scale(&stage, &mut operator, &all, &plan, plan.alone[1]).await?);
    }
    let results = Results {
        run: run(&arguments, &program, before)?,
        hanging,
        created,
        edited,
        added,
        scales,
    };
    keep(&results, arguments.program.is_none())
}

/// What it takes to have these nodes.
async fn scale(
    stage: &Stage,
    operator: &mut Program,
    fleets: &[&Fleet],
    plan: &Plan,
    alone: Duration,
) -> anyhow::Result<Scale> {
    Ok(Scale {
        nodes: fleets.iter().map(|it| it.names.len()).sum(),
        settled: measure::settled(stage, operator, alone).await?,
        edits: measure::edits(stage, fleets, plan.edits).await?,
        restart: measure::restarted(stage, operator, fleets).await?,
    })
}

fn run(arguments: &Arguments, program: &Path, before: f64) -> anyhow::Result<Run> {
    let versions = vec![
        machine::version(program, "--version")?,
        format!("Kubernetes {KUBERNETES}"),
    ];
    Ok(Run {
        quick: arguments.quick,
        rounds: 1,
        seconds: None,
        day: machine::day(),
        processor: machine::processor(),
        processors: std::thread::available_parallelism()?.get(),
        load: [before, machine::load()],
        versions,
    })
}

/// Writes results and document, and says what came of the promises.
fn keep(results: &Results, write: bool) -> anyhow::Result<()> {
    if write {
        let page = file(DOCUMENT);
        let renewed = document::renewed(&checkout::read(&page)?, results)?;
        checkout::write(&page, &renewed)?;
        let json = serde_json::to_string_pretty(results)?;
        checkout::write(&file(RESULTS), &(json + "\n"))?;
        tell(&format!("written: {RESULTS} and {DOCUMENT}"));
    }
    for verdict in verdict::verdicts(results) {
        tell(&verdict.to_string());
    }
    Ok(())
}
