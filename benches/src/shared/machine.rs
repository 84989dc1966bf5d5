//! What a run of a bench says of the machine and the tools.

use anyhow::Context;
use std::path::Path;
use std::process::Command;

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
