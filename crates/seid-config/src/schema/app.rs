//! Rows of `app.toml`.

use super::{Field, INT, Spelling, UINT, UINT32, section};
use crate::value::Kind::{Bool, Duration, Float, Labels, List, Text};

const KEBAB: Spelling = Spelling::Kebab("");
const SNAKE: Spelling = Spelling::Snake;

pub(super) const ROWS: &[&[Field]] = &[
    TOP,
    TELEMETRY,
    API,
    GRPC,
    GRPC_WEB,
    SNAPSHOTS,
    STATE_COMMIT,
    STATE_STORE,
    RECEIPT_STORE,
    EVM,
    WASM,
    GIGA_EXECUTOR,
    ETH_REPLAY,
    ETH_BLOCK_TEST,
    EVM_QUERY,
    LIGHT_INVARIANCE,
    GENESIS,
    SEI,
];

const TOP: &[Field] = section! { App "" KEBAB;
    "chain.min_gas_prices" => "minimum-gas-prices", Text, "0.01usei";
    "storage.pruning", Text, "nothing", Full "custom", Archive "nothing", Seed "everything";
    "storage.pruning_keep_recent", Text, "0", Full "86400";
    "storage.pruning_keep_every", Text, "0", Full "500";
    "storage.pruning_interval", Text, "0", Full "10";
    "chain.halt_height", UINT, "0";
    "chain.halt_time", UINT, "0";
    "chain.min_retain_blocks", UINT, "0", Full "100000", Archive "0";
    "chain.inter_block_cache", Bool, "true";
    "chain.index_events", List, unset;
    "storage.iavl_disable_fast_node" => "iavl-disable-fastnode", Bool, "true";
    "storage.compaction_interval", UINT, "0";
    "chain.concurrency_workers", INT, workers, Full "500";
    "chain.occ_enabled", Bool, "true";
};

const TELEMETRY: &[Field] = section! { App "telemetry" KEBAB;
    "metrics.service_name", Text, "";
    "metrics.enabled", Bool, "true";
    "metrics.enable_hostname", Bool, "false";
    "metrics.enable_hostname_label", Bool, "false";
    "metrics.enable_service_label", Bool, "false";
    "metrics.prometheus_retention_time", INT, "7200";
    "metrics.global_labels", Labels, "";
};

const API: &[Field] = section! { App "api" KEBAB;
    "api.rest.enable", Bool, "false", Full "true";
    "api.rest.swagger", Bool, "true";
    "api.rest.address", Text, "tcp://0.0.0.0:1317";
    "api.rest.max_open_connections", UINT, "1000";
    "api.rest.rpc_read_timeout", UINT, "10";
    "api.rest.rpc_write_timeout", UINT, "0";
    "api.rest.rpc_max_body_bytes", UINT, "1000000";
    "api.rest.enable_unsafe_cors" => "enabled-unsafe-cors", Bool, "false";
};

const GRPC: &[Field] = section! { App "grpc" KEBAB;
    "api.grpc.enable", Bool, "true", Seed "false";
    "api.grpc.address", Text, "0.0.0.0:9090";
};

const GRPC_WEB: &[Field] = section! { App "grpc-web" KEBAB;
    "api.grpc_web.enable", Bool, "true", Validator "false", Seed "false";
    "api.grpc_web.address", Text, "0.0.0.0:9091";
    "api.grpc_web.enable_unsafe_cors", Bool, "false";
};

const SNAPSHOTS: &[Field] = section! { App "state-sync" KEBAB;
    "storage.snapshot_interval", UINT, "0";
    "storage.snapshot_keep_recent", UINT32, "2";
    "storage.snapshot_directory", Text, "";
};

// Modes of writing and reading are left out unless set: each seid has a default of its own, and no
// value is understood by all of them.
const STATE_COMMIT: &[Field] = section! { App "state-commit" Spelling::Kebab("sc-");
    "storage.state_commit.enable", Bool, "true";
    "storage.state_commit.directory", Text, "";
    "storage.state_commit.async_commit_buffer", INT, "0", Full "100";
    "storage.state_commit.write_mode", Text, "" omit;
    "storage.state_commit.read_mode", Text, "" omit;
    "storage.state_commit.memiavl.snapshot_keep_recent" => "sc-keep-recent", UINT32, "0",
        Archive "1";
    "storage.state_commit.memiavl.snapshot_interval", UINT32, "0";
    "storage.state_commit.memiavl.snapshot_min_time_interval", UINT32, "0", Archive "20000";
    "storage.state_commit.memiavl.snapshot_writer_limit", INT, "0";
    "storage.state_commit.memiavl.snapshot_prefetch_threshold", Float, "0";
};

const STATE_STORE: &[Field] = section! { App "state-store" Spelling::Kebab("ss-");
    "storage.state_store.enable", Bool, "true", Validator "false", Seed "false";
    "storage.state_store.db_directory", Text, "";
    "storage.state_store.backend", Text, "pebbledb";
    "storage.state_store.async_write_buffer", INT, "100";
    "storage.state_store.keep_recent", INT, "100000", Archive "0";
    "storage.state_store.prune_interval_seconds" => "ss-prune-interval", INT, "600";
    "storage.state_store.import_num_workers", INT, "1";
    "storage.state_store.keep_last_version", Bool, "true";
    "storage.state_store.use_default_comparer", Bool, "false";
    "storage.state_store.write_mode", Text, "" omit;
    "storage.state_store.read_mode", Text, "" omit;
    "storage.state_store.evm_db_directory", Text, "";
    "storage.state_store.evm_ss_split" => "evm-ss-split", Bool, "false" omit,
        Full "true", Archive "false";
};

const RECEIPT_STORE: &[Field] = section! { App "receipt-store" KEBAB;
    "storage.receipt_store.backend" => "rs-backend", Text, "pebbledb";
    "storage.receipt_store.db_directory", Text, "";
    "storage.receipt_store.async_write_buffer", INT, "100";
    "storage.receipt_store.keep_recent", INT, "100000", Archive "0";
    "storage.receipt_store.prune_interval_seconds", INT, "600", Archive "0";
    "storage.receipt_store.tx_index_backend", Text, "pebbledb";
};

const EVM: &[Field] = section! { App "evm" SNAKE;
    "evm.http_enabled", Bool, "true", Validator "false", Seed "false";
    "evm.http_port", INT, "8545";
    "evm.ws_enabled", Bool, "true", Validator "false", Seed "false";
    "evm.ws_port", INT, "8546";
    "evm.read_timeout", Duration, "30s";
    "evm.read_header_timeout", Duration, "30s";
    "evm.write_timeout", Duration, "30s";
    "evm.idle_timeout", Duration, "120s";
    "evm.simulation_gas_limit", UINT, "10000000";
    "evm.simulation_evm_timeout", Duration, "60s";
    "evm.cors_origins", Text, "*";
    "evm.ws_origins", Text, "*";
    "evm.filter_timeout", Duration, "120s";
    "evm.checktx_timeout", Duration, "5s";
    "evm.max_tx_pool_txs", UINT, "1000";
    "evm.slow", Bool, "false";
    "evm.deny_list", List, "";
    "evm.enabled_legacy_sei_apis", List, "";
    "evm.max_log_no_block", INT, "10000";
    "evm.max_blocks_for_log", INT, "2000";
    "evm.max_subscriptions_new_head", UINT, "10000";
    "evm.enable_test_api", Bool, "false";
    "evm.max_concurrent_trace_calls", UINT, "10";
    "evm.max_concurrent_simulation_calls", INT, evm_workers;
    "evm.max_trace_lookback_blocks", INT, "10000", Archive "-1";
    "evm.trace_timeout", Duration, "30s";
    "evm.rpc_stats_interval", Duration, "10s";
    "evm.worker_pool_size", INT, evm_workers;
    "evm.worker_queue_size", INT, "1000";
};

const WASM: &[Field] = section! { App "wasm" SNAKE;
    "wasm.query_gas_limit", UINT, "300000";
    "wasm.lru_size", UINT, "1";
};

const GIGA_EXECUTOR: &[Field] = section! { App "giga_executor" SNAKE;
    "giga_executor.enabled", Bool, "false";
    "giga_executor.occ_enabled", Bool, "false";
};

const ETH_REPLAY: &[Field] = section! { App "eth_replay" SNAKE;
    "evm.replay.enabled" => "eth_replay_enabled", Bool, "false";
    "evm.replay.eth_rpc", Text, "http://44.234.105.54:18545";
    "evm.replay.eth_data_dir", Text, "/root/.ethereum/chaindata";
    "evm.replay.contract_state_checks" => "eth_replay_contract_state_checks", Bool, "false";
};

const ETH_BLOCK_TEST: &[Field] = section! { App "eth_block_test" SNAKE;
    "evm.block_test.enabled" => "eth_block_test_enabled", Bool, "false";
    "evm.block_test.test_data_path" => "eth_block_test_test_data_path", Text, "~/testdata/";
};

const EVM_QUERY: &[Field] = section! { App "evm_query" SNAKE;
    "evm.query.gas_limit" => "evm_query_gas_limit", UINT, "300000";
};

const LIGHT_INVARIANCE: &[Field] = section! { App "light_invariance" SNAKE;
    "light_invariance.supply_enabled", Bool, "true";
};

const GENESIS: &[Field] = section! { App "genesis" KEBAB;
    "genesis.stream_import", Bool, "false";
    "genesis.genesis_stream_file", Text, "";
};

// What config.toml cannot say: that a full node is an archive, and which schema wrote the files.
const SEI: &[Field] = section! { App "sei" KEBAB;
    "mode", Text, "";
    "version", INT, "0";
};
