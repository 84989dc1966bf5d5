//! Fuzzing: every target of the proxy for some time each, and what came of it in sentences.
//!
//! What is looked for stands in `crates/proxy/fuzz/src/laws`. An input that breaks a law is written
//! to `crates/proxy/fuzz/crashes`, where the replay test finds it from then on. Inputs that merely
//! reach new code are kept under `target`, so that a later run starts where this one ended.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

mod report;

use report::Report;

/// The package of the targets, below the workspace's root.
const FOLDER: &str = "crates/proxy/fuzz";

/// No code of ours is unsafe, so a sanitizer would cost half the executions and find nothing.
const SANITIZER: &str = "--sanitizer=none";

/// Runs the targets one after another; fails if one of them found something.
pub(crate) fn run(root: &Path, seconds: u32, chosen: &[String]) -> Result<()> {
    let folder = root.join(FOLDER);
    let targets = targets(&folder)?;
    if let Some(unknown) = chosen.iter().find(|name| !targets.contains(name)) {
        bail!(
            "there is no target {unknown}: there are {}",
            targets.join(", ")
        );
    }
    install()?;
    let built = nightly(&folder, "build").arg(SANITIZER).status();
    ensure!(
        built.context("run cargo fuzz build")?.success(),
        "the targets were not built"
    );
    let mut found = 0;
    for target in targets {
        if !chosen.is_empty() && !chosen.contains(&target) {
            continue;
        }
        let log = fuzz(&folder, &target, seconds)?;
        let report = Report::read(&fs::read_to_string(&log).unwrap_or_default());
        println!("{}", report.sentence(&target, &log));
        found += usize::from(!report.is_clean());
    }
    ensure!(
        found == 0,
        "{found} of the targets found something: mend it, and commit the input with the mending"
    );
    Ok(())
}

/// The names of the targets.
fn targets(folder: &Path) -> Result<Vec<String>> {
    let folder = folder.join("fuzz_targets");
    let mut names = Vec::new();
    let entries = fs::read_dir(&folder).with_context(|| format!("read {}", folder.display()))?;
    for entry in entries {
        let path = entry?.path();
        names.extend(
            path.file_stem()
                .and_then(|name| name.to_str())
                .map(str::to_owned),
        );
    }
    names.sort();
    Ok(names)
}

/// Makes sure of a nightly compiler and of cargo-fuzz.
fn install() -> Result<()> {
    let works = |command: &mut Command| {
        let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
        quiet.status().is_ok_and(|status| status.success())
    };
    ensure!(
        works(Command::new("cargo").args(["+nightly", "--version"])),
        "fuzzing needs a nightly compiler: rustup toolchain install nightly"
    );
    if works(Command::new("cargo").args(["fuzz", "--version"])) {
        return Ok(());
    }
    println!("installing cargo-fuzz");
    let installed = Command::new("cargo")
        .args(["install", "cargo-fuzz", "--locked"])
        .status()
        .context("run cargo install")?;
    ensure!(installed.success(), "cargo-fuzz was not installed");
    Ok(())
}

fn nightly(folder: &Path, command: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(folder);
    cargo.args(["+nightly", "fuzz", command, "--fuzz-dir", "."]);
    cargo
}

/// Runs one target and returns where its log is.
fn fuzz(folder: &Path, target: &str, seconds: u32) -> Result<PathBuf> {
    let grown = folder.join("target/corpus").join(target);
    let crashes = folder.join("crashes").join(target);
    for folder in [&grown, &crashes] {
        fs::create_dir_all(folder).with_context(|| format!("create {}", folder.display()))?;
    }
    let log = folder.join(format!("target/{target}.log"));
    let lines = File::create(&log).with_context(|| format!("write {}", log.display()))?;
    // How it ended is read from the log: the status does not tell a finding from a failure.
    nightly(folder, "run")
        .args([SANITIZER, target])
        .args([&grown, &folder.join("corpus").join(target)])
        .arg("--")
        .arg(format!("-artifact_prefix={}/", crashes.display()))
        .arg(format!("-max_total_time={seconds}"))
        .args(["-max_len=2048", "-timeout=10", "-print_final_stats=1"])
        .stdout(Stdio::null())
        .stderr(lines)
        .status()
        .context("run cargo fuzz run")?;
    // A folder for findings that has none would be a folder without a file in the next commit.
    let _ = fs::remove_dir(&crashes);
    Ok(log)
}
