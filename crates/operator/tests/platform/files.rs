//! The files of `deploy/operator`.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use serde_json::Value;

const FILES: [&str; 7] = [
    "namespace.yaml",
    "accounts.yaml",
    "roles.yaml",
    "bindings.yaml",
    "policies.yaml",
    "platform.yaml",
    "deployment.yaml",
];

/// Every object of the install, in the order of its files.
pub(crate) static OBJECTS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let objects = |file: &&str| {
        let text = std::fs::read_to_string(folder().join(file)).expect("a file of the install");
        serde_saphyr::from_multiple::<Value>(&text).expect("objects in YAML")
    };
    FILES.iter().flat_map(objects).collect()
});

/// The folder of the install.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/operator")
}

/// The one object of this kind and name.
pub(crate) fn object(kind: &str, name: &str) -> &'static Value {
    let mut all = OBJECTS.iter();
    let found = all.find(|it| it["kind"] == kind && it["metadata"]["name"] == name);
    found.expect("an object of the install")
}

#[test]
fn no_file_of_the_install_is_left_untested() {
    let entries = std::fs::read_dir(folder()).expect("the folder");
    let mut found: Vec<_> = entries
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    found.sort();
    let mut known = FILES;
    known.sort_unstable();
    assert_eq!(found, known);
}
