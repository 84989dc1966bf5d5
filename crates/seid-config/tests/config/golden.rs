//! The files of each mode, whole, as a person would read them.
//!
//! After a change that is meant, `KEELSON_BLESS=1 cargo test -p keelson-seid-config golden` writes
//! them again; the difference is for the reviewer.

use keelson_seid_config::{File, Mode};

use super::committed::compare;
use super::world::new;

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
