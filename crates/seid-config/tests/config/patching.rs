//! Merge patches: what they change, what they leave, and which are refused.

use keelson_seid_config::{BadPatch, File, Texts, patch, patch_files};
use serde_json::{Map, Value, json};

fn object(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

fn patched(text: &str, changes: Value) -> String {
    patch(File::Config, Some(text), &object(changes)).expect("a patch that fits")
}

#[test]
fn a_patch_changes_what_it_names_and_keeps_the_rest_to_the_letter() {
    let text =
        "# head\na = 1 # one\n\n[p2p] # peers\n# who\npersistent-peers = \"\" # none yet\nx='y'\n";
    assert_eq!(
        patched(
            text,
            json!({"p2p": {"persistent-peers": "a@b:1", "new": true}})
        ),
        "# head\na = 1 # one\n\n[p2p] # peers\n# who\npersistent-peers = \"a@b:1\" # none yet\nx='y'\nnew = true\n"
    );
    assert_eq!(
        patched(text, json!({"p2p": {"x": "y"}})),
        text,
        "the same in other quotes"
    );
    assert_eq!(patched(text, json!({})), text);
}

#[test]
fn null_takes_out_a_scalar_replaces_a_section_and_a_section_a_scalar() {
    assert_eq!(
        patched("a = 1\nb = 2\n", json!({"a": null, "c": null})),
        "b = 2\n"
    );
    assert_eq!(patched("[s]\na = 1\n", json!({"s": null})), "");
    assert_eq!(patched("[s]\na = 1\n", json!({"s": 5})), "s = 5\n");
    let made = patched("s = 5\n", json!({"s": {"t": {"u": 1}}}));
    assert_eq!(
        made.parse::<toml_edit::DocumentMut>().expect("TOML")["s"]["t"]["u"].as_integer(),
        Some(1)
    );
    assert_eq!(
        patched("s = { a = 1 }\n", json!({"s": {"b": {"c": 2}}})),
        "s = { a = 1 , b = { c = 2 } }\n"
    );
}

#[test]
fn numbers_keep_their_type() {
    let text = patched(
        "",
        json!({"whole": 5000, "big": 9007199254740993_i64, "real": 5000.0, "neg": -1, "list": [1, 2.5, "x"]}),
    );
    assert_eq!(
        text,
        "whole = 5000\nbig = 9007199254740993\nreal = 5000.0\nneg = -1\nlist = [1, 2.5, \"x\"]\n"
    );
}

#[test]
fn no_null_is_ever_written() {
    let text = patched(
        "",
        json!({"new": {"a": null, "b": {"c": null}}, "rows": [{"x": null, "y": 1}]}),
    );
    assert_eq!(text, "rows = [{ y = 1 }]\n\n[new]\n\n[new.b]\n");
}

#[test]
fn several_files_are_patched_at_once_and_a_missing_one_is_made() {
    let texts = Texts {
        config: Some("a = 1\n".into()),
        app: Some("b = 2\n".into()),
        client: None,
    };
    let files = json!({"config.toml": {"a": 3}, "client.toml": {"chain-id": "x"}});
    let after = patch_files(&texts, &object(files)).expect("patches that fit");
    assert_eq!(after.config.as_deref(), Some("a = 3\n"));
    assert_eq!(after.app, texts.app);
    assert_eq!(after.client.as_deref(), Some("chain-id = \"x\"\n"));
}

#[test]
fn the_patch_of_the_store_migration_fits_a_real_file() {
    let app = super::world::new(keelson_seid_config::Mode::Full, &[]).texts;
    let files = json!({"app.toml": {
        "state-store": {"ss-enable": true, "evm-ss-split": true, "ss-backend": "rocksdb"},
        "state-commit": {"sc-enable": true},
    }});
    let after = patch_files(&app, &object(files)).expect("a patch that fits");
    let (before, after) = (app.app.expect("app.toml"), after.app.expect("app.toml"));
    assert_eq!(
        before.replace("ss-backend = \"pebbledb\"", "ss-backend = \"rocksdb\""),
        after
    );
}

#[test]
fn a_patch_that_means_nothing_is_refused_and_changes_no_file() {
    for (files, sentence) in [
        (json!({}), "at least one file is required"),
        (
            json!({"../evil.toml": {}}),
            "\"../evil.toml\" is not a file of the configuration",
        ),
        (
            json!({"genesis.json": {}}),
            "use app.toml, client.toml or config.toml",
        ),
        (
            json!({"app.toml": 5}),
            "the patch of app.toml is not an object",
        ),
        (
            json!({"app.toml": null}),
            "the patch of app.toml is not an object",
        ),
        (
            json!({"app.toml": {"s": {"l": [null]}}}),
            "s.l in app.toml has a null inside a list",
        ),
        (
            json!({"app.toml": {"n": u64::MAX}}),
            "n in app.toml is a number beyond what TOML",
        ),
    ] {
        let error = patch_files(&Texts::default(), &object(files)).expect_err(sentence);
        let text = error.to_string();
        assert!(text.starts_with("config-patch: "), "{text}");
        assert!(text.contains(sentence), "{text}");
    }
    let broken = patch(File::App, Some("= 1"), &Map::new()).expect_err("no TOML");
    assert!(matches!(broken, BadPatch::Unreadable(_)), "{broken}");
}
