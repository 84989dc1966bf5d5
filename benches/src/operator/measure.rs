//! What is measured of a running operator: nodes made, nodes edited, nodes left alone, one edit among
//! many, a restart.

use crate::board::Count;
use crate::results::{Converged, Edits, Hanging, Restart, Settled};
use crate::stage::{FIRST_IMAGE, Stage};
use crate::tally::Tally;
use anyhow::Context;
use futures::future::try_join_all;
use keelson_bench::program::Program;
use keelson_bench::statistics::quantile;
use keelson_bench::tell;
use keelson_testbed::faults::Call;
use std::time::{Duration, Instant};
use tokio::time::sleep;
use uuid::Uuid;

/// How long one node may take, with all others at the same time.
const EACH: Duration = Duration::from_secs(2);
/// How long is waited for the few things that take as long with few nodes as with many.
const AT_LEAST: Duration = Duration::from_secs(120);
/// So long without a write is quiet, and quiet is waited for no longer than that.
const QUIET: Duration = Duration::from_secs(5);
const QUIET_WITHIN: Duration = Duration::from_secs(120);
/// Between two edits of single nodes.
const BETWEEN: Duration = Duration::from_millis(50);
/// Nodes that are edited while the operator is down.
const EDITED_WHILE_DOWN: usize = 5;
/// How often a first effect is waited for: each time for the twenty seconds of the proxy.
const PATIENCE: usize = 6;

/// Nodes that are measured together: all of a namespace.
pub(crate) struct Fleet {
    pub(crate) namespace: String,
    pub(crate) names: Vec<String>,
}

impl Fleet {
    /// So many nodes, which are not there yet.
    pub(crate) fn new(namespace: &str, count: usize) -> Self {
        Self {
            namespace: namespace.to_owned(),
            // All names are equally long, so that none is the beginning of another.
            names: (0..count).map(|number| format!("n{number:05}")).collect(),
        }
    }

    fn within(&self) -> Duration {
        EACH * u32::try_from(self.names.len()).unwrap_or(u32::MAX) + AT_LEAST
    }
}

/// Makes all nodes at once and waits until none has anything left to do.
pub(crate) async fn created(
    stage: &Stage,
    operator: &Program,
    fleet: &Fleet,
) -> anyhow::Result<Converged> {
    stage.namespace(&fleet.namespace).await?;
    let making = stage.make(&fleet.namespace, &fleet.names);
    converged(stage, operator, fleet, FIRST_IMAGE, making).await
}

/// Gives all nodes another image at once and waits until none has anything left to do.
pub(crate) async fn edited(
    stage: &Stage,
    operator: &Program,
    fleet: &Fleet,
) -> anyhow::Result<Converged> {
    let image = "registry.example/seid:v6.1.0";
    let editing = stage.edit_all(&fleet.namespace, &fleet.names, image);
    let edited = converged(stage, operator, fleet, image, editing).await?;
    // They are Running all the time.
    Ok(Converged {
        running_s: None,
        ..edited
    })
}

async fn converged(
    stage: &Stage,
    operator: &Program,
    fleet: &Fleet,
    image: &str,
    asking: impl Future<Output = anyhow::Result<()>>,
) -> anyhow::Result<Converged> {
    let nodes = fleet.names.len();
    stage.faults.forget();
    let (cpu, traffic) = (operator.cpu_time()?, stage.sidecars.traffic());
    let begun = Instant::now();
    let until = async |what: &str, holds: &dyn Fn(&Count) -> bool| {
        let within = fleet.within();
        let met = stage.board.until(what, &fleet.namespace, within, holds);
        met.await.with_context(|| stage.operator_said())?;
        anyhow::Ok(begun.elapsed().as_secs_f64())
    };
    let all_run = |count: &Count| count.running == nodes;
    let all_done = |count: &Count| count.done_with(image) == nodes;
    let (asked, running, done) = tokio::join!(
        asking,
        until("that all nodes are Running", &all_run),
        until("that no node has anything left to do", &all_done),
    );
    asked?;
    let (running_s, done_s) = (running?, done?);
    let cpu_s = (operator.cpu_time()? - cpu).as_secs_f64();
    quiet(stage, &[fleet]).await?;
    let traffic = stage.sidecars.traffic().since(traffic);
    let converged = Converged {
        nodes,
        running_s: Some(running_s),
        done_s,
        cpu_s,
        resident_bytes: operator.resident()?,
        calls: Tally::of(&stage.faults.calls()),
        sidecar_requests: traffic.requests,
        sidecar_connections: traffic.connections,
    };
    tell(&converged.line());
    Ok(converged)
}

/// Waits until nothing was written for a while: events come a little after what they tell of.
async fn quiet(stage: &Stage, fleets: &[&Fleet]) -> anyhow::Result<()> {
    let begun = Instant::now();
    let here = |call: &Call| {
        let namespace = call.namespace.as_deref();
        fleets
            .iter()
            .any(|it| Some(it.namespace.as_str()) == namespace)
    };
    let writes = || stage.faults.writes().into_iter().filter(here).count();
    let mut before = writes();
    loop {
        sleep(QUIET).await;
        let now = writes();
        if now == before {
            return Ok(());
        }
        before = now;
        anyhow::ensure!(
            begun.elapsed() < QUIET_WITHIN,
            "the operator still writes {QUIET_WITHIN:?} after all nodes were done: {:?}",
            stage.faults.writes().last()
        );
    }
}

/// Leaves all nodes alone.
pub(crate) async fn settled(
    stage: &Stage,
    operator: &Program,
    during: Duration,
) -> anyhow::Result<Settled> {
    stage.faults.forget();
    let (cpu, traffic) = (operator.cpu_time()?, stage.sidecars.traffic());
    sleep(during).await;
    let cpu_s = (operator.cpu_time()? - cpu).as_secs_f64();
    let traffic = stage.sidecars.traffic().since(traffic);
    let calls = Tally::of(&stage.faults.calls());
    let settled = Settled {
        minutes: during.as_secs_f64() / 60.0,
        writes: calls.writes(),
        reads: calls.requests() - calls.writes(),
        cpu_s,
        resident_bytes: operator.resident()?,
        sidecar_requests: traffic.requests,
        sidecar_connections: traffic.connections,
    };
    tell(&format!("left alone for {during:?}: {settled:?}"));
    Ok(settled)
}

/// Edits one node after the other, each until the operator wrote something for it.
pub(crate) async fn edits(stage: &Stage, fleets: &[&Fleet], count: usize) -> anyhow::Result<Edits> {
    let mut took = Vec::new();
    for number in 0..count {
        let (fleet, name) = any(fleets);
        stage.faults.forget();
        let begun = Instant::now();
        edit(stage, fleet, name, number).await?;
        first_write(stage, fleet, name).await?;
        took.push(begun.elapsed().as_secs_f64() * 1000.0);
        sleep(BETWEEN).await;
    }
    all_done(stage, fleets).await?;
    let at = |share| quantile(&took, share).context("an edit");
    let edits = Edits {
        count,
        p50_ms: at(0.5)?,
        p99_ms: at(0.99)?,
        longest_ms: at(1.0)?,
    };
    tell(&format!("one edit among many: {edits:?}"));
    Ok(edits)
}

/// Ends the operator, edits a few nodes, starts it, and waits until it wrote something for each.
pub(crate) async fn restarted(
    stage: &Stage,
    operator: &mut Program,
    fleets: &[&Fleet],
) -> anyhow::Result<Restart> {
    operator.kill()?;
    let mut edited = Vec::new();
    for number in 0..EDITED_WHILE_DOWN {
        let (fleet, name) = any(fleets);
        edit(stage, fleet, name, number).await?;
        edited.push((fleet, name));
    }
    stage.faults.forget();
    *operator = stage.start()?;
    let begun = operator.started;
    let waits = edited.into_iter().map(async |(fleet, name)| {
        first_write(stage, fleet, name).await?;
        anyhow::Ok(begun.elapsed().as_secs_f64())
    });
    let took = try_join_all(waits).await?;
    all_done(stage, fleets).await?;
    let restart = Restart {
        edited: took.len(),
        first_s: quantile(&took, 0.0).context("an edit")?,
        last_s: quantile(&took, 1.0).context("an edit")?,
        resident_bytes: operator.resident()?,
    };
    tell(&format!("restarted: {restart:?}"));
    Ok(restart)
}

async fn all_done(stage: &Stage, fleets: &[&Fleet]) -> anyhow::Result<()> {
    for fleet in fleets {
        let all = fleet.names.len();
        let what = "that no edited node has anything left to do";
        let done = |count: &Count| count.all_done() == all;
        let until = stage.board.until(what, &fleet.namespace, AT_LEAST, done);
        until.await.with_context(|| stage.operator_said())?;
    }
    quiet(stage, fleets).await
}

/// A node, by chance.
fn any<'a>(fleets: &[&'a Fleet]) -> (&'a Fleet, &'a str) {
    let all: usize = fleets.iter().map(|it| it.names.len()).sum();
    let mut number = (Uuid::new_v4().as_u128() % all as u128) as usize;
    for fleet in fleets {
        match fleet.names.get(number) {
            Some(name) => return (fleet, name),
            None => number -= fleet.names.len(),
        }
    }
    unreachable!("the number is below that of all nodes")
}

/// Gives a node an image nothing had before.
async fn edit(stage: &Stage, fleet: &Fleet, name: &str, number: usize) -> anyhow::Result<()> {
    let image = format!(
        "registry.example/seid:e{number}-{}",
        Uuid::new_v4().simple()
    );
    stage.edit(&fleet.namespace, name, &image).await
}

async fn first_write(stage: &Stage, fleet: &Fleet, name: &str) -> anyhow::Result<()> {
    let is_for_it = |call: &Call| {
        let named = call.name.as_deref().is_some_and(|it| it.starts_with(name));
        let here = call.namespace.as_deref() == Some(&fleet.namespace);
        call.verb.writes() && named && here
    };
    let what = format!("a write for the node {}/{name}", fleet.namespace);
    for _ in 1..PATIENCE {
        if stage.faults.called(&what, is_for_it).await.is_ok() {
            return Ok(());
        }
    }
    let called = stage.faults.called(&what, is_for_it).await;
    called.with_context(|| stage.operator_said())
}

/// Nodes beside one whose sidecar takes requests and answers none.
pub(crate) async fn hanging(stage: &Stage, nodes: usize) -> anyhow::Result<Hanging> {
    let operator = stage.operator().await?;
    let alone = Fleet::new("alone", nodes);
    let alone_s = created(stage, &operator, &alone).await?.done_s;
    let beside = Fleet::new("beside", nodes);
    stage.namespace("hanging").await?;
    stage.sidecars.hang("hanging", "hanging");
    stage.make("hanging", &["hanging".to_owned()]).await?;
    stage.sidecars.held().await?;
    let beside_s = created(stage, &operator, &beside).await?.done_s;
    Ok(Hanging {
        nodes,
        alone_s,
        beside_s,
    })
}
