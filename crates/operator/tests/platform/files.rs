//! The files of `deploy/operator`: each is read, and its objects can be found.

use serde_json::Value;

use crate::deployed::{FILES, OBJECTS, folder};

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
