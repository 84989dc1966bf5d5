//! Whole installations as a person would read them.
//!
//! After a change that is meant, `KEELSON_BLESS=1 cargo test -p keelson-render golden` writes them
//! again; the difference is for the reviewer.

use keelson_render::host::HostInstall;

use super::committed::compare;
use super::world::{openshift, plain, rendered, vanilla};

fn text(install: &HostInstall<'_>) -> String {
    let document = |value| {
        let text = serde_saphyr::to_string(value).expect("YAML");
        format!("---\n{text}")
    };
    let objects = rendered(install);
    objects.iter().map(|it| document(&it.value)).collect()
}

#[test]
fn golden_installations_are_what_is_rendered() {
    let spec = plain();
    let stale: Vec<_> = [
        compare("host/vanilla.yaml", &text(&vanilla(&spec))),
        compare("host/openshift.yaml", &text(&openshift(&spec))),
    ]
    .into_iter()
    .flatten()
    .collect();
    assert!(stale.is_empty(), "\n{}", stale.join("\n"));
}

#[test]
fn nothing_of_an_installation_is_written_as_null() {
    let spec = plain();
    for install in [vanilla(&spec), openshift(&spec)] {
        let text = text(&install);
        let nulls: Vec<_> = text.lines().filter(|line| line.ends_with("null")).collect();
        assert!(nulls.is_empty(), "{nulls:?}");
    }
}
