//! What a run of a bench says of the machine and the tools.

use anyhow::Context;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::process::Command;

/// How something was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Run {
    /// A short run, to see that all of it works; its numbers decide nothing.
    pub quick: bool,
    /// How often each number was taken.
    pub rounds: usize,
    /// How long a round was, where all were equally long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<u64>,
    /// The day.
    pub day: String,
    /// The processor's name.
    pub processor: String,
    /// How many there are.
    pub processors: usize,
    /// What else was running, at the start and at the end: the kernel's load of one minute.
    pub load: [f64; 2],
    /// The tools and peers, in their own words.
    pub versions: Vec<String>,
}

impl Run {
    /// What a page says before its first table.
    pub fn introduction(&self) -> String {
        let kind = match self.quick {
            true => "**A quick run: it shows that everything works, and decides nothing.** ",
            false => "",
        };
        let rounds = match self.seconds {
            Some(seconds) => format!("{} rounds of {seconds} s", self.rounds),
            None => format!("{} rounds", self.rounds),
        };
        let [before, after] = self.load;
        format!(
            "{kind}Measured on {} on {} processors ({}), {rounds} for each number; load of the machine {before:.1} before and {after:.1} after. {}.\n\n",
            self.day,
            self.processors,
            self.processor,
            self.versions.join(", "),
        )
    }
}

/// The kernel's load of the last minute.
pub fn load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|it| it.parse().ok()).unwrap_or_default()
}

/// The processor's name.
pub fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let name = name.map(|it| it.trim_start_matches([' ', '\t', ':']));
    name.unwrap_or("unnamed").to_owned()
}

/// The day, as it is written in results.
pub fn day() -> String {
    jiff::Zoned::now().strftime("%Y-%m-%d").to_string()
}

/// The first line a program says of its version.
pub fn version(program: &Path, flag: &str) -> anyhow::Result<String> {
    let output = Command::new(program)
        .arg(flag)
        .output()
        .with_context(|| format!("{} could not be started", program.display()))?;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said);
    Ok(said.lines().next().unwrap_or_default().trim().to_owned())
}
