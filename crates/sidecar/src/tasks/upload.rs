//! Uploading snapshots: the second newest, as one archive, when it was not uploaded before.
//!
//! The newest may still be written. What was uploaded last is noted on the volume, and only after the
//! last byte of it is in the bucket. A snapshot that is pruned or changed on the way leaves nothing
//! there.

mod choose;

pub use choose::{Choice, Last, choose};

use super::on_disk;
use crate::disk;
use crate::engine::policy::Lock;
use crate::home::{Home, Marker};
use crate::objects::{Fault, Objects, Writing};
use crate::pack::{NotPacked, Pipe, Tree, pack, pipe};
use crate::site::Site;
use crate::work::{Done, Run, Trouble};
use bytes::Bytes;
use jiff::Timestamp;
use keelson_wire::{SnapshotUploadResult, TaskType, UploadOutcome};
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

const ONCE: &str = TaskType::SnapshotUploadOnce.as_str();
const LOOP: &str = TaskType::SnapshotUpload.as_str();
/// What tells the snapshots apart, beside them.
const METADATA: &str = "metadata.db";
/// How long it may take to take away what was begun, when it is to stop.
const ABORT: Duration = Duration::from_secs(5);
/// How much sooner the engine's clock may ring than this task's.
const SLACK: Duration = Duration::from_millis(100);

/// Uploads one snapshot. The engine sees to it that no other upload is at work.
pub async fn upload_once(site: &Site, run: &Run) -> Done {
    let begun = Instant::now();
    let ended = pass(site, run, ONCE).await;
    let late = begun.elapsed() + SLACK >= site.settings.upload_timeout;
    // Who deletes a task knows; a deadline is a failure.
    if !run.cancel.is_cancelled() || late {
        tell(site, &ended);
    }
    ended.map(|result| serde_json::to_value(result).ok())
}

/// Uploads snapshots for as long as the node lives, whatever becomes of one.
pub async fn upload(site: &Site, run: &Run) -> Done {
    loop {
        let held = run
            .until_stopped(LOOP, site.locks.take(Lock::Upload))
            .await?;
        run.progress.begin();
        let ended = pass(site, run, LOOP).await;
        drop(held);
        if run.cancel.is_cancelled() {
            return Err(Trouble::stopped(LOOP));
        }
        tell(site, &ended);
        let interval = site.settings.upload_interval;
        run.progress.rest(shown(&ended, interval));
        run.until_stopped(LOOP, sleep(interval)).await?;
    }
}

/// Counts what came of an upload, and says what went wrong.
fn tell(site: &Site, ended: &Result<SnapshotUploadResult, Trouble>) {
    let outcome = match ended {
        Ok(result) => result.outcome,
        Err(trouble) => {
            tracing::warn!(%trouble, "no snapshot was uploaded");
            UploadOutcome::Error
        }
    };
    let now = Timestamp::now().as_second();
    site.metrics
        .upload_ended(&site.settings.chain_id, outcome, now);
}

/// What the loop shows of its last upload while it waits for the next.
fn shown(ended: &Result<SnapshotUploadResult, Trouble>, interval: Duration) -> Value {
    let now = Timestamp::now();
    let mut shown = match ended {
        Ok(result) => json!(result),
        Err(trouble) => json!({
            "outcome": UploadOutcome::Error,
            "error": trouble.to_string(),
            "retryable": trouble.retryable,
        }),
    };
    shown["endedAt"] = json!(now);
    if let Ok(next) = now.checked_add(interval) {
        shown["nextAt"] = json!(next);
    }
    shown
}

/// Says what was uploaded before the sidecar started.
pub fn remember(site: &Site) {
    let path = site.home.marker(Marker::LastUpload);
    let (chain, bucket) = (&site.settings.chain_id, &site.settings.snapshots.name);
    match disk::read(&path) {
        Ok(text) => {
            if let Some(last) = text.and_then(|text| Last::of(&text, chain, bucket)) {
                let (height, at) = (last.last_uploaded_height, last.last_uploaded_at);
                site.metrics.last_upload(chain, height, at);
            }
        }
        Err(error) => tracing::warn!(%error, "what was uploaded last is not known"),
    }
}

/// Looks for a snapshot to upload, and uploads it.
async fn pass(site: &Site, run: &Run, task: &'static str) -> Result<SnapshotUploadResult, Trouble> {
    let (chain, bucket) = (&site.settings.chain_id, &site.settings.snapshots.name);
    let home = site.home.clone();
    let looking = move || {
        let heights = heights(&home.snapshots())?;
        Ok((heights, disk::read(&home.marker(Marker::LastUpload))?))
    };
    let (heights, last) = on_disk(task, "look", looking).await?;
    let last = last.and_then(|text| Last::of(&text, chain, bucket));
    let height = match choose(&heights, last.as_ref()) {
        Choice::Upload(height) => height,
        Choice::Nothing(reason) => {
            return Ok(SnapshotUploadResult {
                outcome: UploadOutcome::Noop,
                noop_reason: Some(reason),
                height: None,
                key: None,
            });
        }
    };
    let folder = format!("{chain}/state-sync");
    let key = format!("{folder}/{height}.tar.gz");
    let fault = |fault: Fault| fault.trouble(task, "upload");
    let objects = Objects::open(&site.settings.snapshots, &site.settings.object_store);
    let objects = objects.map_err(fault)?;
    bring(&objects, &key, height, site, run, task).await?;
    let latest = format!("{folder}/latest.txt");
    let putting = objects.put(&latest, height.to_string(), "text/plain");
    run.until_stopped(task, putting).await?.map_err(fault)?;
    note(site, task, height).await?;
    Ok(SnapshotUploadResult {
        outcome: UploadOutcome::Uploaded,
        noop_reason: None,
        height: Some(height),
        key: Some(key),
    })
}

/// Snapshots that are there, finished or not.
fn heights(folder: &Path) -> Result<Vec<i64>, disk::Trouble> {
    let unlisted = |source: io::Error| disk::Trouble {
        path: folder.to_owned(),
        verb: "listed",
        source,
    };
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(unlisted)?,
    };
    let mut heights = Vec::new();
    for entry in entries {
        let entry = entry.map_err(unlisted)?;
        if entry.file_type().map_err(unlisted)?.is_dir() {
            heights.extend(choose::height(&entry.file_name().to_string_lossy()));
        }
    }
    Ok(heights)
}

/// Notes what was uploaded.
async fn note(site: &Site, task: &'static str, height: i64) -> Result<(), Trouble> {
    let last = Last {
        last_uploaded_height: height,
        last_uploaded_at: Timestamp::now().as_second(),
        chain: Some(site.settings.chain_id.clone()),
        bucket: Some(site.settings.snapshots.name.clone()),
    };
    let at = last.last_uploaded_at;
    let path = site.home.marker(Marker::LastUpload);
    let text = serde_json::to_string(&last).unwrap_or_default();
    let writing = move || disk::replace(&path, text.as_bytes(), 0o644);
    on_disk(task, "note", writing).await?;
    let chain = &site.settings.chain_id;
    site.metrics.last_upload(chain, height, at);
    Ok(())
}

/// Packs a snapshot and brings it to the bucket as it is packed. The object is there when all of it
/// is, and the snapshot was the same from beginning to end.
async fn bring(
    objects: &Objects,
    key: &str,
    height: i64,
    site: &Site,
    run: &Run,
    task: &'static str,
) -> Result<(), Trouble> {
    let copy = Copy::new(&site.home);
    let (home, to) = (site.home.clone(), copy.0.clone());
    let surveying = tokio::task::spawn_blocking(move || survey(&home, height, &to));
    let trees = packed(task, height, surveying.await)?;
    let total: u64 = trees.iter().map(Tree::bytes).sum();
    run.progress.expect(total);
    let beginning = objects.write(key, "application/gzip", total);
    let fault = |fault: Fault| fault.trouble(task, "upload");
    let mut writing = run.until_stopped(task, beginning).await?.map_err(fault)?;

    // Cancelled in whatever way this ends.
    let stop = run.cancel.child_token();
    let guard = stop.clone().drop_guard();
    let (end, mut pieces) = pipe();
    let progress = run.progress.clone();
    let packing = tokio::task::spawn_blocking(move || {
        let count = |bytes| progress.advance(bytes);
        write(&trees, end, &stop, &count)
    });
    let brought = run
        .until_stopped(task, carry(&mut writing, &mut pieces))
        .await;
    // Whoever still packs is told that nobody reads.
    drop((pieces, guard));
    let packing = packing.await;
    let problem = match (brought, packed(task, height, packing)) {
        (Ok(Ok(())), Ok(())) => {
            return run
                .until_stopped(task, writing.finish())
                .await?
                .map_err(fault);
        }
        (Ok(Err(lost)), _) => fault(lost),
        (Err(stopped), _) => stopped,
        (_, Err(unpacked)) => unpacked,
    };
    if timeout(ABORT, writing.abort()).await.is_err() {
        tracing::warn!(key, "what was begun in the bucket is left to its rules");
    }
    Err(problem)
}

async fn carry(writing: &mut Writing, pieces: &mut mpsc::Receiver<Bytes>) -> Result<(), Fault> {
    while let Some(piece) = pieces.recv().await {
        writing.take(piece).await?;
    }
    Ok(())
}

/// What is to be packed. The database beside the snapshots is the node's and is written while it runs.
fn survey(home: &Home, height: i64, copy: &Path) -> Result<Vec<Tree>, NotPacked> {
    let folder = home.snapshots();
    let mut trees = vec![Tree::survey(&folder, height.to_string())?];
    if folder.join(METADATA).exists() {
        trees.push(Tree::copy(&folder, Path::new(METADATA), copy)?);
    }
    Ok(trees)
}

fn write(
    trees: &[Tree],
    into: Pipe,
    stop: &CancellationToken,
    count: &dyn Fn(u64),
) -> Result<(), NotPacked> {
    let pipe = pack(trees, into, &|| stop.is_cancelled(), count)?;
    pipe.finish().map_err(|_| NotPacked::Stopped)
}

fn packed<T>(
    task: &'static str,
    height: i64,
    done: Result<Result<T, NotPacked>, tokio::task::JoinError>,
) -> Result<T, Trouble> {
    let (what, hint, retryable) = match done {
        Ok(Ok(done)) => return Ok(done),
        Ok(Err(NotPacked::Stopped)) => return Err(Trouble::stopped(task)),
        Ok(Err(error @ NotPacked::Changed { .. })) => (
            error.to_string(),
            Some("the node may prune its snapshots too soon: let it keep more of them"),
            true,
        ),
        Ok(Err(error)) => (error.to_string(), None, false),
        Err(error) => (error.to_string(), None, false),
    };
    Err(Trouble {
        task,
        operation: "pack",
        what: format!("snapshot {height} was not uploaded: {what}"),
        hint,
        retryable,
    })
}

/// A copy of what is written all the time; it goes when it was packed.
struct Copy(PathBuf);

impl Copy {
    fn new(home: &Home) -> Self {
        Self(home.tmp().join("snapshot-upload"))
    }
}

impl Drop for Copy {
    fn drop(&mut self) {
        // What is left is taken away by the next upload.
        let _ = disk::remove_folder(&self.0);
    }
}
