//! The anchor "bare nmstate": looks at the network it finds itself in as often as it is told, makes JSON of
//! each look, and says what one took of the processor and how much memory they took at most. It reports to
//! nobody and remembers nothing, so what it costs is what the crate costs.

use anyhow::Context;
use nix::time::{ClockId, clock_gettime};
use nmstate::NetworkState;
use std::time::Duration;

fn main() -> anyhow::Result<()> {
    let looks = std::env::args().nth(1).context("say how many looks")?;
    let looks: u32 = looks.parse().context("a number of looks")?;
    // The first one fills caches.
    look()?;
    let before = spent()?;
    for _ in 0..looks {
        look()?;
    }
    let each = (spent()? - before) / looks.max(1);
    println!("{:.1} {}", each.as_secs_f64() * 1000.0, most()?);
    Ok(())
}

fn look() -> anyhow::Result<()> {
    let mut state = NetworkState::new();
    state.retrieve()?;
    serde_json::to_value(&state)?;
    Ok(())
}

/// Processor time so far.
fn spent() -> anyhow::Result<Duration> {
    Ok(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?.into())
}

/// The most memory there was at once, in KiB.
fn most() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.split_whitespace().next());
    Ok(number.context("no VmHWM")?.parse()?)
}
