//! Finding peers: addresses that are written down, hosts that are asked who they are, and machines
//! that carry tags and are asked, too.
//!
//! Whoever does not answer is passed over and named in the log; a source of which nobody answers is an
//! error, and the files stay as they are.

use crate::configuration::Approval;
use crate::ec2;
use crate::node_id;
use crate::rpc::Rpc;
use crate::site::Site;
use crate::work::{Done, Run, Trouble};
use futures::StreamExt;
use futures::stream;
use keelson_seid_config::{File, patch_files, persistent_peers};
use keelson_wire::TaskType;
use keelson_wire::params::{DiscoverPeers, PeerSource};
use serde_json::{Map, Value};
use std::time::Duration;

const TASK: &str = TaskType::DiscoverPeers.as_str();
/// How long one host may take to say who it is.
const PROBE: Duration = Duration::from_secs(5);
/// How many are asked at a time.
const AT_ONCE: usize = 16;
const RPC_PORT: u16 = 26657;
const P2P_PORT: u16 = 26656;

/// Finds peers and writes them. The node runs on; the change is for its next start.
pub async fn discover(params: DiscoverPeers, site: &Site, run: &Run) -> Done {
    check(&params.sources)?;
    let home = site.home.clone();
    let own = tokio::task::spawn_blocking(move || node_id::node_id(&home)).await;
    // A node that has no key yet cannot be among those that answer.
    let own = own.ok().and_then(Result::ok);
    let peers = run
        .until_stopped(TASK, find(params.sources, own.as_deref()))
        .await??;
    let changes = Value::Object(persistent_peers(peers.iter().map(String::as_str)));
    let files = Map::from_iter([(File::Config.name().to_owned(), changes)]);
    let edit = move |before: &keelson_seid_config::Texts| {
        let refused =
            |error: &dyn std::error::Error| Trouble::lasting(TASK, "write", error.to_string());
        patch_files(before, &files).map_err(|error| refused(&error))
    };
    site.change_configuration(TASK, Approval::Carried, edit)
        .await?;
    tracing::info!(peers = peers.len(), "peers are written");
    Ok(None)
}

/// Whether what is written down can be written into the file, and hosts can be asked. That there is
/// something at all was seen when the task was submitted.
fn check(sources: &[PeerSource]) -> Result<(), Trouble> {
    let bad = sources.iter().find_map(|source| match source {
        PeerSource::Static { addresses } => {
            let bad = addresses.iter().find(|it| !is_address(it))?;
            Some(format!(
                "{bad:?} is not an address of a peer; write nodeId@host:port"
            ))
        }
        PeerSource::DnsEndpoints { endpoints } => {
            let bad = endpoints.iter().find(|it| !is_host(it))?;
            Some(format!(
                "{bad:?} is not a host; write a name or an address, without a port"
            ))
        }
        PeerSource::Ec2Tags { .. } => None,
    });
    match bad {
        Some(what) => Err(Trouble::lasting(TASK, "read", what)),
        None => Ok(()),
    }
}

/// What can stand between the commas of `persistent-peers`. The rest is seid's to judge.
fn is_address(text: &str) -> bool {
    let whole = !text.contains(|it: char| it == ',' || it.is_whitespace());
    whole
        && text
            .split_once('@')
            .is_some_and(|(id, host)| !id.is_empty() && !host.is_empty())
}

/// A name, or an address of either kind.
fn is_host(text: &str) -> bool {
    let plain = |it: char| it.is_ascii_alphanumeric() || "-._".contains(it);
    let bare = text.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
    let name = !text.is_empty() && text.chars().all(plain);
    name || bare.unwrap_or(text).parse::<std::net::Ipv6Addr>().is_ok()
}

/// The peers of all sources, in their order.
async fn find(sources: Vec<PeerSource>, own: Option<&str>) -> Result<Vec<String>, Trouble> {
    let mut peers = Vec::new();
    for source in sources {
        match source {
            PeerSource::Static { addresses } => peers.extend(addresses),
            PeerSource::DnsEndpoints { endpoints } => {
                peers.extend(ask("dnsEndpoints", &endpoints, own).await?);
            }
            PeerSource::Ec2Tags { region, tags } => {
                let found = ec2::running(|name| std::env::var(name).ok(), &region, &tags).await;
                let hosts = found.map_err(|trouble| match trouble.is_passing() {
                    true => Trouble::passing(TASK, "ask EC2", trouble.to_string()),
                    false => Trouble::lasting(TASK, "ask EC2", trouble.to_string()),
                })?;
                if hosts.is_empty() {
                    let tags: Vec<String> = tags.iter().map(|(k, v)| format!("{k}={v}")).collect();
                    let tags = tags.join(", ");
                    let what = format!("ec2Tags: no machine of {region} that runs has {tags}");
                    return Err(Trouble::passing(TASK, "ask EC2", what));
                }
                peers.extend(ask("ec2Tags", &hosts, own).await?);
            }
        }
    }
    Ok(peers)
}

/// Asks hosts who they are, and makes peers of those that say.
async fn ask(source: &str, hosts: &[String], own: Option<&str>) -> Result<Vec<String>, Trouble> {
    let asking = stream::iter(hosts.to_vec()).map(identify);
    let answers: Vec<_> = asking.buffered(AT_ONCE).collect().await;
    let (mut peers, mut silent) = (Vec::new(), Vec::new());
    for (host, answer) in hosts.iter().zip(answers) {
        match answer {
            // Not its own peer.
            Ok(id) if Some(id.as_str()) == own => {}
            Ok(id) => peers.push(format!("{id}@{}:{P2P_PORT}", in_url(host))),
            Err(problem) => {
                tracing::warn!(source, host, problem, "a peer is passed over");
                silent.push(problem);
            }
        }
    }
    if peers.is_empty() {
        let (all, last) = (hosts.len(), silent.pop());
        let last = last.unwrap_or_else(|| "the only one that does is this node".into());
        let what = format!("{source}: none of {all} hosts answers with its node id: {last}");
        return Err(Trouble::passing(TASK, "ask peers", what));
    }
    Ok(peers)
}

async fn identify(host: String) -> Result<String, String> {
    let base = format!("http://{}:{RPC_PORT}", in_url(&host));
    let status = Rpc::new(&base, PROBE).status().await;
    let id = status.map_err(|trouble| trouble.to_string())?.node_id;
    let digits = id.len() == 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    match digits {
        true => Ok(id.to_ascii_lowercase()),
        false => Err(format!("{base}/status names {id:?}, which is no node id")),
    }
}

/// An IPv6 address stands in brackets.
fn in_url(host: &str) -> String {
    match host.contains(':') && !host.starts_with('[') {
        true => format!("[{host}]"),
        false => host.to_owned(),
    }
}
