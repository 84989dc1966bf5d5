//! The tasks of the configuration files.

use super::stage::Sidecar;
use serde_json::{Value, json};

fn file(sidecar: &Sidecar, name: &str) -> String {
    std::fs::read_to_string(sidecar.home.join("config").join(name)).expect("a file")
}

fn fails(sidecar: &Sidecar, type_: &str, params: Value) -> String {
    let task = sidecar.perform(type_, params);
    assert_eq!(task["status"], "failed", "{task}");
    assert_eq!(task["result"]["retryable"], false, "{task}");
    task["error"].as_str().expect("an error").to_owned()
}

#[test]
fn config_apply_writes_both_files_for_every_mode_and_they_are_valid() {
    let sidecar = Sidecar::start("apply");
    for mode in ["validator", "full", "seed", "archive"] {
        let overrides = json!({"logging.level": "debug"});
        sidecar.completes(
            "config-apply",
            json!({"mode": mode, "overrides": overrides}),
        );
        assert!(
            file(&sidecar, "app.toml").contains(&format!("mode = \"{mode}\"")),
            "{mode}"
        );
        assert!(file(&sidecar, "config.toml").contains("log-level = \"debug\""));
        sidecar.completes("config-validate", json!({}));
    }
    let config = file(&sidecar, "config.toml");
    assert!(config.contains("genesis-file"), "{config}");
}

#[test]
fn config_apply_refuses_what_makes_no_sense_and_writes_nothing() {
    let sidecar = Sidecar::start("apply-bad");
    for (params, wanted) in [
        (json!({}), "config-apply: a mode is required"),
        (json!({"mode": "rpc"}), "config-apply: invalid mode \"rpc\""),
        (
            json!({"mode": "full", "overrides": {"logging.levle": "x"}}),
            "did you mean \"logging.level\"?",
        ),
        (
            json!({"mode": "seed", "overrides": {"network.p2p.pex": "false"}}),
            "config validation failed: [{\"severity\":\"ERROR\"",
        ),
        (
            json!({"mode": "full", "incremental": true}),
            "config.toml does not exist",
        ),
    ] {
        let error = fails(&sidecar, "config-apply", params);
        assert!(error.contains(wanted), "{error}");
        assert!(
            error.starts_with("config-apply: ") && !error.contains("config-apply: config-apply")
        );
    }
    let left = std::fs::read_dir(sidecar.home.join("config"))
        .expect("a folder")
        .count();
    assert_eq!(left, 0);
}

#[test]
fn an_incremental_config_apply_changes_what_is_asked_and_nothing_else() {
    let sidecar = Sidecar::start("incremental");
    sidecar.completes("config-apply", json!({"mode": "archive"}));
    let before = (file(&sidecar, "config.toml"), file(&sidecar, "app.toml"));
    let overrides = json!({"network.p2p.external_address": "a:1"});
    sidecar.completes(
        "config-apply",
        json!({"incremental": true, "overrides": overrides}),
    );
    let wanted = before
        .0
        .replace("external-address = \"\"", "external-address = \"a:1\"");
    assert_eq!(file(&sidecar, "config.toml"), wanted);
    assert_eq!(file(&sidecar, "app.toml"), before.1);
}

#[test]
fn config_patch_merges_several_files_and_keeps_numbers_whole() {
    let sidecar = Sidecar::start("patch");
    let app = sidecar.home.join("config/app.toml");
    std::fs::write(&app, "# mine\na = 1\ngone = 2\n[s]\nkept = true\n").expect("a file");
    let patch = json!({"files": {
        "app.toml": {"a": 5000, "gone": null, "s": {"new": "x"}, "t": {"u": {"v": [1, 2]}}},
        "client.toml": {"chain-id": "c"},
    }});
    sidecar.completes("config-patch", patch);
    let text = file(&sidecar, "app.toml");
    assert!(text.starts_with("# mine\na = 5000\n"), "{text}");
    assert!(!text.contains("gone") && text.contains("kept = true") && text.contains("new = \"x\""));
    assert!(text.contains("v = [1, 2]"), "{text}");
    assert!(file(&sidecar, "client.toml").contains("chain-id = \"c\""));
}

#[test]
fn config_patch_touches_no_other_file_and_all_of_them_or_none() {
    let sidecar = Sidecar::start("patch-bad");
    let app = sidecar.home.join("config/app.toml");
    std::fs::write(&app, "a = 1\n").expect("a file");
    for (files, wanted) in [
        (json!({}), "at least one file is required"),
        (
            json!({"app.toml": {"a": 2}, "../../evil.toml": {"a": 1}}),
            "is not a file of the configuration",
        ),
        (
            json!({"app.toml": {"a": 2}, "genesis.json": {"a": 1}}),
            "is not a file of the configuration",
        ),
        (
            json!({"app.toml": {"a": 2}, "config.toml": "x"}),
            "is not an object",
        ),
    ] {
        let task = sidecar.perform("config-patch", json!({"files": files}));
        assert_eq!(task["status"], "failed", "{task}");
        let error = task["error"].as_str().expect("an error");
        assert!(error.contains(wanted), "{error}");
        assert_eq!(file(&sidecar, "app.toml"), "a = 1\n");
    }
    assert!(!sidecar.home.join("../evil.toml").exists());
}

#[test]
fn config_validate_fails_for_files_that_are_missing_or_wrong() {
    let sidecar = Sidecar::start("validate");
    let error = fails(&sidecar, "config-validate", json!({}));
    assert!(error.contains("config.toml does not exist"), "{error}");
    sidecar.completes("config-apply", json!({"mode": "full"}));
    sidecar.completes("config-validate", json!({}));
    sidecar.completes(
        "config-patch",
        json!({"files": {"app.toml": {"pruning": "sometimes"}}}),
    );
    let error = fails(&sidecar, "config-validate", json!({}));
    assert!(
        error.contains("config validation failed: {\"valid\":false"),
        "{error}"
    );
}

#[test]
fn patches_at_once_lose_nothing() {
    let sidecar = Sidecar::start("patches");
    std::thread::scope(|threads| {
        for thread in 0..6 {
            let sidecar = &sidecar;
            threads.spawn(move || {
                for index in 0..5 {
                    let key = format!("k{thread}-{index}");
                    let patch = json!({"files": {"app.toml": {"many": {key: index}}}});
                    sidecar.completes("config-patch", patch);
                }
            });
        }
    });
    let text = file(&sidecar, "app.toml");
    for thread in 0..6 {
        for index in 0..5 {
            assert!(
                text.contains(&format!("k{thread}-{index} = {index}")),
                "{text}"
            );
        }
    }
}
