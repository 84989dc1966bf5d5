//! What it takes to be there: the time from the start to the first answer with a thousand tasks in the
//! store, and the memory when nothing is asked.

use crate::caller::Caller;
use crate::results::Footprint;
use crate::stage::{Scratch, Seat};
use anyhow::{Context, anyhow};
use keelson_bench::checkout::released;
use keelson_bench::statistics::Summary;
use keelson_bench::tell;
use serde_json::json;
use std::time::Duration;

/// How often a start is measured.
const STARTS: usize = 9;
/// How long it is left alone before it counts as idle.
const ALONE: Duration = Duration::from_secs(2);
/// As many as are kept of those that ended.
const STORED: usize = 1000;
/// Callers that fill the store.
const FILLING: usize = 8;
/// How long one of these may take, and how often it is looked at.
const SOON: Duration = Duration::from_secs(60);
const ASK: Duration = Duration::from_millis(2);

pub(crate) fn measure(scratch: &Scratch) -> anyhow::Result<Footprint> {
    scratch.clear()?;
    let bucket = format!("file://{}", scratch.folder("bucket")?.display());
    let seat = Seat::new(scratch.folder("home")?, bucket, None)?;
    let sidecar = seat.start()?;
    fill(seat.port)?;
    drop(sidecar);
    let mut starts = Vec::new();
    for _ in 1..STARTS {
        starts.push(seat.start()?.serving_after.as_secs_f64() * 1000.0);
    }
    let last = seat.start()?;
    starts.push(last.serving_after.as_secs_f64() * 1000.0);
    std::thread::sleep(ALONE);
    let found = Footprint {
        stored: STORED,
        start_ms: Summary::of(&starts).context("a start")?,
        idle_bytes: last.program.resident()?,
        file_bytes: std::fs::metadata(released("keelson-sidecar")?)?.len(),
    };
    tell(&format!(
        "serves after {:.1} ms with {STORED} tasks, {:.1} MB idle",
        found.start_ms.median,
        found.idle_bytes as f64 / 1e6
    ));
    Ok(found)
}

/// Has tasks done until so many are stored.
fn fill(port: u16) -> anyhow::Result<()> {
    let apply = json!({ "type": "config-apply", "params": { "mode": "full" } });
    Caller::connect(port)?.perform(&apply, SOON, ASK)?;
    let share = |first| {
        let validate = json!({ "type": "config-validate" });
        let mut caller = Caller::connect(port)?;
        for _ in (first..STORED - 1).step_by(FILLING) {
            caller.perform(&validate, SOON, ASK)?;
        }
        anyhow::Ok(())
    };
    std::thread::scope(|scope| {
        let share = &share;
        let calls: Vec<_> = (0..FILLING)
            .map(|first| scope.spawn(move || share(first)))
            .collect();
        for call in calls {
            call.join().map_err(|_| anyhow!("a caller panicked"))??;
        }
        Ok(())
    })
}
