//! What it takes to be there: the time to start, the memory when idle and under load with caches
//! that are full as far as they can be filled, the size of the program.

use crate::cases::{CASES, Column};
use crate::client::Caller;
use crate::fresh::Guard;
use crate::peers::{Stage, kube_rbac_proxy};
use crate::results::Footprint;
use crate::steady;
use crate::world::World;
use anyhow::Context;
use futures::stream::{self, StreamExt, TryStreamExt};
use http::Method;
use keelson_bench::checkout::released;
use keelson_bench::statistics::Summary;
use keelson_bench::tell;
use std::time::Duration;

/// How often a start is measured.
const STARTS: usize = 9;
/// How long a proxy is left alone before it counts as idle.
const ALONE: Duration = Duration::from_secs(2);
/// Callers that show tokens, and how many in a second each.
const SHOWING: usize = 8;
const PACE: Duration = Duration::from_millis(90);

/// Measures one column. `tokens` is how many it is shown before the load; kube-rbac-proxy, which asks
/// five times in a second, is shown one.
pub(crate) async fn footprint(
    world: &World,
    stage: &Stage,
    column: Column,
    tokens: &[String],
    during: Duration,
) -> anyhow::Result<Footprint> {
    let mut starts = Vec::new();
    for _ in 0..STARTS {
        let guard = Guard::start(world, stage, column)?;
        starts.push(guard.peer.listening_after.as_secs_f64() * 1000.0);
    }
    let guard = Guard::start(world, stage, column)?;
    tokio::time::sleep(ALONE).await;
    let idle_bytes = guard.peer.resident()?;
    show(guard.peer.doors.plain, tokens).await?;
    let case = CASES.iter().find(|case| case.id == "h1-64");
    let case = case.context("a row with 64 connections")?;
    let token = tokens.first().context("a token")?;
    steady::run(case, guard.peer.doors, token, during).await?;
    let loaded_bytes = guard.peer.resident()?;
    let calls = guard.way.calls();
    let count = |resource: &str| calls.iter().filter(|it| it.resource == resource).count();
    let remembered = format!(
        "{} identities, {} decisions",
        count("tokenreviews"),
        count("subjectaccessreviews")
    );
    let file = match column {
        Column::Ours => released("keelson-proxy")?,
        _ => kube_rbac_proxy()?,
    };
    let found = Footprint {
        column,
        start_ms: Summary::of(&starts).context("a start")?,
        idle_bytes,
        loaded_bytes,
        tokens: tokens.len(),
        remembered: Some(remembered),
        file_bytes: std::fs::metadata(file)?.len(),
    };
    tell(&format!(
        "{}: listens after {:.1} ms, {:.1} MB idle, {:.1} MB after {} tokens and with 64 connections",
        column.title(),
        found.start_ms.median,
        idle_bytes as f64 / 1e6,
        loaded_bytes as f64 / 1e6,
        tokens.len()
    ));
    Ok(found)
}

/// Shows every token, with two methods each, no faster than one source may show new ones.
async fn show(port: u16, tokens: &[String]) -> anyhow::Result<()> {
    let share = tokens.len().div_ceil(SHOWING).max(1);
    let one = async |tokens: &[String]| {
        let mut caller = Caller::connect(port).await?;
        for (place, token) in tokens.iter().enumerate() {
            let answer = caller.ask(Method::GET, token).await;
            let status = answer.told.map_err(anyhow::Error::msg)?;
            anyhow::ensure!(status.is_success(), "a token was answered with {status}");
            // The upstream has no use for it; the question is what counts.
            caller.ask(Method::PUT, token).await;
            // The first thousand may come at once.
            if place * SHOWING > 900 {
                tokio::time::sleep(PACE).await;
            }
        }
        anyhow::Ok(())
    };
    stream::iter(tokens.chunks(share))
        .map(one)
        .buffer_unordered(SHOWING)
        .try_collect()
        .await
}
