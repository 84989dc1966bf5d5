//! Overrides: what each kind of key understands, and what is said of the rest.

use keelson_seid_config::{ApplyError, Intent, Mode, Texts, apply, check_intent};
use keelson_seid_config::{Severity, snapshot_generation};

use super::world::{app, at, config, host, intent, new};

fn refused(mode: Mode, pairs: &[(&str, &str)]) -> String {
    let refused = apply(&intent(mode, pairs), &host(), &Texts::default());
    refused.expect_err("an intent that is refused").to_string()
}

#[test]
fn each_kind_of_value_lands_in_its_file() {
    for (key, text, place, written) in [
        ("logging.level", "debug", "log-level", r#""debug""#),
        (
            "network.p2p.external_address",
            "h:26656",
            "p2p.external-address",
            r#""h:26656""#,
        ),
        ("network.p2p.upnp", "YES", "p2p.upnp", "true"),
        ("network.p2p.pex", "0", "p2p.pex", "false"),
        (
            "network.p2p.max_connections",
            "65535",
            "p2p.max-connections",
            "65535",
        ),
        ("network.p2p.send_rate", "+5", "p2p.send-rate", "5"),
        (
            "mempool.drop_priority_threshold",
            "0.75",
            "mempool.drop-priority-threshold",
            "0.75",
        ),
        (
            "mempool.drop_priority_threshold",
            "1",
            "mempool.drop-priority-threshold",
            "1.0",
        ),
        (
            "state_sync.trust_period",
            "9h",
            "statesync.trust-period",
            r#""9h0m0s""#,
        ),
        (
            "state_sync.rpc_servers",
            "a:1, b:2",
            "statesync.rpc-servers",
            r#""a:1,b:2""#,
        ),
        (
            "tx_index.indexer",
            " kv , psql ",
            "tx-index.indexer",
            r#"["kv", "psql"]"#,
        ),
        ("tx_index.indexer", "", "tx-index.indexer", "[]"),
        (
            "metrics.enabled",
            "false",
            "instrumentation.prometheus",
            "false",
        ),
    ] {
        let texts = new(Mode::Full, &[(key, text)]).texts;
        assert_eq!(
            at(config(&texts), place).as_deref(),
            Some(written),
            "{key}={text}"
        );
    }
    for (key, text, place, written) in [
        ("chain.halt_height", "999999", "halt-height", "999999"),
        (
            "chain.concurrency_workers",
            "-1",
            "concurrency-workers",
            "-1",
        ),
        ("chain.index_events", "", "index-events", "[]"),
        (
            "storage.state_commit.write_mode",
            "flatkv_only",
            "state-commit.sc-write-mode",
            r#""flatkv_only""#,
        ),
        ("metrics.enabled", "false", "telemetry.enabled", "false"),
        ("evm.http_port", "9545", "evm.http_port", "9545"),
        (
            "storage.receipt_store.backend",
            "parquet",
            "receipt-store.rs-backend",
            r#""parquet""#,
        ),
    ] {
        let texts = new(Mode::Full, &[(key, text)]).texts;
        assert_eq!(
            at(app(&texts), place).as_deref(),
            Some(written),
            "{key}={text}"
        );
    }
    let unsplit = new(Mode::Full, &[("storage.state_store.evm_ss_split", "false")]).texts;
    assert_eq!(at(app(&unsplit), "state-store.evm-ss-split"), None);
}

#[test]
fn a_value_its_key_cannot_have_is_refused_with_the_reason() {
    for (key, text, sentence) in [
        (
            "network.p2p.pex",
            "maybe",
            r#""maybe" is not true or false"#,
        ),
        (
            "evm.http_port",
            "not_a_number",
            r#""not_a_number" is not a whole number"#,
        ),
        ("evm.http_port", "8545x", r#""8545x" is not a whole number"#),
        ("evm.http_port", " 8545", "is not a whole number"),
        ("evm.http_port", "", "is not a whole number"),
        (
            "network.p2p.max_connections",
            "70000",
            "70000 is out of range: use a number from 0 to 65535",
        ),
        (
            "state_sync.fetchers",
            "3000000000",
            "use a number from -2147483648 to 2147483647",
        ),
        (
            "chain.halt_height",
            "-1",
            "-1 is out of range: use a number from 0",
        ),
        (
            "chain.halt_height",
            "18446744073709551615",
            "is out of range",
        ),
        (
            "mempool.drop_priority_threshold",
            "much",
            r#""much" is not a number"#,
        ),
        (
            "mempool.drop_priority_threshold",
            "NaN",
            r#""NaN" is not a number"#,
        ),
        ("evm.read_timeout", "30", r#""30" is not a duration"#),
        ("tx_index.indexer", "kv,,psql", "has an empty entry"),
        ("tx_index.indexer", "kv,", "has an empty entry"),
        (
            "metrics.global_labels",
            "a=b",
            "an override cannot set it: use config-patch",
        ),
        (
            "consensus.unsafe_bypass_commit_timeout_override",
            "true",
            "an override cannot set it",
        ),
    ] {
        let error = refused(Mode::Full, &[(key, text)]);
        let head = format!("config-apply: applying overrides: override {key} is refused: ");
        assert!(error.starts_with(&head), "{error}");
        assert!(error.contains(sentence), "{error}");
    }
}

#[test]
fn an_unknown_key_is_refused_with_the_nearest_one_and_all_faults_are_named_at_once() {
    assert_eq!(
        refused(Mode::Full, &[("network.p2p.persistent-peers", "x")]),
        "config-apply: applying overrides: unknown override key \"network.p2p.persistent-peers\"; \
         did you mean \"network.p2p.persistent_peers\"?"
    );
    assert_eq!(
        refused(Mode::Full, &[("totally.fake.key", "x")]),
        "config-apply: applying overrides: unknown override key \"totally.fake.key\""
    );
    let both = refused(Mode::Full, &[("evm.htp_port", "1"), ("evm.ws_port", "x")]);
    assert!(
        both.contains("did you mean \"evm.http_port\"?; override evm.ws_port"),
        "{both}"
    );
}

#[test]
fn a_node_without_a_mode_or_with_an_unknown_one_gets_no_files() {
    let of = |mode: &str| Intent {
        mode: mode.into(),
        ..Intent::default()
    };
    let error = |mode| apply(&of(mode), &host(), &Texts::default()).expect_err("no mode");
    assert_eq!(error(""), ApplyError::ModeMissing);
    assert_eq!(
        error("rpc").to_string(),
        "config-apply: invalid mode \"rpc\": use validator, full, seed or archive"
    );
}

#[test]
fn the_target_version_is_what_is_stamped() {
    for (asked, stamped) in [(0, "2"), (-3, "2"), (1, "1"), (2, "2"), (7, "7")] {
        let intent = Intent {
            target_version: asked,
            ..intent(Mode::Archive, &[])
        };
        let texts = apply(&intent, &host(), &Texts::default())
            .expect("files")
            .texts;
        assert_eq!(
            at(app(&texts), "sei.version").as_deref(),
            Some(stamped),
            "{asked}"
        );
    }
}

#[test]
fn an_intent_is_checked_before_it_is_submitted() {
    assert!(check_intent(&intent(Mode::Seed, &[("logging.level", "info")])).valid);
    let nothing = Intent::default();
    assert_eq!(check_intent(&nothing).diagnostics[0].field, "mode");
    assert!(
        check_intent(&Intent {
            incremental: true,
            ..nothing
        })
        .valid
    );

    let bad = Intent {
        mode: "indexer".into(),
        target_version: 3,
        ..intent(Mode::Full, &[("no.such", "1"), ("evm.ws_port", "x")])
    };
    let report = check_intent(&bad);
    let fields: Vec<_> = report
        .diagnostics
        .iter()
        .map(|it| it.field.as_str())
        .collect();
    assert_eq!(
        fields,
        [
            "mode",
            "targetVersion",
            "overrides.evm.ws_port",
            "overrides.no.such"
        ]
    );
    assert!(
        report
            .diagnostics
            .iter()
            .all(|it| it.severity == Severity::Error)
    );
    assert!(!report.valid);
    assert_eq!((report.version, report.mode.as_str()), (3, "indexer"));
}

#[test]
fn the_overrides_of_a_node_that_makes_snapshots_are_accepted() {
    let intent = Intent {
        overrides: snapshot_generation(5),
        ..intent(Mode::Full, &[])
    };
    let texts = apply(&intent, &host(), &Texts::default())
        .expect("files")
        .texts;
    for (place, written) in [
        ("state-sync.snapshot-interval", "2000"),
        ("state-sync.snapshot-keep-recent", "5"),
        ("pruning-keep-recent", r#""50000""#),
        ("pruning-keep-every", r#""0""#),
        ("min-retain-blocks", "50000"),
    ] {
        assert_eq!(at(app(&texts), place).as_deref(), Some(written), "{place}");
    }
    assert_eq!(
        at(config(&texts), "p2p.max-connections").as_deref(),
        Some("500")
    );
}

#[test]
fn equal_intents_have_one_fingerprint_and_others_another() {
    let base = intent(Mode::Full, &[("a", "1"), ("b", "2")]);
    let spelled_out = Intent {
        target_version: 2,
        ..intent(Mode::Full, &[("b", "2"), ("a", "1")])
    };
    assert_eq!(base.fingerprint(), spelled_out.fingerprint());
    assert_eq!(base.fingerprint().len(), 64);
    for other in [
        intent(Mode::Seed, &[("a", "1"), ("b", "2")]),
        intent(Mode::Full, &[("a", "1"), ("b", "3")]),
        intent(Mode::Full, &[("a", "1b2")]),
        intent(Mode::Full, &[("a", "1")]),
        Intent {
            target_version: 1,
            ..base.clone()
        },
        Intent {
            incremental: true,
            ..base.clone()
        },
    ] {
        assert_ne!(base.fingerprint(), other.fingerprint(), "{other:?}");
    }
}

#[test]
fn a_password_is_never_shown_to_a_log() {
    let pairs = [
        ("tx_index.psql_conn", "postgres://u:hunter2@db"),
        ("evm.replay.eth_rpc", "http://u:hunter2@rpc"),
        ("logging.level", "debug"),
    ];
    let intent = intent(Mode::Full, &pairs);
    let applied = apply(&intent, &host(), &Texts::default()).expect("files");
    let shown = format!("{intent:?} {applied:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("tx_index.psql_conn"), "{shown}");
    assert!(shown.contains("debug"), "{shown}");
    assert!(config(&applied.texts).contains("hunter2"));
}
