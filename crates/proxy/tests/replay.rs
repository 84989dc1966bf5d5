//! The laws of the fuzz targets over every committed input: the corpus, and whatever once broke one.

// There it is a library's; here only `LAWS` is used.
#[allow(unreachable_pub, reason = "public for the fuzz targets")]
#[path = "../fuzz/src/laws/mod.rs"]
mod laws;

use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use laws::LAWS;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

/// What is in a folder, by name; nothing when there is none.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries
        .map(|entry| entry.expect("an entry of the folder").path())
        .collect();
    paths.sort();
    paths
}

fn name(path: &Path) -> &str {
    path.file_stem()
        .and_then(|name| name.to_str())
        .expect("a name")
}

/// Holds every law over its inputs in a folder; the files that break one, and how many there were.
fn replay(folder: &str) -> (Vec<PathBuf>, usize) {
    let mut broken = Vec::new();
    let mut held = 0;
    for (target, law) in LAWS {
        for input in entries(&fuzz().join(folder).join(target)) {
            let data = fs::read(&input).expect("an input");
            match catch_unwind(|| law(&data)) {
                Ok(()) => held += 1,
                Err(_) => broken.push(input),
            }
        }
    }
    (broken, held)
}

#[test]
fn every_law_holds_over_its_corpus() {
    let (broken, held) = replay("corpus");
    assert!(broken.is_empty(), "{broken:#?}");
    assert!(held > 500, "only {held} inputs");
}

#[test]
fn what_once_broke_a_law_does_not_any_more() {
    let (broken, _) = replay("crashes");
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_law_has_a_target_and_a_corpus_and_no_folder_is_without_a_law() {
    let known: Vec<&str> = LAWS.iter().map(|(name, _)| *name).collect();
    let names = |folder: &str| -> Vec<String> {
        let folders = entries(&fuzz().join(folder));
        folders.iter().map(|path| name(path).to_owned()).collect()
    };
    assert_eq!(names("fuzz_targets"), known);
    assert_eq!(names("corpus"), known);
    for folder in names("crashes") {
        assert!(known.contains(&folder.as_str()), "crashes/{folder}");
    }
    for (target, _) in LAWS {
        let inputs = entries(&fuzz().join("corpus").join(target));
        assert!(inputs.len() >= 10, "{target} has {} inputs", inputs.len());
    }
}
