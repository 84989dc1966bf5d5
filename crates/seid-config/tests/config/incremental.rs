//! Incremental intents: only what is asked for changes.

use keelson_seid_config::{ApplyError, Intent, Mode, Texts, Unreadable, apply};

use super::world::{app, at, config, host, increment, new};

fn lines_that_differ(a: &str, b: &str) -> Vec<(String, String)> {
    let pairs = a.lines().zip(b.lines()).filter(|(a, b)| a != b);
    pairs.map(|(a, b)| (a.to_owned(), b.to_owned())).collect()
}

#[test]
fn only_the_line_that_is_asked_for_changes() {
    let before = new(Mode::Archive, &[("network.p2p.persistent_peers", "a@b:1")]).texts;
    let intent = increment(&[("evm.http_port", "9545")]);
    let after = apply(&intent, &host(), &before).expect("files").texts;
    assert_eq!(after.config, before.config);
    assert_eq!(after.client, before.client);
    assert_eq!(
        lines_that_differ(app(&before), app(&after)),
        [("http_port = 8545".to_owned(), "http_port = 9545".to_owned())]
    );
}

#[test]
fn a_sparse_file_gets_no_zeros() {
    let sparse = Texts {
        config: Some("log-format = \"plain\" # mine\nunknown = 1\n".into()),
        app: Some("minimum-gas-prices = \"1usei\"\npruning = \"nothing\"\n".into()),
        client: None,
    };
    let intent = increment(&[("logging.level", "debug"), ("metrics.enabled", "false")]);
    let after = apply(&intent, &host(), &sparse).expect("files").texts;
    assert_eq!(
        config(&after),
        "log-format = \"plain\" # mine\nunknown = 1\nlog-level = \"debug\"\n\n\
         [instrumentation]\nprometheus = false\n"
    );
    assert_eq!(
        app(&after),
        "minimum-gas-prices = \"1usei\"\npruning = \"nothing\"\n\n[telemetry]\nenabled = false\n"
    );
}

#[test]
fn the_mode_may_change_and_brings_no_defaults() {
    let before = new(Mode::Full, &[]).texts;
    let intent = Intent {
        mode: "archive".into(),
        ..increment(&[])
    };
    let after = apply(&intent, &host(), &before).expect("files").texts;
    assert_eq!(
        config(&after),
        config(&before),
        "an archive is full to config.toml"
    );
    assert_eq!(at(app(&after), "sei.mode").as_deref(), Some("\"archive\""));
    assert_eq!(at(app(&after), "pruning").as_deref(), Some("\"custom\""));
    assert_eq!(lines_that_differ(app(&before), app(&after)).len(), 1);
}

#[test]
fn an_intent_that_asks_for_nothing_changes_nothing() {
    let before = new(Mode::Seed, &[]).texts;
    let applied = apply(&increment(&[]), &host(), &before).expect("files");
    assert_eq!(applied.texts, before);
    assert_eq!(applied.settings.mode(), "seed");
}

#[test]
fn what_is_on_disk_is_checked_with_what_is_asked_for() {
    let before = new(Mode::Seed, &[]).texts;
    let refused = apply(
        &increment(&[("network.p2p.pex", "false")]),
        &host(),
        &before,
    );
    assert!(
        matches!(refused, Err(ApplyError::Invalid(_))),
        "{refused:?}"
    );
    let unknown = Intent {
        mode: "rpc".into(),
        ..increment(&[])
    };
    let refused = apply(&unknown, &host(), &before).expect_err("an unknown mode");
    assert!(
        refused
            .to_string()
            .starts_with("config validation failed: "),
        "{refused}"
    );
}

#[test]
fn files_from_a_later_schema_are_refused_unless_it_is_the_target() {
    let intent = Intent {
        target_version: 7,
        ..super::world::intent(Mode::Full, &[])
    };
    let later = apply(&intent, &host(), &Texts::default())
        .expect("files")
        .texts;
    let refused = apply(&increment(&[]), &host(), &later).expect_err("a later version");
    assert!(
        refused
            .to_string()
            .contains("version 7 is not between 1 and 2"),
        "{refused}"
    );
    let aware = Intent {
        target_version: 7,
        ..increment(&[])
    };
    assert!(apply(&aware, &host(), &later).is_ok());
}

#[test]
fn without_files_there_is_nothing_to_change() {
    let refused = apply(&increment(&[]), &host(), &Texts::default());
    let missing = Unreadable::Missing(keelson_seid_config::File::Config);
    assert_eq!(refused, Err(ApplyError::Unreadable(missing)));
}
