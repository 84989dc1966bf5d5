//! An intent as a patch: every key it decides, for files that are already there.
//!
//! A patch of the overrides alone would leave an override that was taken back where it is. So the
//! patch has every key, with its default where nobody asks for anything else. What is the machine's
//! (its name, what follows from its number of CPUs) and what other tasks write (peers, state sync) is
//! left as it is.

use serde_json::{Map, Value as Json};
use toml_edit::{DocumentMut, Item, Value};

use crate::Texts;
use crate::host::Host;
use crate::intent::{ApplyError, Intent, apply};
use crate::schema::File;

/// Where other tasks write, as a path in `config.toml`, with the key of an override that would.
const OF_OTHERS: [(&[&str], &str); 2] = [
    (&["p2p", "persistent-peers"], "network.p2p.persistent_peers"),
    (&["statesync"], "state_sync."),
];

/// Every key an intent decides, by file.
pub fn whole(intent: &Intent) -> Result<Map<String, Json>, ApplyError> {
    let [one, other] = [("a", 4), ("b", 64)].map(|(name, cpus)| Host {
        name: name.to_owned(),
        cpus,
    });
    let here = apply(intent, &one, &Texts::default())?.texts;
    let there = apply(intent, &other, &Texts::default())?.texts;
    let mut files = Map::new();
    for file in [File::Config, File::App] {
        let (mut tree, elsewhere) = (tree(here.get(file)), tree(there.get(file)));
        keep_same(&mut tree, &elsewhere);
        if file == File::Config {
            for (path, key) in OF_OTHERS {
                if !intent.overrides.keys().any(|name| name.starts_with(key)) {
                    remove(&mut tree, path);
                }
            }
        }
        files.insert(file.name().to_owned(), Json::Object(tree));
    }
    Ok(files)
}

fn tree(text: Option<&str>) -> Map<String, Json> {
    let document = text.and_then(|text| text.parse::<DocumentMut>().ok());
    let entries = document.into_iter().flat_map(|document| {
        let table = document.as_table().clone();
        table
            .into_iter()
            .filter_map(|(name, item)| Some((name.to_string(), json(&item)?)))
            .collect::<Vec<_>>()
    });
    entries.collect()
}

fn json(item: &Item) -> Option<Json> {
    match item {
        Item::Value(value) => value_json(value),
        Item::Table(table) => {
            let fields = table.iter();
            let fields = fields.filter_map(|(name, item)| Some((name.to_owned(), json(item)?)));
            Some(Json::Object(fields.collect()))
        }
        // Lists of tables are no part of any file of ours.
        Item::None | Item::ArrayOfTables(_) => None,
    }
}

fn value_json(value: &Value) -> Option<Json> {
    Some(match value {
        Value::String(text) => Json::from(text.value().as_str()),
        Value::Integer(number) => Json::from(*number.value()),
        Value::Float(number) => Json::from(*number.value()),
        Value::Boolean(flag) => Json::from(*flag.value()),
        Value::Array(entries) => entries.iter().filter_map(value_json).collect(),
        Value::InlineTable(_) | Value::Datetime(_) => return None,
    })
}

/// Keeps what is the same in both.
fn keep_same(tree: &mut Map<String, Json>, other: &Map<String, Json>) {
    tree.retain(|name, value| match (value, other.get(name)) {
        (Json::Object(fields), Some(Json::Object(others))) => {
            keep_same(fields, others);
            true
        }
        (value, Some(other)) => value == other,
        (_, None) => false,
    });
}

fn remove(tree: &mut Map<String, Json>, path: &[&str]) {
    match path {
        [] => {}
        [name] => {
            tree.remove(*name);
        }
        [name, rest @ ..] => {
            if let Some(Json::Object(fields)) = tree.get_mut(*name) {
                remove(fields, rest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{patch_files, persistent_peers};

    fn intent(overrides: &[(&str, &str)]) -> Intent {
        let overrides = overrides.iter();
        Intent {
            mode: "full".to_owned(),
            overrides: overrides
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect(),
            ..Intent::default()
        }
    }

    #[test]
    fn an_override_that_is_taken_back_becomes_the_default_and_peers_stay() {
        let host = Host {
            name: "node-0".to_owned(),
            cpus: 7,
        };
        let with = intent(&[
            ("network.p2p.max_connections", "7"),
            ("chain.moniker", "me"),
        ]);
        let written = apply(&with, &host, &Texts::default()).expect("files").texts;
        let peers = Map::from_iter([(
            "config.toml".to_owned(),
            Json::Object(persistent_peers(["id@host:1"])),
        )]);
        let written = patch_files(&written, &peers).expect("peers");

        let without = intent(&[("chain.moniker", "me")]);
        let patched = patch_files(&written, &whole(&without).expect("patch")).expect("patched");

        let expected = apply(&without, &host, &Texts::default())
            .expect("files")
            .texts;
        let expected = patch_files(&expected, &peers).expect("peers");
        assert_eq!(patched.config, expected.config);
        assert_eq!(patched.app, expected.app);
        assert_ne!(patched.config, written.config);
    }
}
