//! What `docs/sidecar.md` shows and names is what there is.

#[path = "outside/stage.rs"]
#[allow(dead_code)]
mod stage;

use keelson_testbed::Transcript;
use keelson_wire::{Object, Task, TaskType};
use serde_json::json;
use stage::Sidecar;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    std::fs::read_to_string(root().join("docs/sidecar.md")).expect("the manual")
}

/// Words in backquotes that stand in the first column of the table below a heading.
fn rows(heading: &str) -> BTreeSet<String> {
    let page = page();
    let (_, section) = page.split_once(heading).expect("a section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let first = section.lines().filter_map(|line| {
        let line = line.strip_prefix("| ")?;
        line.split(" | ").next()
    });
    first
        .flat_map(|column| column.split('`').skip(1).step_by(2).map(str::to_owned))
        .collect()
}

#[test]
fn the_transcripts_of_the_manual_are_what_happens() {
    let sidecar = Sidecar::start("manual");
    let program = Path::new(env!("CARGO_BIN_EXE_keelson-sidecar"));
    let folder = program.parent().expect("a folder");
    let path = std::env::var("PATH").expect("a path");
    let path = format!("{}:{path}", folder.display());
    let ran = Transcript::of(root().join("docs/sidecar.md"), root())
        .variable("PATH", Path::new(&path))
        .variable("SIDECAR", Path::new(&sidecar.port.to_string()))
        .variable("HOME_OF_A_NODE", &sidecar.home)
        .replay();
    assert!(ran >= 4, "the manual has transcripts");
}

#[test]
fn every_task_is_in_the_manual_and_no_other() {
    let rows = rows("\n## Tasks\n");
    let tasks: BTreeSet<String> = TaskType::ALL
        .iter()
        .filter(|type_| Task::decode(**type_, &Object::new()).is_some())
        .map(|type_| type_.as_str().to_owned())
        .collect();
    assert_eq!(rows, tasks);
}

/// Words in quotes of some sources that begin in one of these ways.
fn quoted(sources: &[&str], beginnings: &[&str]) -> BTreeSet<String> {
    let words = sources.iter().flat_map(|source| source.split('"'));
    words
        .filter(|word| beginnings.iter().any(|it| word.starts_with(it)))
        .filter(|word| {
            word.bytes()
                .all(|it| it.is_ascii_alphabetic() || it == b'_')
        })
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_variable_that_is_read_is_in_the_manual_and_no_other() {
    let read = quoted(&[include_str!("../src/settings.rs")], &["SEI_", "KEELSON_"]);
    let told: BTreeSet<String> = rows("\n## What it is told\n")
        .into_iter()
        .filter(|it| !it.starts_with("--"))
        .collect();
    assert_eq!(told, read);
}

#[test]
fn every_series_is_in_the_manual_and_no_other() {
    let sources = [
        include_str!("../src/metrics.rs"),
        include_str!("../src/metrics/own.rs"),
    ];
    let counted = quoted(&sources, &["seictl_", "keelson_sidecar_", "process_"]);
    let told = rows("\n## Metrics\n");
    assert_eq!(told, counted);
    // Those of which there is nothing to tell yet are not on the page.
    let sidecar = Sidecar::start("series");
    sidecar.completes("mark-ready", json!({}));
    let scrape = sidecar.get("/v0/metrics").body;
    let types = scrape.lines().filter_map(|it| it.strip_prefix("# TYPE "));
    for name in types.filter_map(|line| line.split(' ').next()) {
        assert!(told.contains(name), "{name}");
    }
}
