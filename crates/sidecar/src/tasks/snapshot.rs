//! Fetching a snapshot of the chain's state: found in the bucket, downloaded, verified and unpacked in
//! one pass, and put in place as one.
//!
//! It is unpacked beside its place. Only when its last byte is verified and on disk does it take the
//! place, and only then is the marker written; whatever dies before leaves something the next run
//! takes away and does again. It stages the snapshot and no more: seid applies it when state sync is
//! told to use it.

pub mod choice;
mod staging;
mod transfer;

use crate::disk;
use crate::home::Marker;
use crate::objects::Objects;
use crate::site::Site;
use crate::work::{Done, Run, Trouble};
use choice::{Choice, choose};
use keelson_wire::TaskType;
use keelson_wire::params::SnapshotRestore;
use serde::{Deserialize, Serialize};
use staging::Staging;

const TASK: &str = TaskType::SnapshotRestore.as_str();

/// What the marker says. The original's says nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Staged {
    chain: String,
    bucket: String,
    target_height: i64,
    key: String,
    height: u64,
}

/// Stages a snapshot.
pub async fn restore(params: SnapshotRestore, site: &Site, run: &Run) -> Done {
    let settings = &site.settings;
    match marker(site).await? {
        Before::Unsaid => Ok(None),
        Before::Nothing => fetch(params, None, site, run).await,
        Before::Staged(before)
            if before.chain == settings.chain_id
                && before.bucket == settings.snapshots.name
                && before.target_height == params.target_height =>
        {
            Ok(None)
        }
        Before::Staged(before) => fetch(params, Some(before), site, run).await,
    }
}

async fn fetch(params: SnapshotRestore, before: Option<Staged>, site: &Site, run: &Run) -> Done {
    let settings = &site.settings;
    let objects = Objects::open(&settings.snapshots, &settings.object_store)
        .map_err(|fault| fault.trouble(TASK, "open"))?;
    let prefix = choice::prefix(&settings.chain_id);
    let listed = run.until_stopped(TASK, objects.list(&prefix)).await?;
    let listed = listed.map_err(|fault| fault.trouble(TASK, "list"))?;
    let Some(choice) = choose(&settings.chain_id, &listed, params.target_height) else {
        return Err(none(
            params.target_height,
            &settings.snapshots.name,
            &prefix,
        ));
    };
    let staged = Staged {
        chain: settings.chain_id.clone(),
        bucket: settings.snapshots.name.clone(),
        target_height: params.target_height,
        key: choice.key.clone(),
        height: choice.height,
    };
    let there = before.is_some_and(|before| {
        (before.chain, before.bucket, before.key)
            == (
                staged.chain.clone(),
                staged.bucket.clone(),
                staged.key.clone(),
            )
    });
    if there {
        return note(site, &staged).await;
    }
    bring(&objects, &choice, site, run).await?;
    note(site, &staged).await
}

/// From the first byte that is written to the snapshot in its place.
async fn bring(objects: &Objects, choice: &Choice, site: &Site, run: &Run) -> Result<(), Trouble> {
    site.close_gate(TASK).await?;
    let staging = Staging::new(&site.home);
    let (begun, size, marker) = (
        staging.clone(),
        choice.size,
        site.home.marker(Marker::Snapshot),
    );
    blocking(move || {
        // It speaks of what is about to go.
        disk::remove(&marker).map_err(|it| of_disk("clear", &it))?;
        begun.begin(size)
    })
    .await?;
    let last = staging.clone();
    let placed = match transfer::fetch(objects, choice, staging.folder(), run).await {
        Ok(unpacked) => {
            let (files, bytes) = (unpacked.files, unpacked.bytes);
            tracing::info!(key = choice.key, files, bytes, "snapshot unpacked");
            blocking(move || last.place()).await
        }
        Err(trouble) => Err(trouble),
    };
    if placed.is_err() {
        // What cannot be cleared now is cleared by the next run.
        let _ = blocking(move || staging.clear()).await;
    }
    placed
}

/// Writes the height, for others, and then the marker.
async fn note(site: &Site, staged: &Staged) -> Done {
    let (home, staged) = (site.home.clone(), staged.clone());
    blocking(move || {
        let text = serde_json::to_string(&staged).unwrap_or_default();
        let height = staged.height.to_string();
        disk::replace(
            &home.marker(Marker::SnapshotHeight),
            height.as_bytes(),
            0o644,
        )
        .and_then(|()| disk::replace(&home.marker(Marker::Snapshot), text.as_bytes(), 0o644))
        .map_err(|it| of_disk("note", &it))
    })
    .await?;
    Ok(None)
}

/// What an earlier run left.
enum Before {
    /// Nothing.
    Nothing,
    /// The original's word that it is done.
    Unsaid,
    /// What is there.
    Staged(Staged),
}

async fn marker(site: &Site) -> Result<Before, Trouble> {
    let path = site.home.marker(Marker::Snapshot);
    blocking(move || {
        let text = disk::read(&path).map_err(|it| of_disk("look", &it))?;
        Ok(match text.as_deref().map(str::trim) {
            None => Before::Nothing,
            Some("") => Before::Unsaid,
            // What cannot be read is nobody's word.
            Some(text) => serde_json::from_str(text).map_or(Before::Nothing, Before::Staged),
        })
    })
    .await
}

fn none(target: i64, bucket: &str, prefix: &str) -> Trouble {
    let what = match target {
        0 => format!("no snapshots found in {bucket}/{prefix}"),
        target => format!("no snapshot found at or below height {target} in {bucket}/{prefix}"),
    };
    let hint = "check SEI_CHAIN_ID, SEI_SNAPSHOT_BUCKET and targetHeight";
    Trouble::lasting(TASK, "choose", what).hinting(hint)
}

/// Work that waits for the disk.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Trouble> + Send + 'static,
) -> Result<T, Trouble> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(Trouble::passing(TASK, "wait", error.to_string())),
    }
}

/// A trouble of the disk, with what to do about the two that people can do something about.
fn of_disk(operation: &'static str, error: &disk::Trouble) -> Trouble {
    use std::io::ErrorKind;
    let hint = match error.source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            Some("make room on the volume, or use a larger one")
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            Some("check that the volume is writable and owned by the user of the sidecar")
        }
        _ => None,
    };
    match hint {
        Some(hint) => Trouble::lasting(TASK, operation, error.to_string()).hinting(hint),
        None => Trouble::passing(TASK, operation, error.to_string()),
    }
}
