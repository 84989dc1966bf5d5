//! The table of keys against what the original's library writes: names, values by mode, and the few
//! places where a file is spelled otherwise than the rule.

use std::collections::BTreeSet;

use keelson_seid_config::schema;
use keelson_seid_config::{File, Host, Mode, Settings, Texts};

use super::world::{app, at, config, host, new};

const MODES: [Mode; 4] = [Mode::Full, Mode::Archive, Mode::Validator, Mode::Seed];

/// A place in a file, and what full nodes, archives, validators and seeds have there.
type Row = (&'static str, [&'static str; 4]);

fn same(text: &'static str) -> [&'static str; 4] {
    [text; 4]
}

fn agree(rows: &[Row], file: fn(&Texts) -> &str) {
    for (index, mode) in MODES.into_iter().enumerate() {
        let texts = new(mode, &[]).texts;
        for (place, values) in rows {
            let written = at(file(&texts), place).unwrap_or_else(|| "absent".into());
            assert_eq!(written, values[index], "{place} of {mode}");
        }
    }
}

#[test]
fn config_toml_has_what_each_mode_needs() {
    let open_rpc = r#""tcp://0.0.0.0:26657""#;
    let open_p2p = r#""tcp://0.0.0.0:26656""#;
    agree(
        &[
            (
                "mode",
                [r#""full""#, r#""full""#, r#""validator""#, r#""seed""#],
            ),
            ("moniker", same(r#""node-0""#)),
            ("db-dir", same(r#""data""#)),
            ("log-level", same(r#""info""#)),
            ("genesis-file", same(r#""config/genesis.json""#)),
            ("node-key-file", same(r#""config/node_key.json""#)),
            ("chain-id", same("absent")),
            (
                "rpc.laddr",
                [open_rpc, open_rpc, open_rpc, r#""tcp://127.0.0.1:26657""#],
            ),
            ("rpc.cors-allowed-origins", same("[]")),
            (
                "rpc.cors-allowed-methods",
                same(r#"["HEAD", "GET", "POST"]"#),
            ),
            ("rpc.pprof-laddr", same(r#""""#)),
            ("rpc.max-header-bytes", same("1048576")),
            ("p2p.laddr", same(open_p2p)),
            ("p2p.max-connections", ["100", "100", "100", "1000"]),
            (
                "p2p.max-incoming-connection-attempts",
                ["100", "100", "100", "32"],
            ),
            (
                "p2p.allow-duplicate-ip",
                ["false", "false", "false", "true"],
            ),
            (
                "p2p.max-packet-msg-payload-size",
                ["1000000", "1000000", "1000000", "102400"],
            ),
            ("p2p.pex", same("true")),
            ("p2p.flush-throttle-timeout", same(r#""100ms""#)),
            ("mempool.drop-utilisation-threshold", same("1.0")),
            ("mempool.max-txs-bytes", same("1073741824")),
            ("statesync.enable", same("false")),
            ("statesync.rpc-servers", same(r#""""#)),
            ("statesync.trust-period", same(r#""168h0m0s""#)),
            ("statesync.verify-light-block-timeout", same(r#""1m0s""#)),
            ("statesync.blacklist-ttl", same(r#""5m0s""#)),
            ("consensus.wal-file", same(r#""data/cs.wal/wal""#)),
            ("consensus.gossip-tx-key-only", same("true")),
            ("consensus.unsafe-commit-timeout-override", same(r#""0s""#)),
            (
                "consensus.unsafe-bypass-commit-timeout-override",
                same("absent"),
            ),
            (
                "tx-index.indexer",
                [r#"["kv"]"#, r#"["kv"]"#, r#"["null"]"#, r#"["null"]"#],
            ),
            ("instrumentation.prometheus", same("true")),
            (
                "instrumentation.prometheus-listen-addr",
                same(r#"":26660""#),
            ),
            ("priv-validator.laddr", same(r#""""#)),
            ("self-remediation.blocks-behind-check-interval", same("60")),
            (
                "self-remediation.p2p-no-peers-available-window-seconds",
                same("0"),
            ),
        ],
        config,
    );
}

#[test]
fn app_toml_has_what_each_mode_needs() {
    let pruning = [
        r#""custom""#,
        r#""nothing""#,
        r#""nothing""#,
        r#""everything""#,
    ];
    agree(
        &[
            ("minimum-gas-prices", same(r#""0.01usei""#)),
            ("pruning", pruning),
            (
                "pruning-keep-recent",
                [r#""86400""#, r#""86400""#, r#""0""#, r#""0""#],
            ),
            (
                "pruning-keep-every",
                [r#""500""#, r#""500""#, r#""0""#, r#""0""#],
            ),
            (
                "pruning-interval",
                [r#""10""#, r#""10""#, r#""0""#, r#""0""#],
            ),
            ("min-retain-blocks", ["100000", "0", "0", "0"]),
            ("index-events", same("absent")),
            ("iavl-disable-fastnode", same("true")),
            ("concurrency-workers", ["500", "500", "10", "10"]),
            ("telemetry.enabled", same("true")),
            ("telemetry.global-labels", same("[]")),
            ("api.enable", ["true", "true", "false", "false"]),
            ("api.enabled-unsafe-cors", same("false")),
            ("grpc.enable", ["true", "true", "true", "false"]),
            ("grpc-web.enable", ["true", "true", "false", "false"]),
            ("state-sync.snapshot-keep-recent", same("2")),
            ("state-commit.sc-enable", same("true")),
            (
                "state-commit.sc-async-commit-buffer",
                ["100", "100", "0", "0"],
            ),
            ("state-commit.sc-keep-recent", ["0", "1", "0", "0"]),
            (
                "state-commit.sc-snapshot-min-time-interval",
                ["0", "20000", "0", "0"],
            ),
            ("state-commit.sc-snapshot-prefetch-threshold", same("0.0")),
            ("state-commit.sc-write-mode", same("absent")),
            ("state-commit.sc-read-mode", same("absent")),
            ("state-store.ss-enable", ["true", "true", "false", "false"]),
            (
                "state-store.ss-keep-recent",
                ["100000", "0", "100000", "100000"],
            ),
            ("state-store.ss-prune-interval", same("600")),
            ("state-store.ss-write-mode", same("absent")),
            ("state-store.ss-read-mode", same("absent")),
            ("state-store.ss-evm-db-directory", same(r#""""#)),
            (
                "state-store.evm-ss-split",
                ["true", "absent", "absent", "absent"],
            ),
            ("receipt-store.rs-backend", same(r#""pebbledb""#)),
            ("receipt-store.backend", same("absent")),
            (
                "receipt-store.keep-recent",
                ["100000", "0", "100000", "100000"],
            ),
            (
                "receipt-store.prune-interval-seconds",
                ["600", "0", "600", "600"],
            ),
            ("evm.http_enabled", ["true", "true", "false", "false"]),
            ("evm.ws_port", same("8546")),
            ("evm.idle_timeout", same(r#""2m0s""#)),
            (
                "evm.max_trace_lookback_blocks",
                ["10000", "-1", "10000", "10000"],
            ),
            ("evm.worker_pool_size", same("8")),
            ("evm.max_concurrent_simulation_calls", same("8")),
            ("evm_query.evm_query_gas_limit", same("300000")),
            ("eth_replay.eth_replay_contract_state_checks", same("false")),
            (
                "eth_block_test.eth_block_test_test_data_path",
                same(r#""~/testdata/""#),
            ),
            ("genesis.genesis-stream-file", same(r#""""#)),
            ("giga_executor.occ_enabled", same("false")),
            (
                "sei.mode",
                [r#""full""#, r#""archive""#, r#""validator""#, r#""seed""#],
            ),
            ("sei.version", same("2")),
        ],
        app,
    );
}

#[test]
fn every_key_is_there_once_and_so_is_every_place() {
    let keys: BTreeSet<_> = schema::fields().map(|field| field.key).collect();
    assert_eq!(schema::fields().count(), 225);
    assert_eq!(keys.len(), 225);
    let places: BTreeSet<_> = schema::fields()
        .map(|field| (field.file, field.section, field.name()))
        .collect();
    assert_eq!(places.len(), 225);
    let sections: BTreeSet<_> = keys.iter().map(|key| key.split('.').next()).collect();
    assert_eq!(sections.len(), 17 + 2, "17 sections, mode and version");
}

#[test]
fn every_key_has_a_default_or_may_be_absent() {
    for mode in Mode::ALL {
        let settings = Settings::for_mode(mode, &host());
        let absent: Vec<_> = schema::fields()
            .filter(|field| settings.get(field.key).is_none())
            .map(|field| field.key)
            .collect();
        assert_eq!(
            absent,
            [
                "consensus.unsafe_bypass_commit_timeout_override",
                "chain.index_events"
            ],
            "{mode}: a default that its kind cannot read would be missing, too"
        );
    }
}

#[test]
fn workers_and_moniker_come_from_the_host() {
    let host = Host {
        name: String::new(),
        cpus: 40,
    };
    let settings = Settings::for_mode(Mode::Validator, &host);
    for (key, value) in [
        ("chain.moniker", "anonymous"),
        ("chain.concurrency_workers", "80"),
        ("evm.worker_pool_size", "64"),
    ] {
        let found = settings.get(key).map(ToString::to_string);
        assert_eq!(found.as_deref(), Some(value), "{key}");
    }
}

#[test]
fn client_toml_is_written_for_a_named_chain_and_keeps_what_a_person_chose() {
    assert_eq!(new(Mode::Full, &[]).texts.client, None);
    let client = new(Mode::Full, &[("chain.chain_id", "arctic-1")])
        .texts
        .client;
    let client = client.expect("a client.toml");
    assert_eq!(at(&client, "chain-id").as_deref(), Some(r#""arctic-1""#));
    assert_eq!(
        at(&client, "node").as_deref(),
        Some(r#""tcp://localhost:26657""#)
    );

    let chosen = Texts {
        client: Some("chain-id = \"other\"\noutput = \"json\" # for scripts\n".into()),
        ..Texts::default()
    };
    let intent = super::world::intent(Mode::Full, &[("chain.chain_id", "arctic-1")]);
    let applied = keelson_seid_config::apply(&intent, &host(), &chosen).expect("files");
    let client = applied.texts.get(File::Client).expect("a client.toml");
    assert!(
        client.contains("output = \"json\" # for scripts\n"),
        "{client}"
    );
    assert!(client.contains("chain-id = \"arctic-1\"\n"), "{client}");
}
