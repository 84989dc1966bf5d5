//! Nodes that vouch for a block: who answers, which of them are different nodes of the right chain,
//! and whether they agree.
//!
//! Whom seid will ask later is asked now: a witness that does not answer would keep it from starting.
//! One node's word is not enough, and two names of one node are one node.

use super::TASK;
use crate::rpc::{self, Rpc, Status};
use crate::work::Trouble;
use futures::{StreamExt, stream};

/// How many are asked at a time.
const AT_ONCE: usize = 16;
/// Fewer cannot contradict each other.
const NEEDED: usize = 2;

/// A node that says who and how high it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// Where it is, as `host:port`.
    pub at: String,
    /// What it says.
    pub status: Status,
}

/// A node that has a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Witness {
    /// Where it is, as `host:port`.
    pub at: String,
    /// Which node it is.
    pub node_id: String,
    /// What it says the hash of the block is.
    pub hash: String,
}

/// Where a witness is asked. Port 443 is never plain.
pub fn url(at: &str) -> String {
    let scheme = match at.ends_with(":443") {
        true => "https",
        false => "http",
    };
    format!("{scheme}://{at}")
}

/// Asks all who and how high they are, and keeps those of the chain that answer, in their order.
pub async fn hear(candidates: Vec<String>, chain: &str) -> Result<Vec<Heard>, Trouble> {
    let asking = stream::iter(candidates.clone()).map(greet);
    let answers: Vec<_> = asking.buffered(AT_ONCE).collect().await;
    let mut heard = Vec::new();
    for (at, answer) in answers {
        let problem = match answer {
            Ok(status) if status.network != chain => {
                format!(
                    "{at} is of the chain {:?} and not of {chain:?}",
                    status.network
                )
            }
            Ok(status) => {
                heard.push(Heard { at, status });
                continue;
            }
            Err(trouble) => trouble.to_string(),
        };
        tracing::warn!(problem, "a witness is passed over");
    }
    if heard.is_empty() {
        let among = candidates.join(" ");
        let what = format!("no reachable RPC witness among [{among}]");
        let hint = "the log says what is wrong with each of them";
        return Err(Trouble::passing(TASK, "ask witnesses", what).hinting(hint));
    }
    Ok(heard)
}

async fn greet(at: String) -> (String, Result<Status, rpc::Trouble>) {
    let status = Rpc::new(&url(&at), rpc::PATIENCE).status().await;
    (at, status)
}

async fn inquire(heard: Heard, height: u64) -> (Heard, Result<String, rpc::Trouble>) {
    let rpc = Rpc::new(&url(&heard.at), rpc::PATIENCE);
    let hash = rpc.block_hash(height).await;
    (heard, hash)
}

/// The highest block anyone has.
pub fn highest(heard: &[Heard]) -> u64 {
    let heights = heard.iter().map(|it| it.status.height);
    heights.max().unwrap_or_default()
}

/// Asks all for the hash of a block, and keeps those that have it.
pub async fn ask(heard: Vec<Heard>, height: u64) -> Vec<Witness> {
    let asking = stream::iter(heard).map(|heard| inquire(heard, height));
    let answers: Vec<_> = asking.buffered(AT_ONCE).collect().await;
    let mut witnesses = Vec::new();
    for (heard, answer) in answers {
        match answer {
            Ok(hash) => witnesses.push(Witness {
                at: heard.at,
                node_id: heard.status.node_id,
                hash,
            }),
            Err(trouble) => {
                let problem = trouble.to_string();
                tracing::warn!(problem, "a witness is passed over");
            }
        }
    }
    witnesses
}

/// The first witnesses that are different nodes, no more than are wanted; an error where there are
/// fewer than are needed or they contradict each other.
pub fn agreed(
    witnesses: Vec<Witness>,
    height: u64,
    wanted: usize,
) -> Result<Vec<Witness>, Trouble> {
    let mut agreed: Vec<Witness> = Vec::new();
    for witness in witnesses {
        if agreed.iter().all(|it| it.node_id != witness.node_id) && agreed.len() < wanted {
            agreed.push(witness);
        }
    }
    if agreed.len() < NEEDED {
        let found: Vec<&str> = agreed.iter().map(|it| it.at.as_str()).collect();
        let what = format!(
            "{NEEDED} different nodes must vouch for block {height}, and only [{}] can",
            found.join(" ")
        );
        let hint =
            "name more nodes in rpcServers, or as peers; the log says what is wrong with each";
        return Err(Trouble::passing(TASK, "ask witnesses", what).hinting(hint));
    }
    let (first, rest) = (&agreed[0], &agreed[1..]);
    if let Some(other) = rest
        .iter()
        .find(|it| !it.hash.eq_ignore_ascii_case(&first.hash))
    {
        let what = format!(
            "witnesses contradict each other about block {height}: {} says {}, {} says {}",
            first.at, first.hash, other.at, other.hash
        );
        let hint =
            "one of them is of another chain or lies; leave it out of rpcServers or the peers";
        return Err(Trouble::lasting(TASK, "compare witnesses", what).hinting(hint));
    }
    Ok(agreed)
}
