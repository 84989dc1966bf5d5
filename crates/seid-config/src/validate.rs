//! Checks on a whole configuration: what seid would refuse, and what is probably a mistake.
//!
//! Each finding has a severity, the key it is about and a sentence. The task `config-validate` fails
//! with them; `config-apply` writes nothing while one of them is an error.

use std::fmt::Display;

use serde::Serialize;

use crate::mode::Mode;
use crate::read::{Unreadable, read};
use crate::settings::Settings;
use crate::value::Value;
use crate::{CURRENT_VERSION, Texts};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Severity {
    /// The node must not start with it.
    Error,
    /// Probably a mistake.
    Warning,
    /// Worth knowing.
    Info,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// The key it is about.
    pub field: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl Diagnostic {
    pub(crate) fn error(field: &str, message: impl Display) -> Self {
        Self::new(Severity::Error, field, message)
    }

    fn warning(field: &str, message: impl Display) -> Self {
        Self::new(Severity::Warning, field, message)
    }

    fn new(severity: Severity, field: &str, message: impl Display) -> Self {
        Self {
            severity,
            field: field.to_owned(),
            message: message.to_string(),
        }
    }
}

/// What the checks say of a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Whether no finding is an error.
    pub valid: bool,
    /// The version of the schema.
    pub version: i64,
    /// The mode's word.
    pub mode: String,
    /// The findings.
    pub diagnostics: Vec<Diagnostic>,
}

impl Report {
    /// The error a task fails with, where the configuration is not valid.
    pub fn failure(&self) -> Option<String> {
        (!self.valid).then(|| format!("config validation failed: {}", json(self)))
    }
}

pub(crate) fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// Checks a configuration.
pub fn validate(settings: &Settings) -> Report {
    let diagnostics = check(settings, CURRENT_VERSION);
    Report {
        valid: diagnostics.iter().all(|it| it.severity != Severity::Error),
        version: settings.version(),
        mode: settings.mode().to_owned(),
        diagnostics,
    }
}

/// Checks the files on disk: the task `config-validate`.
pub fn validate_files(texts: &Texts) -> Result<Report, Unreadable> {
    read(texts).map(|settings| validate(&settings))
}

pub(crate) fn check(settings: &Settings, newest: i64) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    identity(settings, newest, &mut found);
    limits(settings, &mut found);
    words(settings, &mut found);
    if settings.flag("state_sync.enable") {
        state_sync(settings, &mut found);
    }
    evm(settings, &mut found);
    together(settings, &mut found);
    found
}

fn identity(settings: &Settings, newest: i64, found: &mut Vec<Diagnostic>) {
    let mode = settings.mode();
    if mode.is_empty() {
        found.push(Diagnostic::error("mode", "a mode must be set"));
    } else if let Err(error) = mode.parse::<Mode>() {
        found.push(Diagnostic::error("mode", error));
    }
    let version = settings.version();
    if !(1..=newest).contains(&version) {
        let sentence = format!("version {version} is not between 1 and {newest}");
        found.push(Diagnostic::error("version", sentence));
    }
    if settings.text("chain.min_gas_prices").is_empty() {
        let sentence = "a minimum gas price must be set, for example 0.01usei";
        found.push(Diagnostic::error("chain.min_gas_prices", sentence));
    }
}

/// Numbers and spans that must not be negative.
const NOT_NEGATIVE: &[&str] = &[
    "network.rpc.max_open_connections",
    "network.rpc.max_subscription_clients",
    "network.rpc.max_subscriptions_per_client",
    "network.rpc.timeout_broadcast_tx_commit",
    "network.rpc.max_body_bytes",
    "network.rpc.max_header_bytes",
    "network.p2p.flush_throttle_timeout",
    "network.p2p.max_packet_msg_payload_size",
    "network.p2p.send_rate",
    "network.p2p.recv_rate",
    "consensus.unsafe_propose_timeout_override",
    "consensus.unsafe_commit_timeout_override",
    "consensus.create_empty_blocks_interval",
    "consensus.peer_gossip_sleep_duration",
    "consensus.double_sign_check_height",
    "mempool.size",
    "mempool.max_txs_bytes",
    "mempool.cache_size",
    "mempool.max_tx_bytes",
    "mempool.ttl_duration",
    "mempool.ttl_num_blocks",
    "metrics.max_open_connections",
];

fn limits(settings: &Settings, found: &mut Vec<Diagnostic>) {
    if settings.int("chain.concurrency_workers") < -1 {
        let sentence = "must be -1 (no limit) or more";
        found.push(Diagnostic::error("chain.concurrency_workers", sentence));
    }
    for key in NOT_NEGATIVE {
        let negative = match settings.get(key) {
            Some(Value::Int(number)) => *number < 0,
            Some(Value::Duration(span)) => span.nanoseconds() < 0,
            _ => false,
        };
        if negative {
            found.push(Diagnostic::error(key, "must be 0 or more"));
        }
    }
    let key = "mempool.drop_utilisation_threshold";
    if let Some(Value::Float(share)) = settings.get(key)
        && !(0.0..=1.0).contains(share)
    {
        found.push(Diagnostic::error(key, "must be between 0.0 and 1.0"));
    }
}

const PRUNING: &[&str] = &["default", "nothing", "everything", "custom"];
const LOG_FORMATS: &[&str] = &["plain", "text", "json"];
/// Ways to route writes, those of older nodes included: each seid knows some of them.
const WRITE_MODES: &[&str] = &[
    "memiavl_only",
    "migrate_evm",
    "evm_migrated",
    "migrate_all_but_bank",
    "all_migrated_but_bank",
    "migrate_bank",
    "flatkv_only",
    TEST_ONLY,
    "cosmos_only",
    "dual_write",
    "split_write",
];
const TEST_ONLY: &str = "test_only_dual_write";
const READ_MODES: &[&str] = &["cosmos_only", "evm_first", "split_read"];
const STATE_STORES: &[&str] = &["pebbledb", "rocksdb"];

fn words(settings: &Settings, found: &mut Vec<Diagnostic>) {
    let unknown = |key: &str, words: &[&str]| {
        let word = settings.text(key);
        (!words.contains(&word)).then(|| format!("{word:?} is unknown: use {}", words.join(", ")))
    };
    for (key, words) in [
        ("storage.pruning", PRUNING),
        ("logging.format", LOG_FORMATS),
    ] {
        found.extend(unknown(key, words).map(|sentence| Diagnostic::error(key, sentence)));
    }
    for store in ["storage.state_commit", "storage.state_store"] {
        for (kind, words) in [("write_mode", WRITE_MODES), ("read_mode", READ_MODES)] {
            let key = format!("{store}.{kind}");
            match settings.text(&key) {
                "" => {}
                TEST_ONLY if kind == "write_mode" => {
                    let sentence =
                        format!("{TEST_ONLY} is for tests: unset it on a node of a chain");
                    found.push(Diagnostic::warning(&key, sentence));
                }
                _ => found.extend(unknown(&key, words).map(|text| Diagnostic::error(&key, text))),
            }
        }
    }
    let key = "storage.state_store.backend";
    if !settings.text(key).is_empty() {
        found.extend(unknown(key, STATE_STORES).map(|text| Diagnostic::warning(key, text)));
    }
}

fn state_sync(settings: &Settings, found: &mut Vec<Diagnostic>) {
    let mut error = |key: &str, sentence: &str| {
        found.push(Diagnostic::error(&format!("state_sync.{key}"), sentence));
    };
    let servers = settings.list("state_sync.rpc_servers").len();
    if !settings.flag("state_sync.use_p2p") && servers < 2 {
        error(
            "rpc_servers",
            "state sync needs at least two servers, unless it uses peers",
        );
    }
    if settings.span("state_sync.trust_period").nanoseconds() <= 0 {
        error("trust_period", "state sync needs a span greater than 0");
    }
    if settings.int("state_sync.trust_height") <= 0 {
        error("trust_height", "state sync needs a height greater than 0");
    }
    match settings.text("state_sync.trust_hash") {
        "" => error("trust_hash", "state sync needs the hash of a trusted block"),
        hash if hash.len() % 2 != 0 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            error("trust_hash", "the hash is not hexadecimal");
        }
        _ => {}
    }
    if settings.int("state_sync.fetchers") <= 0 {
        error("fetchers", "state sync needs at least one fetcher");
    }
    if settings.int("state_sync.backfill_blocks") < 0 {
        error("backfill_blocks", "must be 0 or more");
    }
}

fn evm(settings: &Settings, found: &mut Vec<Diagnostic>) {
    let mut served = false;
    for (enabled, port) in [
        ("evm.http_enabled", "evm.http_port"),
        ("evm.ws_enabled", "evm.ws_port"),
    ] {
        if settings.flag(enabled) {
            served = true;
            if settings.int(port) <= 0 {
                found.push(Diagnostic::error(
                    port,
                    "must be greater than 0 to be served",
                ));
            }
        }
    }
    if served && settings.mode() == Mode::Validator.as_str() {
        let sentence = "a validator serves EVM RPC: that is unusual and opens it to attacks";
        found.push(Diagnostic::warning("evm", sentence));
    }
}

fn together(settings: &Settings, found: &mut Vec<Diagnostic>) {
    let everything = settings.text("storage.pruning") == "everything";
    if everything && settings.int("storage.snapshot_interval") > 0 {
        let sentence = "a node that prunes everything cannot make snapshots: \
                        set storage.snapshot_interval to 0 or prune less";
        found.push(Diagnostic::error("storage", sentence));
    }
    if settings.mode() == Mode::Seed.as_str() && !settings.flag("network.p2p.pex") {
        let sentence = "a seed tells peers of each other and is of no use without: set pex to true";
        found.push(Diagnostic::error("network.p2p.pex", sentence));
    }
}
