//! The patches of `discover-peers` and `configure-state-sync`, and which peers may be witnesses.

use serde_json::{Map, Value as Json, json};

/// The port a peer's RPC is expected on.
const RPC_PORT: u16 = 26657;
/// A trust point needs a second opinion; more are not asked.
const WITNESSES: usize = 2;

/// The patch of `config.toml` that makes these the node's peers, each once, in the order first seen.
pub fn persistent_peers<'a>(peers: impl IntoIterator<Item = &'a str>) -> Map<String, Json> {
    let mut seen: Vec<&str> = Vec::new();
    for peer in peers {
        if !seen.contains(&peer) {
            seen.push(peer);
        }
    }
    section("p2p", json!({ "persistent-peers": seen.join(",") }))
}

/// Where the first two peers of `p2p.persistent-peers` serve RPC, as `host:port`. An entry that is
/// not of the form `id@host:port` is passed over.
pub fn witness_candidates(persistent_peers: &str) -> Vec<String> {
    let hosts = persistent_peers.split(',').filter_map(|peer| {
        let (_, address) = peer.trim().split_once('@')?;
        let host = host(address);
        (!host.is_empty()).then(|| format!("{host}:{RPC_PORT}"))
    });
    hosts.take(WITNESSES).collect()
}

/// The address without its port; an IPv6 address keeps its brackets.
fn host(address: &str) -> &str {
    if let Some(end) = address
        .starts_with('[')
        .then(|| address.find(']'))
        .flatten()
    {
        return &address[..=end];
    }
    address.rsplit_once(':').map_or(address, |(host, _)| host)
}

/// What state sync is told to trust, and where to ask.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StateSync {
    /// Height of the trusted block.
    pub trust_height: i64,
    /// Its hash.
    pub trust_hash: String,
    /// Witnesses, as `host:port`.
    pub rpc_servers: Vec<String>,
    /// Restores the snapshot on disk instead of asking peers for one.
    pub use_local_snapshot: bool,
    /// How long a header is trusted; empty leaves what is there.
    pub trust_period: String,
    /// Blocks before the snapshot that are fetched too; zero leaves what is there.
    pub backfill_blocks: i64,
}

/// The patch of `config.toml` that switches state sync on.
pub fn state_sync_patch(wanted: &StateSync) -> Map<String, Json> {
    let mut settings = json!({
        "enable": true,
        "trust-height": wanted.trust_height,
        "trust-hash": wanted.trust_hash,
        "rpc-servers": wanted.rpc_servers.join(","),
        "use-local-snapshot": wanted.use_local_snapshot,
    });
    if !wanted.trust_period.is_empty() {
        settings["trust-period"] = json!(wanted.trust_period);
    }
    if wanted.backfill_blocks > 0 {
        settings["backfill-blocks"] = json!(wanted.backfill_blocks);
    }
    section("statesync", settings)
}

fn section(name: &str, settings: Json) -> Map<String, Json> {
    Map::from_iter([(name.to_owned(), settings)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn witnesses_are_the_first_two_peers_that_have_a_host() {
        for (peers, witnesses) in [
            ("", vec![]),
            ("a@one:26656", vec!["one:26657"]),
            ("a@one:1,b@two:2,c@three:3", vec!["one:26657", "two:26657"]),
            ("no-id:26656, b@two", vec!["two:26657"]),
            (
                "a@:26656,@,b@[2001:db8::1]:26656",
                vec!["[2001:db8::1]:26657"],
            ),
        ] {
            assert_eq!(witness_candidates(peers), witnesses, "{peers}");
        }
    }

    #[test]
    fn a_peer_is_written_once_in_the_order_first_seen() {
        let patch = persistent_peers(["b@two:1", "a@one:1", "b@two:1"]);
        assert_eq!(
            Json::Object(patch),
            json!({"p2p": {"persistent-peers": "b@two:1,a@one:1"}})
        );
    }

    #[test]
    fn state_sync_leaves_what_it_is_not_told() {
        let mut wanted = StateSync {
            trust_height: 7,
            trust_hash: "AB".into(),
            rpc_servers: vec!["one:26657".into(), "two:443".into()],
            ..StateSync::default()
        };
        let mut expected = json!({"statesync": {
            "enable": true, "trust-height": 7, "trust-hash": "AB",
            "rpc-servers": "one:26657,two:443", "use-local-snapshot": false,
        }});
        assert_eq!(Json::Object(state_sync_patch(&wanted)), expected);

        wanted.trust_period = "9m0s".into();
        wanted.backfill_blocks = 5;
        expected["statesync"]["trust-period"] = json!("9m0s");
        expected["statesync"]["backfill-blocks"] = json!(5);
        assert_eq!(Json::Object(state_sync_patch(&wanted)), expected);
    }
}
