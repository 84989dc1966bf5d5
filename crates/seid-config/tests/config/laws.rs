//! Laws over random intents, files and patches.

use std::collections::BTreeMap;

use keelson_seid_config::{
    ApplyError, File, Intent, Kind, Mode, Texts, apply, patch, read, render,
};
use keelson_seid_config::{schema, validate};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value};

use super::world::{config, host};

/// A text that most keys of this kind understand, and now and then one that they do not.
fn text_for(kind: Kind) -> BoxedStrategy<String> {
    match kind {
        Kind::Text => "[ -~]{0,12}".boxed(),
        Kind::Bool => select(vec!["true", "false", "1", "no"])
            .prop_map(str::to_owned)
            .boxed(),
        Kind::Int { min, max } => {
            let small = min.max(-5)..=max.min(100_000);
            prop_oneof![
                small.prop_map(|n| n.to_string()),
                (min..=max).prop_map(|n| n.to_string())
            ]
            .boxed()
        }
        Kind::Float => (0.0..=1.0_f64).prop_map(|n| n.to_string()).boxed(),
        Kind::Duration => "[1-9][0-9]{0,3}(ms|s|m|h)".boxed(),
        _ => "[a-z:0-9]{1,5}(,[a-z:0-9]{1,5}){0,2}".boxed(),
    }
}

fn overridable() -> Vec<&'static schema::Field> {
    let settable = |it: &&schema::Field| !matches!(it.kind, Kind::Labels | Kind::OptionalBool);
    schema::fields().filter(settable).collect()
}

fn some_overrides() -> impl Strategy<Value = BTreeMap<String, String>> {
    let one = select(overridable())
        .prop_flat_map(|field| text_for(field.kind).prop_map(|text| (field.key.to_owned(), text)));
    vec(one, 0..6).prop_map(|pairs| pairs.into_iter().collect())
}

fn intents() -> impl Strategy<Value = Intent> {
    (select(&Mode::ALL[..]), some_overrides()).prop_map(|(mode, overrides)| Intent {
        mode: mode.to_string(),
        overrides,
        ..Intent::default()
    })
}

/// Files with remarks and foreign names in them, beside names of ours.
fn files() -> impl Strategy<Value = Texts> {
    let line = select(vec![
        "# a remark\n",
        "foreign = 1 # mine\n",
        "moniker = 'x' # who\n",
        "\n",
        "mode = \"seed\"\n",
    ]);
    let section = select(vec![
        "\n# above\n[p2p] # beside\npex = \"true\"\nforeign-peer = [ 1,\n 2 ]\n",
        "[mine]\n  deep.name = { a = 1 }\n",
        "[[rows]]\nx = 1\n[[rows]]\nx = 2\n",
        "[statesync]\nrpc-servers = \"a,b\" # two\n# tail\n",
    ]);
    let text = (
        vec(line, 0..4),
        proptest::sample::subsequence(vec![0, 1, 2, 3], 0..4),
        vec(section, 4),
    )
        .prop_map(|(lines, places, sections)| {
            let mut used: Vec<&str> = Vec::new();
            let mut text = String::new();
            let mut named: Vec<&str> = Vec::new();
            for line in lines {
                let name = line.split(' ').next().unwrap_or(line);
                if line.contains('=') && named.contains(&name) {
                    continue;
                }
                named.push(name);
                text.push_str(line);
            }
            for place in places {
                if !used.contains(&sections[place]) {
                    used.push(sections[place]);
                    text.push_str(sections[place]);
                }
            }
            text
        });
    (text.clone(), text).prop_map(|(config, app)| Texts {
        config: Some(config),
        app: Some(app.replace("mode = \"seed\"\n", "")),
        client: None,
    })
}

fn json_values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        2 => any::<bool>().prop_map(Value::from),
        4 => any::<i64>().prop_map(Value::from),
        2 => (-1e9..1e9_f64).prop_map(Value::from),
        4 => "[a-z\"'\\\\ #\n]{0,8}".prop_map(Value::from),
        2 => vec(any::<i32>(), 0..3).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        btree_map(
            select(vec!["p2p", "pex", "moniker", "mine", "new", "a b"]),
            inner,
            0..4,
        )
        .prop_map(|map| Value::Object(map.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()))
    })
}

fn patches() -> impl Strategy<Value = Map<String, Value>> {
    json_values().prop_map(|value| match value {
        Value::Object(map) => map,
        other => Map::from_iter([("moniker".to_owned(), other)]),
    })
}

fn remarks(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| line.trim_start().starts_with('#'))
        .collect()
}

/// A text as plain values, to compare what two texts mean.
fn meaning(text: &str) -> BTreeMap<String, String> {
    fn collect(prefix: &str, item: &toml_edit::Item, into: &mut BTreeMap<String, String>) {
        match item.as_table_like() {
            Some(table) => {
                into.insert(prefix.to_owned(), "section".into());
                for (key, item) in table.iter() {
                    collect(&format!("{prefix}/{key}"), item, into);
                }
            }
            None => {
                let mut value = item.clone();
                if let Some(value) = value.as_value_mut() {
                    value.decor_mut().clear();
                }
                into.insert(prefix.to_owned(), value.to_string());
            }
        }
    }
    let document: toml_edit::DocumentMut = text.parse().expect("TOML");
    let mut values = BTreeMap::new();
    collect("", document.as_item(), &mut values);
    values
}

proptest! {
    #[test]
    fn applying_twice_is_applying_once(intent in intents(), files in files()) {
        match apply(&intent, &host(), &files) {
            Ok(once) => {
                let twice = apply(&intent, &host(), &once.texts).expect("the same again");
                prop_assert_eq!(&once.texts, &twice.texts);
                prop_assert!(validate(&once.settings).valid);
            }
            Err(ApplyError::Invalid(found)) => prop_assert!(!found.is_empty()),
            Err(other) => prop_assert!(false, "{}", other),
        }
    }

    #[test]
    fn what_is_applied_does_not_depend_on_what_was_there(intent in intents(), files in files()) {
        if let Ok(fresh) = apply(&intent, &host(), &Texts::default()) {
            let edited = apply(&intent, &host(), &files).expect("files that exist change nothing");
            prop_assert_eq!(&fresh.settings, &edited.settings);
            prop_assert_eq!(read(&fresh.texts), read(&edited.texts));
        }
    }

    #[test]
    fn remarks_and_foreign_names_survive(intent in intents(), files in files()) {
        if let Ok(applied) = apply(&intent, &host(), &files) {
            let (before, after) = (config(&files), config(&applied.texts));
            prop_assert_eq!(remarks(before), remarks(after));
            let (before, after) = (meaning(before), meaning(after));
            for (place, value) in before.iter().filter(|(place, _)| {
                ["/foreign", "/mine", "/rows", "/p2p/foreign"].iter().any(|it| place.starts_with(it))
            }) {
                prop_assert_eq!(after.get(place), Some(value), "{}", place);
            }
        }
    }

    #[test]
    fn what_is_rendered_is_read_back(intent in intents()) {
        if let Ok(applied) = apply(&intent, &host(), &Texts::default()) {
            let back = read(&applied.texts).expect("readable");
            let again = render(&back, &Texts::default()).expect("files");
            prop_assert_eq!(&again.config, &applied.texts.config);
            prop_assert_eq!(&again.app, &applied.texts.app);
        }
    }

    #[test]
    fn overrides_in_one_step_or_in_several_in_any_order_are_the_same(
        overrides in some_overrides(),
        backwards: bool,
    ) {
        let base = apply(&super::world::intent(Mode::Full, &[]), &host(), &Texts::default());
        let mut texts = base.expect("defaults").texts;
        let at_once = Intent { overrides: overrides.clone(), incremental: true, ..Intent::default() };
        let Ok(whole) = apply(&at_once, &host(), &texts) else { return Ok(()) };
        let mut steps: Vec<_> = overrides.into_iter().collect();
        if backwards {
            steps.reverse();
        }
        for step in steps {
            let step = Intent { overrides: [step].into(), incremental: true, ..Intent::default() };
            // A step may be invalid alone where the whole is not; then there is nothing to compare.
            let Ok(applied) = apply(&step, &host(), &texts) else { return Ok(()) };
            texts = applied.texts;
        }
        prop_assert_eq!(meaning(config(&texts)), meaning(config(&whole.texts)));
        prop_assert_eq!(read(&texts), read(&whole.texts));
    }

    #[test]
    fn patching_twice_is_patching_once(files in files(), changes in patches()) {
        let once = patch(File::Config, files.config.as_deref(), &changes).expect("a patch that fits");
        let twice = patch(File::Config, Some(&once), &changes).expect("the same again");
        prop_assert_eq!(once, twice);
    }

    #[test]
    fn a_patch_means_what_the_standard_says(changes in patches(), first in patches()) {
        let text = patch(File::App, None, &first).expect("a patch that fits");
        let text = patch(File::App, Some(&text), &changes).expect("a patch that fits");
        let mut model = Value::Object(Map::new());
        merge_patch(&mut model, &Value::Object(first));
        merge_patch(&mut model, &Value::Object(changes));
        let fresh = patch(File::App, None, model.as_object().expect("an object")).expect("fits");
        prop_assert_eq!(meaning(&text), meaning(&fresh));
    }

    #[test]
    fn patches_of_different_names_may_come_in_any_order(a in json_values(), b in json_values(), files in files()) {
        let a = Map::from_iter([("left".to_owned(), a)]);
        let b = Map::from_iter([("right".to_owned(), b)]);
        let of = |first, second| {
            let once = patch(File::Config, files.config.as_deref(), first).expect("fits");
            patch(File::Config, Some(&once), second).expect("fits")
        };
        prop_assert_eq!(meaning(&of(&a, &b)), meaning(&of(&b, &a)));
    }
}

/// RFC 7386, as the standard writes it.
fn merge_patch(target: &mut Value, patch: &Value) {
    let Value::Object(changes) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let fields = target.as_object_mut().expect("an object");
    for (name, change) in changes {
        if change.is_null() {
            fields.shift_remove(name);
        } else {
            merge_patch(fields.entry(name.clone()).or_insert(Value::Null), change);
        }
    }
}
