//! The steady rows: every column under the same load, round after round.

use crate::cases::{Case, Column};
use crate::load;
use crate::peers::{Doors, Peer};
use crate::results::{Cell, Row};
use anyhow::Context;
use keelson_bench::rounds::order;
use keelson_bench::statistics::{Summary, quantile};
use keelson_bench::tell;
use std::collections::BTreeMap;
use std::time::Duration;
use tokio::process::Command;
use tokio::time::timeout;

/// How long a tool may take beyond what it was told.
const GRACE: Duration = Duration::from_secs(20);

/// Everyone who is measured; the upstream is the column without a proxy.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) peers: BTreeMap<Column, Peer>,
    pub(crate) token: String,
    pub(crate) rounds: usize,
    pub(crate) during: Duration,
}

#[derive(Default)]
struct Found {
    cpu: Vec<f64>,
    per_second: Vec<f64>,
    void: Vec<String>,
}

impl Field {
    /// All rounds of one row.
    pub(crate) async fn measure(&self, case: &Case) -> anyhow::Result<Row> {
        let columns: Vec<Column> = self.peers.keys().copied().collect();
        let mut found = BTreeMap::<Column, Found>::new();
        for round in 0..self.rounds {
            for column in order(&columns, round) {
                let found = found.entry(column).or_default();
                match self.once(case, column).await? {
                    Ok((cpu, per_second)) => {
                        found.cpu.push(cpu);
                        found.per_second.push(per_second);
                    }
                    Err(why) => found.void.push(why),
                }
            }
            tell(&format!(
                "{}: round {} of {}: {}",
                case.title,
                round + 1,
                self.rounds,
                last(&found)
            ));
        }
        let cells = found.into_iter().filter_map(|(column, found)| {
            Some(Cell {
                column,
                cpu: Summary::of(&found.cpu)?,
                per_second: quantile(&found.per_second, 0.5)?,
                void: found.void,
            })
        });
        Ok(Row {
            id: case.id.to_owned(),
            title: case.title.to_owned(),
            cells: cells.collect(),
        })
    }

    /// Microseconds for one request, and requests in a second; or why the run is void.
    async fn once(
        &self,
        case: &Case,
        column: Column,
    ) -> anyhow::Result<Result<(f64, f64), String>> {
        let peer = &self.peers[&column];
        let before = peer.cpu_time()?;
        let printed = run(case, peer.doors, &self.token, self.during).await?;
        let spent = peer.cpu_time()?.saturating_sub(before);
        Ok(load::read(case.protocol, &printed).map(|load| {
            let each = spent.as_secs_f64() * 1e6 / load.requests as f64;
            (each, load.per_second)
        }))
    }
}

/// Runs the load tool and gives what it printed.
pub(crate) async fn run(
    case: &Case,
    doors: Doors,
    token: &str,
    during: Duration,
) -> anyhow::Result<String> {
    let words = load::words(case, doors.of(case.protocol), token, during);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).kill_on_drop(true);
    let output = timeout(during + GRACE, command.output())
        .await
        .with_context(|| format!("{} did not end {GRACE:?} after its time", words[0]))?
        .with_context(|| format!("{} could not be started", words[0]))?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn last(found: &BTreeMap<Column, Found>) -> String {
    let each = found.iter().map(|(column, found)| {
        let said = match found.cpu.last() {
            Some(cpu) if found.void.is_empty() => format!("{cpu:.1} µs"),
            Some(cpu) => format!("{cpu:.1} µs, {} void", found.void.len()),
            None => format!("void ({})", found.void.join("; ")),
        };
        format!("{} {said}", column.title())
    });
    each.collect::<Vec<_>>().join(", ")
}
