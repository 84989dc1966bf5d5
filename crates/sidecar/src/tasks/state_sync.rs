//! Switching state sync on: witnesses are found, a block they agree about is trusted, and both are
//! written.
//!
//! The marker says for which parameters what was written. A task whose parameters are those and whose
//! writing is still in the file has nothing to do and asks nobody; any other begins anew.

pub mod witness;

use crate::configuration::{self, Approval};
use crate::disk;
use crate::home::{Home, Marker};
use crate::site::Site;
use crate::work::{Done, Run, Trouble};
use keelson_seid_config::{
    Duration, File, StateSync, Texts, Value as Setting, patch_files, read, state_sync_patch,
    witness_candidates,
};
use keelson_wire::TaskType;
use keelson_wire::params::ConfigureStateSync;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub(crate) const TASK: &str = TaskType::ConfigureStateSync.as_str();
/// How far below the highest block the trusted one is.
const BEHIND: u64 = 2000;
/// How many peers may be asked, and how many of them are enough.
const PEERS: usize = 16;
const ENOUGH: usize = 2;

/// What is on the volume.
struct Found {
    texts: Texts,
    done: Option<Written>,
    snapshot: Option<u64>,
}

/// What the marker says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Written {
    /// For what.
    pub params: ConfigureStateSync,
    /// What was put into which file.
    pub files: Map<String, Value>,
}

impl Written {
    /// Whether it was for these parameters, and is still there.
    pub fn holds(&self, params: &ConfigureStateSync, texts: &Texts) -> bool {
        self.params == *params
            && patch_files(texts, &self.files).is_ok_and(|patched| patched == *texts)
    }
}

/// Finds a block to trust and writes it. The node is being set up.
pub async fn configure(params: ConfigureStateSync, site: &Site, run: &Run) -> Done {
    check(&params)?;
    let found = look(site).await?;
    if found.done.is_some_and(|it| it.holds(&params, &found.texts)) {
        tracing::info!("state sync is configured already");
        return Ok(None);
    }
    let (candidates, wanted) = candidates(&params, &found.texts)?;
    let given = match (params.use_local_snapshot, found.snapshot) {
        (false, _) => None,
        (true, Some(height)) => Some(height),
        (true, None) => return Err(no_snapshot(&site.home)),
    };
    let chain = &site.settings.chain_id;
    let trusting = run.until_stopped(TASK, trust(candidates, wanted, given, chain));
    let (height, witnesses) = trusting.await??;
    let patch = state_sync_patch(&StateSync {
        trust_height: i64::try_from(height).unwrap_or(i64::MAX),
        trust_hash: witnesses[0].hash.clone(),
        rpc_servers: witnesses.into_iter().map(|it| it.at).collect(),
        use_local_snapshot: params.use_local_snapshot,
        trust_period: params.trust_period.clone(),
        backfill_blocks: params.backfill_blocks,
    });
    let files = Map::from_iter([(File::Config.name().to_owned(), Value::Object(patch))]);
    write(site, Written { params, files }).await?;
    tracing::info!(height, "state sync is configured");
    Ok(None)
}

/// Whether what is given can be written.
fn check(params: &ConfigureStateSync) -> Result<(), Trouble> {
    let refused = |what| Err(Trouble::lasting(TASK, "read", what));
    let odd = |it: &&String| {
        it.is_empty() || it.contains(|it: char| ",/".contains(it) || it.is_whitespace())
    };
    if let Some(bad) = params.rpc_servers.iter().find(odd) {
        return refused(format!("{bad:?} is not a witness; write host:port"));
    }
    let period = &params.trust_period;
    if period.is_empty() {
        return Ok(());
    }
    match period.parse::<Duration>() {
        Ok(span) if span.nanoseconds() > 0 => Ok(()),
        Ok(_) => refused(format!(
            "a trustPeriod of {period} trusts nothing; write 168h"
        )),
        Err(bad) => refused(format!("trustPeriod: {bad}")),
    }
}

/// Who may vouch, and how many of them are enough: all that are named, or the first peers.
fn candidates(params: &ConfigureStateSync, texts: &Texts) -> Result<(Vec<String>, usize), Trouble> {
    if !params.rpc_servers.is_empty() {
        return Ok((params.rpc_servers.clone(), params.rpc_servers.len()));
    }
    let mut texts = texts.clone();
    // Peers are in the other file.
    texts.app.get_or_insert_default();
    let settings =
        read(&texts).map_err(|error| Trouble::lasting(TASK, "read", error.to_string()))?;
    let peers = match settings.get("network.p2p.persistent_peers") {
        Some(Setting::Text(peers)) => peers.as_str(),
        _ => "",
    };
    let candidates = peers.split(',').flat_map(witness_candidates).take(PEERS);
    let candidates: Vec<String> = candidates.collect();
    if candidates.is_empty() {
        let what = "there is nobody to ask: rpcServers is empty, and config.toml names no \
                    persistent-peers";
        let hint = "name witnesses in rpcServers, or run discover-peers before";
        return Err(Trouble::lasting(TASK, "find witnesses", what).hinting(hint));
    }
    Ok((candidates, ENOUGH))
}

/// The block to trust and who vouches for it: the one that is given, or one well below the highest.
async fn trust(
    candidates: Vec<String>,
    wanted: usize,
    given: Option<u64>,
    chain: &str,
) -> Result<(u64, Vec<witness::Witness>), Trouble> {
    let heard = witness::hear(candidates, chain).await?;
    let height = given.unwrap_or_else(|| below(witness::highest(&heard)));
    let witnesses = witness::ask(heard, height).await;
    Ok((height, witness::agreed(witnesses, height, wanted)?))
}

/// Well below the highest block, where nobody changes his mind; the first where there are not as many.
pub fn below(highest: u64) -> u64 {
    highest.saturating_sub(BEHIND).max(1)
}

async fn look(site: &Site) -> Result<Found, Trouble> {
    let home = site.home.clone();
    let looking = move || {
        let marker = disk::read(&home.marker(Marker::StateSync))?;
        Ok(Found {
            texts: configuration::read(&home)?,
            // The original's says nothing: then it is not known for what it stands.
            done: marker.and_then(|text| serde_json::from_str(&text).ok()),
            snapshot: newest(&home),
        })
    };
    blocking("read", looking).await
}

/// The height of the newest snapshot on the volume: folders have heights for names.
fn newest(home: &Home) -> Option<u64> {
    let entries = std::fs::read_dir(home.snapshots()).ok()?;
    let heights = entries.flatten().filter_map(|entry| {
        let folder = entry.file_type().is_ok_and(|it| it.is_dir());
        let height = entry.file_name().to_str()?.parse().ok()?;
        (folder && height > 0).then_some(height)
    });
    heights.max()
}

fn no_snapshot(home: &Home) -> Trouble {
    let what = format!("there is no snapshot in {}", home.snapshots().display());
    let hint = "run snapshot-restore before, or leave useLocalSnapshot out";
    Trouble::lasting(TASK, "find the snapshot", what).hinting(hint)
}

/// Files first, then the marker: a task that dies in between begins anew.
async fn write(site: &Site, written: Written) -> Result<(), Trouble> {
    let files = written.files.clone();
    let edit = move |before: &Texts| {
        patch_files(before, &files)
            .map_err(|error| Trouble::lasting(TASK, "write", error.to_string()))
    };
    site.change_configuration(TASK, Approval::Ended, edit)
        .await?;
    let path = site.home.marker(Marker::StateSync);
    let text = serde_json::to_string_pretty(&written);
    let text = text.map_err(|error| Trouble::lasting(TASK, "write", error.to_string()))?;
    blocking("write", move || {
        disk::replace(&path, text.as_bytes(), 0o644)
    })
    .await
}

async fn blocking<T: Send + 'static>(
    operation: &'static str,
    work: impl FnOnce() -> Result<T, disk::Trouble> + Send + 'static,
) -> Result<T, Trouble> {
    let problem = match tokio::task::spawn_blocking(work).await {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    Err(Trouble::passing(TASK, operation, problem))
}
