//! What the tests share: a host, intents, and looking names up in a text.

use std::collections::BTreeMap;

use keelson_seid_config::{Applied, Host, Intent, Mode, Texts, apply};
use toml_edit::{DocumentMut, Item};

pub(crate) fn host() -> Host {
    Host {
        name: "node-0".into(),
        cpus: 4,
    }
}

pub(crate) fn overrides(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

pub(crate) fn intent(mode: Mode, pairs: &[(&str, &str)]) -> Intent {
    Intent {
        mode: mode.to_string(),
        overrides: overrides(pairs),
        ..Intent::default()
    }
}

pub(crate) fn increment(pairs: &[(&str, &str)]) -> Intent {
    Intent {
        overrides: overrides(pairs),
        incremental: true,
        ..Intent::default()
    }
}

/// A new node of this mode.
pub(crate) fn new(mode: Mode, pairs: &[(&str, &str)]) -> Applied {
    apply(&intent(mode, pairs), &host(), &Texts::default()).expect("an intent that is fine")
}

/// What stands at `section.name` (or `name`) of a text, as TOML.
pub(crate) fn at(text: &str, place: &str) -> Option<String> {
    let document: DocumentMut = text.parse().expect("TOML");
    let item = match place.split_once('.') {
        Some((section, name)) => document.get(section).and_then(|it| it.get(name)),
        None => document.get(place),
    };
    item.map(|item: &Item| item.to_string().trim().to_owned())
}

pub(crate) fn config(texts: &Texts) -> &str {
    texts.config.as_deref().expect("a config.toml")
}

pub(crate) fn app(texts: &Texts) -> &str {
    texts.app.as_deref().expect("an app.toml")
}
