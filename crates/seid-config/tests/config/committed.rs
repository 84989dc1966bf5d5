//! Golden files: what is committed, compared with what came out. The tests of `keelson-render` use it too.

use std::fs;
use std::path::PathBuf;

/// Whether a file of `tests/golden` of the crate that is tested says this: a sentence where it does not.
/// With `KEELSON_BLESS` set it is written instead.
pub(crate) fn compare(name: &str, text: &str) -> Option<String> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let path = folder.join(name);
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
