//! Rows of `config.toml`.

use super::{Field, INT, INT32, Spelling, UINT, UINT16, section};
use crate::value::Kind::{Bool, CommaList, Duration, Float, List, OptionalBool, Text};

const KEBAB: Spelling = Spelling::Kebab("");

pub(super) const ROWS: &[&[Field]] = &[
    TOP,
    RPC,
    P2P,
    MEMPOOL,
    STATE_SYNC,
    CONSENSUS,
    TX_INDEX,
    INSTRUMENTATION,
    PRIV_VALIDATOR,
    SELF_REMEDIATION,
];

const TOP: &[Field] = section! { Config "" KEBAB;
    "chain.proxy_app", Text, "tcp://127.0.0.1:26658";
    "chain.moniker", Text, moniker;
    @Mirror "mode", Text, "";
    "storage.db_backend", Text, "goleveldb";
    "storage.db_path" => "db-dir", Text, "data";
    "logging.level" => "log-level", Text, "info";
    "logging.format" => "log-format", Text, "plain";
    @Constant "" => "genesis-file", Text, "config/genesis.json";
    @Constant "" => "node-key-file", Text, "config/node_key.json";
    "chain.abci", Text, "socket";
    "chain.filter_peers", Bool, "false";
};

const RPC: &[Field] = section! { Config "rpc" KEBAB;
    "network.rpc.listen_address" => "laddr", Text, "tcp://127.0.0.1:26657",
        Full "tcp://0.0.0.0:26657", Validator "tcp://0.0.0.0:26657";
    "network.rpc.cors_allowed_origins", List, "";
    "network.rpc.cors_allowed_methods", List, "HEAD,GET,POST";
    "network.rpc.cors_allowed_headers", List,
        "Origin,Accept,Content-Type,X-Requested-With,X-Server-Time";
    "network.rpc.unsafe", Bool, "false";
    "network.rpc.max_open_connections", INT, "900";
    "network.rpc.max_subscription_clients", INT, "100";
    "network.rpc.max_subscriptions_per_client", INT, "5";
    "network.rpc.experimental_disable_websocket", Bool, "false";
    "network.rpc.event_log_window_size", Duration, "30s";
    "network.rpc.event_log_max_items", INT, "0";
    "network.rpc.timeout_broadcast_tx_commit", Duration, "10s";
    "network.rpc.max_body_bytes", INT, "1000000";
    "network.rpc.max_header_bytes", INT, "1048576";
    "network.rpc.tls_cert_file", Text, "";
    "network.rpc.tls_key_file", Text, "";
    "network.rpc.pprof_listen_address" => "pprof-laddr", Text, "";
    "network.rpc.lag_threshold", INT, "300";
    "network.rpc.timeout_read", Duration, "10s";
};

const P2P: &[Field] = section! { Config "p2p" KEBAB;
    "network.p2p.listen_address" => "laddr", Text, "tcp://127.0.0.1:26656",
        Full "tcp://0.0.0.0:26656", Validator "tcp://0.0.0.0:26656", Seed "tcp://0.0.0.0:26656";
    "network.p2p.external_address", Text, "";
    "network.p2p.bootstrap_peers", Text, "";
    "network.p2p.persistent_peers", Text, "";
    "network.p2p.blocksync_peers", Text, "";
    "network.p2p.upnp", Bool, "false";
    "network.p2p.max_connections", UINT16, "100", Seed "1000";
    "network.p2p.max_incoming_connection_attempts", UINT, "100", Seed "32";
    "network.p2p.pex", Bool, "true";
    "network.p2p.private_peer_ids", Text, "";
    "network.p2p.allow_duplicate_ip", Bool, "false", Seed "true";
    "network.p2p.unconditional_peer_ids", Text, "";
    "network.p2p.flush_throttle_timeout", Duration, "100ms";
    "network.p2p.max_packet_msg_payload_size", INT, "1000000", Seed "102400";
    "network.p2p.send_rate", INT, "20971520";
    "network.p2p.recv_rate", INT, "20971520";
    "network.p2p.handshake_timeout", Duration, "10s";
    "network.p2p.dial_timeout", Duration, "3s";
    "network.p2p.dial_interval", Duration, "10s";
    "network.p2p.queue_type", Text, "simple-priority";
};

const MEMPOOL: &[Field] = section! { Config "mempool" KEBAB;
    "mempool.broadcast", Bool, "true";
    "mempool.size", INT, "5000";
    "mempool.max_txs_bytes", INT, "1073741824";
    "mempool.cache_size", INT, "10000";
    "mempool.duplicate_txs_cache_size", INT, "100000";
    "mempool.keep_invalid_txs_in_cache", Bool, "false";
    "mempool.max_tx_bytes", INT, "1048576";
    "mempool.max_batch_bytes", INT, "0";
    "mempool.ttl_duration", Duration, "5s";
    "mempool.ttl_num_blocks", INT, "10";
    "mempool.tx_notify_threshold", UINT, "0";
    "mempool.check_tx_error_blacklist_enabled", Bool, "true";
    "mempool.check_tx_error_threshold", INT, "50";
    "mempool.pending_size", INT, "5000";
    "mempool.max_pending_txs_bytes", INT, "1073741824";
    "mempool.pending_ttl_duration", Duration, "0s";
    "mempool.pending_ttl_num_blocks", INT, "0";
    "mempool.remove_expired_txs_from_queue", Bool, "true";
    "mempool.drop_priority_threshold", Float, "0.1";
    "mempool.drop_utilisation_threshold", Float, "1.0";
    "mempool.drop_priority_reservoir_size", INT, "10240";
};

const STATE_SYNC: &[Field] = section! { Config "statesync" KEBAB;
    "state_sync.enable", Bool, "false";
    "state_sync.use_p2p", Bool, "false";
    "state_sync.rpc_servers", CommaList, "";
    "state_sync.trust_height", INT, "0";
    "state_sync.trust_hash", Text, "";
    "state_sync.trust_period", Duration, "168h";
    "state_sync.backfill_blocks", INT, "0";
    "state_sync.backfill_duration", Duration, "0s";
    "state_sync.discovery_time", Duration, "15s";
    "state_sync.temp_dir", Text, "";
    "state_sync.chunk_request_timeout", Duration, "15s";
    "state_sync.fetchers", INT32, "2";
    "state_sync.verify_light_block_timeout", Duration, "60s";
    "state_sync.blacklist_ttl", Duration, "5m";
    "state_sync.use_local_snapshot", Bool, "false";
    "state_sync.light_block_response_timeout", Duration, "10s";
};

const CONSENSUS: &[Field] = section! { Config "consensus" KEBAB;
    "consensus.wal_path" => "wal-file", Text, "data/cs.wal/wal";
    "consensus.create_empty_blocks", Bool, "true";
    "consensus.create_empty_blocks_interval", Duration, "0s";
    "consensus.gossip_transaction_key_only" => "gossip-tx-key-only", Bool, "true";
    "consensus.peer_gossip_sleep_duration", Duration, "100ms";
    "consensus.peer_query_maj23_sleep_duration", Duration, "2s";
    "consensus.double_sign_check_height", INT, "0";
    "consensus.unsafe_propose_timeout_override", Duration, "0s";
    "consensus.unsafe_propose_timeout_delta_override", Duration, "0s";
    "consensus.unsafe_vote_timeout_override", Duration, "0s";
    "consensus.unsafe_vote_timeout_delta_override", Duration, "0s";
    "consensus.unsafe_commit_timeout_override", Duration, "0s";
    "consensus.unsafe_bypass_commit_timeout_override", OptionalBool, unset;
};

const TX_INDEX: &[Field] = section! { Config "tx-index" KEBAB;
    "tx_index.indexer", List, "kv", Validator "null", Seed "null";
    "tx_index.psql_conn", Text, "";
};

const INSTRUMENTATION: &[Field] = section! { Config "instrumentation" KEBAB;
    @Mirror "metrics.enabled" => "prometheus", Bool, "true";
    "metrics.prometheus_listen_addr", Text, ":26660";
    "metrics.max_open_connections", INT, "3";
    "metrics.namespace", Text, "tendermint";
};

const PRIV_VALIDATOR: &[Field] = section! { Config "priv-validator" KEBAB;
    "priv_validator.key_file", Text, "config/priv_validator_key.json";
    "priv_validator.state_file", Text, "data/priv_validator_state.json";
    "priv_validator.listen_addr" => "laddr", Text, "";
    "priv_validator.client_certificate_file", Text, "";
    "priv_validator.client_key_file", Text, "";
    "priv_validator.root_ca_file", Text, "";
};

const SELF_REMEDIATION: &[Field] = section! { Config "self-remediation" KEBAB;
    "self_remediation.p2p_no_peers_restart_window_seconds"
        => "p2p-no-peers-available-window-seconds", UINT, "0";
    "self_remediation.statesync_no_peers_restart_window_seconds"
        => "statesync-no-peers-available-window-seconds", UINT, "0";
    "self_remediation.blocks_behind_threshold", UINT, "0";
    "self_remediation.blocks_behind_check_interval_seconds"
        => "blocks-behind-check-interval", UINT, "60";
    "self_remediation.restart_cooldown_seconds", UINT, "600";
};
