//! The files of each mode, whole, as a person would read them.
//!
//! After a change that is meant, `KEELSON_BLESS=1 cargo test -p keelson-seid-config golden` writes
//! them again; the difference is for the reviewer.

use std::fs;
use std::path::PathBuf;

use keelson_seid_config::{File, Mode};

use super::world::new;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn compare(name: &str, text: &str) -> Option<String> {
    let path = folder().join(name);
    if std::env::var_os("KEELSON_BLESS").is_some() {
        fs::create_dir_all(path.parent().expect("a folder")).expect("the folder is made");
        fs::write(&path, text).expect("the file is written");
        return None;
    }
    let golden = fs::read_to_string(&path).unwrap_or_default();
    (golden != text).then(|| {
        let pairs = golden.lines().zip(text.lines()).enumerate();
        let differing = pairs.filter(|(_, (was, is))| was != is).take(5);
        let lines: Vec<_> = differing
            .map(|(at, (was, is))| format!("  line {}: {was} -> {is}", at + 1))
            .collect();
        format!("{name} is not what is committed:\n{}", lines.join("\n"))
    })
}

#[test]
fn golden_files_of_each_mode_are_what_is_rendered() {
    let mut stale = Vec::new();
    for mode in Mode::ALL {
        let applied = new(mode, &[("chain.chain_id", "pacific-1")]);
        assert_eq!(applied.warnings, [], "{mode}");
        for file in File::ALL {
            let text = applied.texts.get(file).expect("every file");
            stale.extend(compare(&format!("{mode}/{file}"), text));
        }
    }
    assert!(stale.is_empty(), "\n{}", stale.join("\n"));
}
