//! The checks: each rule seen to hold and to break, with its severity and its key.

use keelson_seid_config::{Diagnostic, Mode, Severity, Texts, apply, validate_files};

use super::world::{app, config, host, intent, new};

const SYNC: [(&str, &str); 4] = [
    ("state_sync.enable", "true"),
    ("state_sync.rpc_servers", "a:1,b:2"),
    ("state_sync.trust_height", "7"),
    ("state_sync.trust_hash", "AB12"),
];

/// What the checks say of a node of this mode with these overrides.
fn findings(mode: Mode, pairs: &[(&str, &str)]) -> Vec<Diagnostic> {
    match apply(&intent(mode, pairs), &host(), &Texts::default()) {
        Ok(applied) => applied.warnings,
        Err(keelson_seid_config::ApplyError::Invalid(found)) => found,
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn defaults_of_every_mode_pass() {
    for mode in Mode::ALL {
        assert_eq!(findings(mode, &[]), [], "{mode}");
        let report = validate_files(&new(mode, &[]).texts).expect("readable");
        assert!(report.valid, "{report:?}");
        assert_eq!((report.version, report.mode.as_str()), (2, mode.as_str()));
        assert_eq!(report.failure(), None);
    }
}

#[test]
fn each_rule_finds_what_breaks_it() {
    use Severity::{Error, Warning};
    for (mode, key, text, severity, field) in [
        (Mode::Full, "mode", "", Error, "mode"),
        (Mode::Full, "mode", "rpc", Error, "mode"),
        (Mode::Full, "version", "0", Error, "version"),
        (Mode::Full, "version", "3", Error, "version"),
        (Mode::Full, "chain.min_gas_prices", "", Error, ""),
        (Mode::Full, "chain.concurrency_workers", "-2", Error, ""),
        (
            Mode::Full,
            "network.rpc.max_open_connections",
            "-1",
            Error,
            "",
        ),
        (
            Mode::Full,
            "network.rpc.max_subscription_clients",
            "-1",
            Error,
            "",
        ),
        (
            Mode::Full,
            "network.rpc.max_subscriptions_per_client",
            "-1",
            Error,
            "",
        ),
        (
            Mode::Full,
            "network.rpc.timeout_broadcast_tx_commit",
            "-1s",
            Error,
            "",
        ),
        (Mode::Full, "network.rpc.max_body_bytes", "-1", Error, ""),
        (Mode::Full, "network.rpc.max_header_bytes", "-1", Error, ""),
        (
            Mode::Full,
            "network.p2p.flush_throttle_timeout",
            "-1s",
            Error,
            "",
        ),
        (
            Mode::Full,
            "network.p2p.max_packet_msg_payload_size",
            "-1",
            Error,
            "",
        ),
        (Mode::Full, "network.p2p.send_rate", "-1", Error, ""),
        (Mode::Full, "network.p2p.recv_rate", "-1", Error, ""),
        (
            Mode::Full,
            "consensus.unsafe_propose_timeout_override",
            "-1s",
            Error,
            "",
        ),
        (
            Mode::Full,
            "consensus.unsafe_commit_timeout_override",
            "-1s",
            Error,
            "",
        ),
        (
            Mode::Full,
            "consensus.create_empty_blocks_interval",
            "-1s",
            Error,
            "",
        ),
        (
            Mode::Full,
            "consensus.peer_gossip_sleep_duration",
            "-1s",
            Error,
            "",
        ),
        (
            Mode::Full,
            "consensus.double_sign_check_height",
            "-1",
            Error,
            "",
        ),
        (Mode::Full, "mempool.size", "-1", Error, ""),
        (Mode::Full, "mempool.max_txs_bytes", "-1", Error, ""),
        (Mode::Full, "mempool.cache_size", "-1", Error, ""),
        (Mode::Full, "mempool.max_tx_bytes", "-1", Error, ""),
        (Mode::Full, "mempool.ttl_duration", "-1s", Error, ""),
        (Mode::Full, "mempool.ttl_num_blocks", "-1", Error, ""),
        (Mode::Full, "metrics.max_open_connections", "-1", Error, ""),
        (
            Mode::Full,
            "mempool.drop_utilisation_threshold",
            "1.01",
            Error,
            "",
        ),
        (
            Mode::Full,
            "mempool.drop_utilisation_threshold",
            "-0.01",
            Error,
            "",
        ),
        (Mode::Full, "storage.pruning", "aggressive", Error, ""),
        (Mode::Full, "storage.pruning", "", Error, ""),
        (
            Mode::Full,
            "storage.state_commit.write_mode",
            "sideways",
            Error,
            "",
        ),
        (
            Mode::Full,
            "storage.state_store.write_mode",
            "sideways",
            Error,
            "",
        ),
        (
            Mode::Full,
            "storage.state_commit.read_mode",
            "memiavl_only",
            Error,
            "",
        ),
        (
            Mode::Full,
            "storage.state_store.read_mode",
            "sideways",
            Error,
            "",
        ),
        (
            Mode::Full,
            "storage.state_commit.write_mode",
            "test_only_dual_write",
            Warning,
            "",
        ),
        (
            Mode::Full,
            "storage.state_store.write_mode",
            "test_only_dual_write",
            Warning,
            "",
        ),
        (
            Mode::Full,
            "storage.state_store.backend",
            "leveldb",
            Warning,
            "",
        ),
        (Mode::Full, "evm.http_port", "0", Error, ""),
        (Mode::Full, "evm.ws_port", "-5", Error, ""),
        (Mode::Validator, "evm.http_enabled", "true", Warning, "evm"),
        (Mode::Validator, "evm.ws_enabled", "true", Warning, "evm"),
        (Mode::Full, "logging.format", "xml", Error, ""),
        (Mode::Full, "logging.format", "", Error, ""),
        (
            Mode::Seed,
            "storage.snapshot_interval",
            "1000",
            Error,
            "storage",
        ),
        (
            Mode::Seed,
            "network.p2p.pex",
            "false",
            Error,
            "network.p2p.pex",
        ),
    ] {
        let found = findings(mode, &[(key, text)]);
        let field = if field.is_empty() { key } else { field };
        assert_eq!(found.len(), 1, "{key}={text}: {found:?}");
        assert_eq!(
            (found[0].severity, found[0].field.as_str()),
            (severity, field),
            "{text}"
        );
        assert!(!found[0].message.is_empty());
    }
}

#[test]
fn what_is_unusual_but_allowed_is_not_found() {
    for (mode, key, text) in [
        (Mode::Full, "network.p2p.pex", "false"),
        (Mode::Full, "storage.snapshot_interval", "1000"),
        (Mode::Full, "chain.concurrency_workers", "-1"),
        (Mode::Full, "mempool.drop_utilisation_threshold", "0"),
        (Mode::Full, "storage.state_commit.write_mode", "cosmos_only"),
        (Mode::Full, "storage.state_store.read_mode", "split_read"),
        (Mode::Full, "storage.state_store.backend", "rocksdb"),
        (Mode::Full, "storage.state_store.backend", ""),
        (Mode::Validator, "evm.http_port", "0"),
        (Mode::Full, "logging.format", "json"),
    ] {
        assert_eq!(findings(mode, &[(key, text)]), [], "{key}={text}");
    }
}

#[test]
fn state_sync_is_checked_only_when_it_is_on_and_each_need_is_named() {
    assert_eq!(findings(Mode::Full, &SYNC), []);
    assert_eq!(findings(Mode::Full, &[("state_sync.fetchers", "0")]), []);
    let peers = [
        ("state_sync.rpc_servers", "a:1"),
        ("state_sync.use_p2p", "true"),
    ];
    assert_eq!(findings(Mode::Full, &[&SYNC[..], &peers].concat()), []);
    for (key, text) in [
        ("state_sync.rpc_servers", "a:1"),
        ("state_sync.trust_height", "0"),
        ("state_sync.trust_hash", ""),
        ("state_sync.trust_hash", "xyz1"),
        ("state_sync.trust_hash", "AB1"),
        ("state_sync.trust_period", "0s"),
        ("state_sync.fetchers", "0"),
        ("state_sync.backfill_blocks", "-1"),
    ] {
        let found = findings(Mode::Full, &[&SYNC[..], &[(key, text)]].concat());
        let fields: Vec<_> = found.iter().map(|it| it.field.as_str()).collect();
        assert_eq!(fields, [key], "{text}");
    }
}

#[test]
fn a_failed_check_is_told_in_the_shape_of_the_original() {
    let broken = intent(Mode::Full, &[("logging.format", "xml")]);
    let error = apply(&broken, &host(), &Texts::default()).expect_err("a bad format");
    assert_eq!(
        error.to_string(),
        "config validation failed: [{\"severity\":\"ERROR\",\"field\":\"logging.format\",\
         \"message\":\"\\\"xml\\\" is unknown: use plain, text, json\"}]"
    );

    let good = new(Mode::Full, &[]).texts;
    let edited = Texts {
        config: Some(config(&good).replace("log-format = \"plain\"", "log-format = \"xml\"")),
        app: Some(app(&good).to_owned()),
        client: None,
    };
    let report = validate_files(&edited).expect("readable");
    assert_eq!(
        report.failure().as_deref(),
        Some(
            "config validation failed: {\"valid\":false,\"version\":2,\"mode\":\"full\",\
             \"diagnostics\":[{\"severity\":\"ERROR\",\"field\":\"logging.format\",\
             \"message\":\"\\\"xml\\\" is unknown: use plain, text, json\"}]}"
        )
    );
}

#[test]
fn nothing_is_written_while_a_finding_is_an_error_and_warnings_come_with_the_files() {
    let warned = new(Mode::Validator, &[("evm.ws_enabled", "true")]);
    assert_eq!(warned.warnings[0].severity, Severity::Warning);
    assert!(config(&warned.texts).contains("mode = \"validator\""));
    let refused = intent(Mode::Seed, &[("network.p2p.pex", "false")]);
    let error = apply(&refused, &host(), &Texts::default()).expect_err("a seed without pex");
    assert!(error.to_string().contains("pex"), "{error}");
}
