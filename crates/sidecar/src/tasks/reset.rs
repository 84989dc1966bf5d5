//! Emptying the data folder, so that the node begins anew.
//!
//! Nothing is touched while the node runs, and nothing of a validator's ever: what it has signed
//! stands there, and a validator that forgets may sign twice. The gate is closed before the first
//! file goes, and stays closed for a sidecar that dies on the way; the next one takes the task up and
//! goes on where things are. Only what is inside the data folder goes, and the notes on the volume
//! that speak of it.

use super::process::{Presence, look};
use crate::configuration;
use crate::disk;
use crate::fault::{Point, point};
use crate::home::{Home, Marker};
use crate::site::Site;
use crate::work::{Done, Run, Trouble};
use keelson_wire::{ResetDataResult, TaskType};
use std::fs::{self, DirBuilder, DirEntry};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

const TASK: &str = TaskType::ResetData.as_str();
/// What a key that has signed nothing has signed.
const NOTHING_SIGNED: &str = "{\"height\":\"0\",\"round\":0,\"step\":0}\n";
/// Notes that would be wrong without the data: the staged snapshot is part of it.
const NOTES: [Marker; 3] = [Marker::StateSync, Marker::Snapshot, Marker::SnapshotHeight];

/// Empties the data folder.
pub async fn reset(site: &Site, run: &Run) -> Done {
    match configuration::is_validator(&site.home).await {
        Ok(false) => {}
        Ok(true) => {
            return Err(refused(
                "this node is a validator: without its data it may sign twice".into(),
            ));
        }
        Err(error) => {
            return Err(refused(format!(
                "whether this node is a validator cannot be told: {error}"
            )));
        }
    }
    run.until_stopped(TASK, is_away(site)).await??;
    site.close_gate(TASK).await?;
    // Whoever came past the gate before it closed is seen now.
    run.until_stopped(TASK, is_away(site)).await??;
    let (home, of_run) = (site.home.clone(), run.clone());
    let wiped = tokio::task::spawn_blocking(move || wipe(&home, &of_run)).await;
    let problem = match wiped {
        Ok(Ok(wiped_bytes)) => {
            return Ok(serde_json::to_value(ResetDataResult { wiped_bytes }).ok());
        }
        Ok(Err(error)) => error.to_string(),
        Err(error) => error.to_string(),
    };
    Err(Trouble {
        task: TASK,
        operation: "wipe",
        what: problem,
        hint: None,
        retryable: true,
    })
}

/// Refuses unless the node is away.
async fn is_away(site: &Site) -> Result<(), Trouble> {
    let what = match look(TASK, site).await? {
        Presence::Away => return Ok(()),
        Presence::Seen(found) => {
            let pids: Vec<String> = found
                .nodes
                .iter()
                .map(|node| node.pid.to_string())
                .collect();
            format!("seid runs (process {})", pids.join(", "))
        }
        Presence::Hidden(what) => what,
    };
    Err(Trouble {
        hint: Some("submit mark-not-ready and stop-seid first"),
        ..refused(format!(
            "{what}: the data of a node that runs is not touched"
        ))
    })
}

/// Takes everything out of the data folder; says how many bytes that were, or -1 where that cannot
/// be told.
fn wipe(home: &Home, run: &Run) -> Result<i64, disk::Trouble> {
    for note in NOTES {
        disk::remove(&home.marker(note))?;
    }
    let data = home.data();
    DirBuilder::new()
        .recursive(true)
        .mode(0o750)
        .create(&data)
        .map_err(disk::trouble(&data, "made"))?;
    let signed = home.signed();
    let entries = fs::read_dir(&data)
        .and_then(Iterator::collect::<io::Result<Vec<DirEntry>>>)
        .map_err(disk::trouble(&data, "listed"))?;
    let sizes: Vec<Option<u64>> = entries.iter().map(|it| size(&it.path()).ok()).collect();
    let total: Option<u64> = sizes.iter().copied().sum();
    if let Some(total) = total {
        run.progress.expect(total);
    }
    for (entry, size) in entries.iter().zip(sizes) {
        let path = entry.path();
        // What was signed is replaced at once when all else is gone, and is never away.
        if path != signed {
            stopped(run, &path)?;
            point(Point::WipeBefore);
            remove(&path).map_err(disk::trouble(&path, "removed"))?;
            point(Point::WipeAfter);
        }
        run.progress.advance(size.unwrap_or_default());
    }
    disk::replace(&signed, NOTHING_SIGNED.as_bytes(), 0o600)?;
    Ok(total.and_then(|it| i64::try_from(it).ok()).unwrap_or(-1))
}

/// A task that is told to stop does so between two entries.
fn stopped(run: &Run, path: &Path) -> Result<(), disk::Trouble> {
    match run.cancel.is_cancelled() {
        false => Ok(()),
        true => {
            let told = io::Error::new(io::ErrorKind::Interrupted, "the task was told to stop");
            Err(disk::trouble(path, "removed")(told))
        }
    }
}

/// Bytes of the files in it; links are not followed.
fn size(path: &Path) -> io::Result<u64> {
    let about = fs::symlink_metadata(path)?;
    if !about.is_dir() {
        return Ok(if about.is_file() { about.len() } else { 0 });
    }
    fs::read_dir(path)?.try_fold(0, |sum, entry| Ok(sum + size(&entry?.path())?))
}

/// Links are removed, not what they lead to.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(about) if about.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn refused(what: String) -> Trouble {
    Trouble {
        task: TASK,
        operation: "refuse",
        what,
        hint: None,
        retryable: false,
    }
}
