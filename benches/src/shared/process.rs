//! What a process has cost: the processor time and the memory of it and its children, as the kernel
//! counts them.

use anyhow::{Context, anyhow};
use std::fs;
use std::time::Duration;

/// The kernel counts in hundredths of a second, whatever its own clock.
const TICKS_PER_SECOND: u64 = 100;

/// User and system time of the process and its children so far.
pub fn cpu_time(pid: u32) -> anyhow::Result<Duration> {
    let mut ticks = 0;
    for pid in tree(pid)? {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat"))
            .with_context(|| format!("process {pid} ended while it was measured"))?;
        ticks += spent(&stat).ok_or_else(|| anyhow!("/proc/{pid}/stat was not understood"))?;
    }
    Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

/// Resident bytes of the process and its children.
pub fn resident(pid: u32) -> anyhow::Result<u64> {
    let mut bytes = 0;
    for pid in tree(pid)? {
        let status = fs::read_to_string(format!("/proc/{pid}/status"))
            .with_context(|| format!("process {pid} ended while it was measured"))?;
        bytes += amount(&status, "VmRSS:")
            .ok_or_else(|| anyhow!("/proc/{pid}/status was not understood"))?;
    }
    Ok(bytes)
}

/// The most the process alone has had resident so far.
pub fn peak(pid: u32) -> anyhow::Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))
        .with_context(|| format!("process {pid} ended while it was measured"))?;
    amount(&status, "VmHWM:").ok_or_else(|| anyhow!("/proc/{pid}/status was not understood"))
}

/// The process and all below it.
fn tree(pid: u32) -> anyhow::Result<Vec<u32>> {
    let mut all = vec![pid];
    let mut next = 0;
    while let Some(pid) = all.get(next).copied() {
        next += 1;
        let threads = fs::read_dir(format!("/proc/{pid}/task"))
            .with_context(|| format!("process {pid} ended while it was measured"))?;
        for thread in threads.flatten() {
            let children = fs::read_to_string(thread.path().join("children"));
            let children = children.unwrap_or_default();
            all.extend(
                children
                    .split_whitespace()
                    .filter_map(|it| it.parse::<u32>().ok()),
            );
        }
    }
    Ok(all)
}

/// Ticks in user and system mode. The name before them may contain anything, blanks and brackets
/// too.
fn spent(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

fn amount(status: &str, of: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(of))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_user_and_system_and_no_name_confuses_it() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 93 0 0 0 21 34 5 6 20 0 1 0 99 1 2 3";
        assert_eq!(spent(stat), Some(55));
        assert_eq!(spent("7 (a"), None);
    }

    #[test]
    fn memory_is_what_is_resident_now_or_was_at_most() {
        let status = "Name:\tx\nVmHWM:\t  9000 kB\nVmRSS:\t  5000 kB\n";
        assert_eq!(amount(status, "VmRSS:"), Some(5000 * 1024));
        assert_eq!(amount(status, "VmHWM:"), Some(9000 * 1024));
        assert_eq!(amount("Name:\tx\n", "VmRSS:"), None);
    }

    #[test]
    fn a_child_counts_with_its_parent() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .expect("a child");
        let all = tree(std::process::id()).expect("a tree");
        let (alone, both) = (
            resident(child.id()).expect("its memory"),
            resident(std::process::id()).expect("all memory"),
        );
        child.kill().expect("an end");
        child.wait().expect("an end");
        assert!(all.contains(&child.id()));
        assert!(both > alone);
    }
}
