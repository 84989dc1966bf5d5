//! `make bench-sidecar`: keelson-sidecar beside what people type instead of it, and beside SQLite.
//!
//! [`restore`] unpacks the same archives by the sidecar and by pipelines in turns, [`tasks`] submits
//! many and kills it in the middle, [`start`] starts it; [`verdict`] and [`document`] say what was
//! found. Whatever was not measured is not written down.

mod archives;
mod caller;
mod commits;
mod content;
mod document;
mod pipeline;
mod restore;
mod results;
mod size;
mod stage;
mod start;
mod tasks;
mod verdict;

use archives::{Archives, Form};
use clap::Parser;
use clap::builder::RangedU64ValueParser;
use keelson_bench::checkout::{self, file, released};
use keelson_bench::machine::{self, Run};
use keelson_bench::tell;
use restore::Field;
use results::{Restore, Results, Source};
use size::Size;
use stage::{Gateway, Scratch};
use std::path::Path;

/// What is kept of a run.
const RESULTS: &str = "benches/results/sidecar.json";
/// The page with the tables.
const DOCUMENT: &str = "docs/sidecar-performance.md";

/// Measures keelson-sidecar beside what people type instead of it.
#[derive(Debug, Parser)]
struct Arguments {
    /// About how large an archive is, e.g. 2GiB.
    #[arg(long, default_value = "2GiB")]
    size: Size,
    /// Rounds of every restore.
    #[arg(long, default_value_t = 3, value_parser = RangedU64ValueParser::<usize>::new().range(1..))]
    rounds: usize,
    /// Tasks that are submitted.
    #[arg(long, default_value_t = 10_000, value_parser = RangedU64ValueParser::<usize>::new().range(10..))]
    tasks: usize,
    /// Small archives, two rounds, a thousand tasks; the numbers decide nothing.
    #[arg(long)]
    quick: bool,
    /// Only this part; nothing is written down.
    #[arg(long)]
    only: Option<Part>,
}

/// A part of the bench.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Restore,
    Tasks,
    Start,
}

/// How much of everything.
struct Plan {
    size: u64,
    rounds: usize,
    tasks: usize,
    /// Commits of SQLite alone.
    commits: usize,
}

impl Plan {
    fn of(arguments: &Arguments) -> Self {
        match arguments.quick {
            true => Self {
                size: 128 << 20,
                rounds: 2,
                tasks: 1000,
                commits: 400,
            },
            false => Self {
                size: arguments.size.0,
                rounds: arguments.rounds,
                tasks: arguments.tasks,
                commits: 2000,
            },
        }
    }
}

fn main() -> anyhow::Result<()> {
    let arguments = Arguments::parse();
    let plan = Plan::of(&arguments);
    keelson_testbed::provide_bench_tools()?;
    let kept = keelson_testbed::cache_folder().join("bench");
    let scratch = Scratch::take(&kept)?;
    let before = machine::load();
    match arguments.only {
        Some(Part::Restore) => restores(&plan, &kept, &scratch).map(drop),
        Some(Part::Tasks) => tasks::measure(&scratch, plan.tasks, plan.commits).map(drop),
        Some(Part::Start) => start::measure(&scratch).map(drop),
        None => {
            let restore = restores(&plan, &kept, &scratch)?;
            let (submitted, kept) = tasks::measure(&scratch, plan.tasks, plan.commits)?;
            let footprint = start::measure(&scratch)?;
            keep(&Results {
                run: run(&arguments, &plan, before)?,
                restore,
                submitted,
                kept,
                footprint,
            })
        }
    }
}

fn restores(plan: &Plan, kept: &Path, scratch: &Scratch) -> anyhow::Result<Vec<Restore>> {
    let archives = Archives::provide(kept, plan.size)?;
    let gateway = Gateway::start(&archives.root, &kept.join("versitygw.log"))?;
    let field = Field {
        archives: &archives,
        gateway: &gateway,
        scratch,
        rounds: plan.rounds,
    };
    let mut rows = Vec::new();
    for form in Form::ALL {
        for source in Source::ALL {
            rows.push(field.measure(source, form)?);
        }
    }
    Ok(rows)
}

fn run(arguments: &Arguments, plan: &Plan, before: f64) -> anyhow::Result<Run> {
    let mut versions = vec![machine::version(
        &released("keelson-sidecar")?,
        "--version",
    )?];
    for tool in ["curl", "gzip", "pigz", "zstd", "tar"] {
        let said = machine::version(Path::new(tool), "--version")?;
        versions.push(format!("{tool} {}", number(&said)));
    }
    versions.push(format!("SQLite {}", rusqlite::version()));
    Ok(Run {
        quick: arguments.quick,
        rounds: plan.rounds,
        seconds: None,
        day: machine::day(),
        processor: machine::processor(),
        processors: std::thread::available_parallelism()?.get(),
        load: [before, machine::load()],
        versions,
    })
}

/// The number in what a program says of its version; all it says where there is none.
fn number(said: &str) -> &str {
    let words = said.split([' ', ',']).map(|it| it.trim_start_matches('v'));
    let mut numbers = words.filter(|it| it.starts_with(|first: char| first.is_ascii_digit()));
    numbers.next().unwrap_or(said)
}

/// Writes results and document, and says what came of the promises.
fn keep(results: &Results) -> anyhow::Result<()> {
    let page = file(DOCUMENT);
    let renewed = document::renewed(&checkout::read(&page)?, results)?;
    checkout::write(&page, &renewed)?;
    let json = serde_json::to_string_pretty(results)?;
    checkout::write(&file(RESULTS), &(json + "\n"))?;
    tell(&format!("written: {RESULTS} and {DOCUMENT}"));
    for verdict in verdict::verdicts(results) {
        tell(&verdict.to_string());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_its_number_whatever_stands_around_it() {
        assert_eq!(
            number("curl 7.88.1 (x86_64-pc-linux-gnu) libcurl/7.88.1"),
            "7.88.1"
        );
        assert_eq!(
            number("*** Zstandard CLI (64-bit) v1.5.4, by Yann Collet ***"),
            "1.5.4"
        );
        assert_eq!(number("tar (GNU tar) 1.34"), "1.34");
        assert_eq!(number("newest"), "newest");
    }
}
