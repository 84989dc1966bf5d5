//! Many tasks, and a kill in the middle of them.
//!
//! The tasks are config-validate. They wait for the configuration, which the first task has: it waits
//! for a genesis from a server that never answers. So none of them ends, and none is forgotten for its
//! age (only the last thousand that ended are kept), and each that was answered for must be there.

use crate::caller::Caller;
use crate::commits::Alone;
use crate::results::{Kept, Latency, Submitted};
use crate::stage::{Scratch, Seat, Sidecar};
use anyhow::{Context, anyhow};
use keelson_bench::statistics::quantile;
use keelson_bench::tell;
use serde_json::json;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Callers at once.
const CROWD: usize = 8;
/// In how many parts submissions and commits of SQLite alone take turns, so that whatever else the disk
/// does touches both alike.
const SLICES: usize = 5;
/// How long a caller tries again: a restart takes less.
const AGAIN: Duration = Duration::from_secs(60);
/// A caller's pause before it tries again.
const PAUSE: Duration = Duration::from_millis(5);

/// Submits so many tasks, a fifth of them by one caller and the others by eight, kills the sidecar
/// when half of them are answered, starts it again, goes on, and looks for every one.
pub(crate) fn measure(
    scratch: &Scratch,
    count: usize,
    commits: usize,
) -> anyhow::Result<(Vec<Submitted>, Kept)> {
    scratch.clear()?;
    let silent = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let endpoint = silent.local_addr()?.port();
    let seat = Seat::new(scratch.folder("home")?, "snapshots".into(), Some(endpoint))?;
    let sidecar = seat.start()?;
    let answer = Caller::connect(seat.port)?.submit(&json!({ "type": "configure-genesis" }))?;
    anyhow::ensure!(answer.status == 201, "{answer:?}");
    let crowd = Crowd::new(seat.port, count);
    let mut alone = Alone::open(&scratch.folder.join("alone.db"))?;
    let first = count / 5;

    let mut one = Times::default();
    for slice in slices_of(0..first, SLICES) {
        one.sqlite.extend(alone.commit(1, commits / SLICES)?);
        one.ours.extend(crowd.submit(1, slice, || Ok(()))?);
    }

    let mut many = Times::default();
    let mut sidecar = Some(sidecar);
    let mut restart = None;
    for slice in slices_of(first..count, SLICES) {
        many.sqlite.extend(alone.commit(CROWD, commits / SLICES)?);
        let half = slice.contains(&(count / 2));
        many.ours.extend(crowd.submit(CROWD, slice, || {
            if half {
                crowd.wait_for(count / 2)?;
                let (again, known) = kill(&mut sidecar, &seat, &crowd)?;
                restart = Some((again.serving_after, known));
                sidecar = Some(again);
            }
            Ok(())
        })?);
    }
    let submitted = vec![one.submitted(1)?, many.submitted(CROWD)?];

    let (restarted, known) = restart.context("a restart")?;
    let lost = crowd.lost()?;
    let kept = Kept {
        submitted: count,
        answered: crowd.answered().len(),
        known_at_kill: known,
        restart_ms: restarted.as_secs_f64() * 1000.0,
        lost: lost.len(),
    };
    anyhow::ensure!(
        lost.is_empty() && kept.answered == count,
        "of {count} tasks {} were answered with 201, and {} of these are not there: {lost:?}",
        kept.answered,
        lost.len()
    );
    tell(&format!("{count} tasks, one kill: all of them are there"));
    Ok((submitted, kept))
}

/// Kills the sidecar and starts it again; says how many tasks had been answered for.
fn kill(
    sidecar: &mut Option<Sidecar>,
    seat: &Seat,
    crowd: &Crowd,
) -> anyhow::Result<(Sidecar, usize)> {
    let mut killed = sidecar.take().context("a sidecar")?;
    killed.program.kill()?;
    let known = crowd.answered().len();
    tell(&format!("killed after {known} answers"));
    Ok((seat.start()?, known))
}

/// What each request and each commit took, in milliseconds.
#[derive(Debug, Default)]
struct Times {
    ours: Vec<f64>,
    sqlite: Vec<f64>,
}

impl Times {
    fn submitted(&self, callers: usize) -> anyhow::Result<Submitted> {
        let found = Submitted {
            callers,
            ours: latency(&self.ours)?,
            sqlite: latency(&self.sqlite)?,
        };
        tell(&format!(
            "callers: {callers}; p50 {:.2} ms, p99 {:.2} ms; SQLite alone p50 {:.2} ms, p99 {:.2} ms",
            found.ours.p50_ms, found.ours.p99_ms, found.sqlite.p50_ms, found.sqlite.p99_ms
        ));
        Ok(found)
    }
}

/// A range in so many parts, in order.
fn slices_of(whole: Range<usize>, slices: usize) -> impl Iterator<Item = Range<usize>> {
    let at = move |slice: usize| whole.start + whole.len() * slice / slices;
    (0..slices).map(move |slice| at(slice)..at(slice + 1))
}

fn latency(times: &[f64]) -> anyhow::Result<Latency> {
    let at = |share| quantile(times, share).context("nothing was measured");
    Ok(Latency {
        count: times.len(),
        p50_ms: at(0.5)?,
        p99_ms: at(0.99)?,
    })
}

/// Those who submit.
#[derive(Debug)]
struct Crowd {
    port: u16,
    ids: Vec<Uuid>,
    answered: Mutex<Vec<Uuid>>,
}

impl Crowd {
    fn new(port: u16, count: usize) -> Self {
        Self {
            port,
            ids: (0..count).map(|_| Uuid::new_v4()).collect(),
            answered: Mutex::default(),
        }
    }

    fn answered(&self) -> Vec<Uuid> {
        let answered = self.answered.lock();
        answered.map(|it| it.clone()).unwrap_or_default()
    }

    /// Submits these by so many callers, while something else is done. Says how long each took that
    /// was answered at the first try, in milliseconds.
    fn submit(
        &self,
        callers: usize,
        which: Range<usize>,
        meanwhile: impl FnOnce() -> anyhow::Result<()>,
    ) -> anyhow::Result<Vec<f64>> {
        let next = AtomicUsize::new(which.start);
        let call = || {
            let mut times = Vec::new();
            let mut caller = None;
            loop {
                let place = next.fetch_add(1, Ordering::Relaxed);
                if place >= which.end {
                    return anyhow::Ok(times);
                }
                times.extend(self.submit_one(&mut caller, self.ids[place])?);
            }
        };
        std::thread::scope(|scope| {
            let calls: Vec<_> = (0..callers).map(|_| scope.spawn(call)).collect();
            meanwhile()?;
            let mut all = Vec::new();
            for call in calls {
                all.extend(call.join().map_err(|_| anyhow!("a caller panicked"))??);
            }
            Ok(all)
        })
    }

    /// Submits one until it is answered, as an operator does; its time counts if nothing came between.
    fn submit_one(&self, caller: &mut Option<Caller>, id: Uuid) -> anyhow::Result<Option<f64>> {
        let begun = Instant::now();
        let task = json!({ "id": id.to_string(), "type": "config-validate" });
        let mut first = true;
        loop {
            let connected = match caller.take() {
                Some(caller) => Ok(caller),
                None => Caller::connect(self.port),
            };
            let asked = Instant::now();
            match connected.and_then(|mut it| Ok((it.submit(&task)?, it))) {
                Ok((answer, kept)) => {
                    let time = asked.elapsed().as_secs_f64() * 1000.0;
                    anyhow::ensure!(answer.status == 201, "{id}: {answer:?}");
                    if let Ok(mut answered) = self.answered.lock() {
                        answered.push(id);
                    }
                    *caller = Some(kept);
                    return Ok(first.then_some(time));
                }
                Err(error) => {
                    first = false;
                    let late = begun.elapsed() > AGAIN;
                    anyhow::ensure!(!late, "{id} is not accepted within {AGAIN:?}: {error:#}");
                    std::thread::sleep(PAUSE);
                }
            }
        }
    }

    /// Waits until so many are answered.
    fn wait_for(&self, count: usize) -> anyhow::Result<()> {
        let limit = Duration::from_secs(600);
        let begun = Instant::now();
        while self.answered().len() < count {
            anyhow::ensure!(
                begun.elapsed() < limit,
                "{count} tasks are not answered within {limit:?}"
            );
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    /// Tasks that were answered for and are not there.
    fn lost(&self) -> anyhow::Result<Vec<Uuid>> {
        let mut caller = Caller::connect(self.port)?;
        let mut lost = Vec::new();
        for id in self.answered() {
            let answer = caller.get(&format!("/v0/tasks/{id}"))?;
            if answer.status != 200 || answer.json()?["id"] != id.to_string() {
                lost.push(id);
            }
        }
        Ok(lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_the_whole_and_no_two_share_anything() {
        let slices: Vec<Range<usize>> = slices_of(20..103, 5).collect();
        assert_eq!(slices.len(), 5);
        let all: Vec<usize> = slices.into_iter().flatten().collect();
        assert_eq!(all, (20..103).collect::<Vec<_>>());
    }
}
