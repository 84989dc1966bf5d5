//! Rows about tokens nobody has seen, and about the end of an answer's life: beside kube-rbac-proxy
//! only, since the others ask nobody. Every proxy is started for its row and has a way to the API
//! server of its own, which counts.

use crate::cases::Column;
use crate::client::{self, Answer, Caller};
use crate::peers::{Peer, Stage};
use crate::results::{Crowd, Expiry, Storm};
use crate::world::World;
use futures::future::{join_all, try_join_all};
use http::Method;
use keelson_bench::statistics::quantile;
use keelson_bench::tell;
use keelson_testbed::faults::FaultProxy;
use std::time::{Duration, Instant};

/// Whoever asks an API server.
pub(crate) const GUARDS: [Column; 2] = [Column::Ours, Column::ReferenceOne];

/// A caller's pause between two requests while an answer's end is awaited.
const PACE: Duration = Duration::from_millis(20);

/// A guard with its own way to the API server.
pub(crate) struct Guard {
    pub(crate) column: Column,
    pub(crate) peer: Peer,
    pub(crate) way: FaultProxy,
}

impl Guard {
    pub(crate) fn start(world: &World, stage: &Stage, column: Column) -> anyhow::Result<Self> {
        let (way, kubeconfig) = world.way(&format!("{column:?}"))?;
        let peer = stage.start_column(column, &kubeconfig)?;
        Ok(Self { column, peer, way })
    }

    fn reviews(&self, resource: &str) -> usize {
        let calls = self.way.calls();
        calls.iter().filter(|it| it.resource == resource).count()
    }
}

/// This many tokens nobody has seen, at once.
pub(crate) async fn storm(
    world: &World,
    stage: &Stage,
    column: Column,
    tokens: usize,
) -> anyhow::Result<Storm> {
    let fresh = world.tokens(tokens).await?;
    let guard = Guard::start(world, stage, column)?;
    let before = guard.peer.cpu_time()?;
    let started = Instant::now();
    let answers = client::at_once(guard.peer.doors.plain, &fresh).await?;
    let seconds = started.elapsed().as_secs_f64();
    let spent = guard.peer.cpu_time()?.saturating_sub(before);
    let storm = Storm {
        column,
        tokens,
        admitted: client::good(&answers),
        others: client::others(&answers),
        reviews: guard.way.calls().len(),
        seconds,
        p99_ms: quantile(&client::milliseconds(&answers), 0.99).unwrap_or_default(),
        cpu_ms: spent.as_secs_f64() * 1000.0,
    };
    tell(&format!(
        "{tokens} new tokens at once, {}: {} admitted after {seconds:.1} s, {} reviews",
        column.title(),
        storm.admitted,
        storm.reviews
    ));
    Ok(storm)
}

/// One token nobody has seen, from this many callers at once.
pub(crate) async fn crowd(
    world: &World,
    stage: &Stage,
    column: Column,
    callers: usize,
) -> anyhow::Result<Crowd> {
    let fresh = world.tokens(1).await?;
    let guard = Guard::start(world, stage, column)?;
    let tokens = vec![fresh[0].clone(); callers];
    let answers = client::at_once(guard.peer.doors.plain, &tokens).await?;
    let crowd = Crowd {
        column,
        callers,
        admitted: client::good(&answers),
        reviews: guard.way.calls().len(),
        slowest_ms: quantile(&client::milliseconds(&answers), 1.0).unwrap_or_default(),
    };
    tell(&format!(
        "one new token from {callers} callers, {}: {} reviews",
        column.title(),
        crowd.reviews
    ));
    Ok(crowd)
}

/// One token in use for longer than its answer lives, by all guards at the same time.
pub(crate) async fn expiry(
    world: &World,
    stage: &Stage,
    callers: usize,
    during: Duration,
) -> anyhow::Result<Vec<Expiry>> {
    let token = world.tokens(1).await?.remove(0);
    let guards = GUARDS.map(|column| Guard::start(world, stage, column));
    let guards = guards.into_iter().collect::<anyhow::Result<Vec<_>>>()?;
    tell(&format!(
        "one token in use for {} s, past the end of its answer",
        during.as_secs()
    ));
    let all = guards
        .iter()
        .map(|guard| use_steadily(guard, &token, callers, during));
    try_join_all(all).await
}

async fn use_steadily(
    guard: &Guard,
    token: &str,
    callers: usize,
    during: Duration,
) -> anyhow::Result<Expiry> {
    let port = guard.peer.doors.plain;
    let mut connected = Vec::new();
    for _ in 0..callers {
        connected.push(Caller::connect(port).await?);
    }
    // The first answer is not what this row is about.
    connected[0].ask(Method::GET, token).await;
    guard.way.forget();
    let until = Instant::now() + during;
    let each = connected.iter_mut().map(|caller| async move {
        let mut answers = Vec::new();
        while Instant::now() < until {
            answers.push(caller.ask(Method::GET, token).await);
            tokio::time::sleep(PACE).await;
        }
        answers
    });
    let answers: Vec<Answer> = join_all(each).await.into_iter().flatten().collect();
    let times = client::milliseconds(&answers);
    Ok(Expiry {
        column: guard.column,
        seconds: during.as_secs(),
        callers,
        requests: answers.len(),
        refused: answers.len() - client::good(&answers),
        token_reviews: guard.reviews("tokenreviews"),
        access_reviews: guard.reviews("subjectaccessreviews"),
        p99_ms: quantile(&times, 0.99).unwrap_or_default(),
        slowest_ms: quantile(&times, 1.0).unwrap_or_default(),
    })
}
