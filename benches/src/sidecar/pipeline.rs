//! What people type instead: `curl | decoder | tar x`, and then a `sync` of the target's file system,
//! because the sidecar does not say that it is done before the data is on disk either.

use anyhow::Context;
use keelson_bench::process;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How often the processes are looked at: whether they have ended, and how much they hold.
const LOOK: Duration = Duration::from_millis(2);

/// What a run cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cost {
    /// From the first process to data on disk.
    pub(crate) wall: Duration,
    /// User and system time of all processes.
    pub(crate) cpu: Duration,
    /// The most that was resident, of each process added up.
    pub(crate) peak: u64,
}

/// Runs the commands, each reading what the one before it says, and then brings the target to disk.
pub(crate) fn run(commands: Vec<Command>, target: &Path, limit: Duration) -> anyhow::Result<Cost> {
    let before = children_time()?;
    let started = Instant::now();
    let mut line = Line::start(commands)?;
    let peak = line.end(started + limit)?;
    let sync = Command::new("sync").arg("-f").arg(target).status()?;
    anyhow::ensure!(sync.success(), "sync: {sync}");
    Ok(Cost {
        wall: started.elapsed(),
        cpu: children_time()?.saturating_sub(before),
        peak,
    })
}

/// Processes in a row. Those that still run when it is dropped are ended.
struct Line(Vec<(String, Child)>);

impl Line {
    fn start(commands: Vec<Command>) -> anyhow::Result<Self> {
        let mut line = Self(Vec::new());
        let mut input = Stdio::null();
        for mut command in commands {
            let name = command.get_program().to_string_lossy().into_owned();
            let child = command.stdin(input).stdout(Stdio::piped()).spawn();
            let mut child = child.with_context(|| format!("{name} could not be started"))?;
            let output = child.stdout.take();
            line.0.push((name, child));
            input = output.map_or_else(Stdio::null, Stdio::from);
        }
        Ok(line)
    }

    /// Waits for all of them, and says how much they held at most.
    fn end(&mut self, deadline: Instant) -> anyhow::Result<u64> {
        let mut peaks = vec![0; self.0.len()];
        let mut running = self.0.len();
        while running > 0 {
            anyhow::ensure!(
                Instant::now() < deadline,
                "the pipeline did not end in time"
            );
            running = 0;
            for ((name, child), peak) in self.0.iter_mut().zip(&mut peaks) {
                match child.try_wait()? {
                    None => running += 1,
                    Some(status) => anyhow::ensure!(status.success(), "{name}: {status}"),
                }
                // One that has just ended has said enough before.
                *peak = process::peak(child.id()).unwrap_or_default().max(*peak);
            }
            std::thread::sleep(LOOK);
        }
        Ok(peaks.iter().sum())
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        for (_, child) in &mut self.0 {
            if matches!(child.try_wait(), Ok(None)) {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}

/// The time of all processes this one has started and seen end.
fn children_time() -> anyhow::Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let both = usage.user_time() + usage.system_time();
    Ok(Duration::from_micros(
        u64::try_from(both.num_microseconds()).unwrap_or_default(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(line: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        command
    }

    #[test]
    fn what_one_says_the_next_reads_and_their_time_is_counted() {
        let folder = std::env::temp_dir();
        let file = folder.join(format!("keelson-pipeline-{}", std::process::id()));
        let busy = "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done; echo $i";
        let write = format!("cat > {}", file.display());
        let commands = vec![shell(busy), shell("sed s/1/2/"), shell(&write)];
        let cost = run(commands, &folder, Duration::from_secs(60)).expect("a run");
        let text = std::fs::read_to_string(&file).expect("a file");
        std::fs::remove_file(file).expect("removal");
        assert_eq!(text, "2000000\n");
        // The kernel counts for the whole program, and other tests have children, too: few, and short.
        let idle = run(vec![shell("true")], &folder, Duration::from_secs(60)).expect("a run");
        assert!(
            cost.cpu > idle.cpu + Duration::from_millis(50),
            "{cost:?} {idle:?}"
        );
        assert!(cost.peak > 0, "{cost:?}");
    }

    #[test]
    fn a_run_counts_only_when_every_process_ended_well() {
        let commands = vec![shell("exit 3"), shell("cat > /dev/null")];
        let failed = run(commands, &std::env::temp_dir(), Duration::from_secs(60));
        let said = failed.expect_err("a failure").to_string();
        assert_eq!(said, "sh: exit status: 3");
    }
}
