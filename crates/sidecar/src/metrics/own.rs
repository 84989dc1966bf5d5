//! What the kernel says of this process, under the names every Prometheus client uses.
//!
//! Where something cannot be read it is left out: a scrape never fails over it.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use rustix::param::{clock_ticks_per_second, page_size};
use rustix::process::{Resource, getrlimit};
use std::fs;

/// What `stat` says of a process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Stat {
    /// Ticks it has computed, for itself and in the kernel.
    pub ticks: u64,
    /// Ticks from the machine's start to its own.
    pub started: u64,
    /// Bytes of its address space.
    pub virtual_bytes: u64,
    /// Pages in memory.
    pub resident_pages: u64,
}

/// Reads the text of `/proc/self/stat`. The name stands in brackets and may hold anything, brackets
/// too; what follows the last of them are numbers.
pub fn stat(text: &str) -> Option<Stat> {
    let (_, rest) = text.rsplit_once(')')?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    // The first word after the name is the third of all.
    let number = |place: usize| words.get(place - 3)?.parse::<u64>().ok();
    Some(Stat {
        ticks: number(14)? + number(15)?,
        started: number(22)?,
        virtual_bytes: number(23)?,
        resident_pages: number(24)?,
    })
}

/// When the machine was started, in seconds since 1970, by the text of `/proc/stat`.
pub fn boot(text: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix("btime "))?;
    line.trim().parse().ok()
}

/// This process, at the moment of the scrape.
#[derive(Debug)]
pub(super) struct Own;

impl Collector for Own {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let now = fs::read_to_string("/proc/self/stat").ok();
        let now = now.as_deref().and_then(stat);
        let machine = fs::read_to_string("/proc/stat").ok();
        let booted = machine.as_deref().and_then(boot);
        let second = clock_ticks_per_second();
        if let Some(now) = now {
            let name = "process_cpu_seconds";
            let help = "CPU time this process has used";
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            ConstCounter::new(seconds(now.ticks, second)).encode(metric)?;
        }
        let page = u64::try_from(page_size()).unwrap_or_default();
        let started = now
            .zip(booted)
            .map(|(now, booted)| whole(booted) + seconds(now.started, second));
        // No limit is the largest number, as with every other client.
        let limit = |resource| whole(getrlimit(resource).current.unwrap_or(u64::MAX));
        let gauges = [
            (
                "process_start_time_seconds",
                "When this process was started, in seconds since 1970",
                started,
            ),
            (
                "process_resident_memory_bytes",
                "Memory this process has",
                now.map(|it| whole(it.resident_pages * page)),
            ),
            (
                "process_virtual_memory_bytes",
                "Address space this process has",
                now.map(|it| whole(it.virtual_bytes)),
            ),
            (
                "process_virtual_memory_max_bytes",
                "Address space this process may have",
                Some(limit(Resource::As)),
            ),
            (
                "process_open_fds",
                "Files and connections this process has open",
                descriptors(),
            ),
            (
                "process_max_fds",
                "Files and connections this process may have open",
                Some(limit(Resource::Nofile)),
            ),
        ];
        for (name, help, number) in gauges {
            let Some(number) = number else { continue };
            let metric = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            ConstGauge::new(number).encode(metric)?;
        }
        Ok(())
    }
}

/// Open descriptors, without the one that counts them.
fn descriptors() -> Option<f64> {
    let count = fs::read_dir("/proc/self/fd").ok()?.count();
    u64::try_from(count.saturating_sub(1)).ok().map(whole)
}

fn seconds(ticks: u64, second: u64) -> f64 {
    whole(ticks) / whole(second)
}

/// A number as a metric has it. Above 2^53 the last digits go, and nobody misses them.
#[allow(clippy::cast_precision_loss, reason = "see above")]
fn whole(number: u64) -> f64 {
    number as f64
}
