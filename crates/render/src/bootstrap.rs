//! The Job that replays a snapshot to its height before the node's own pod exists.

use k8s_openapi::api::batch::v1::{Job, JobSpec};
use keelson_api::snapshot::SnapshotSource;

use crate::node::{Node, Unrenderable};
use crate::platform::Platform;
use crate::pod::{self, Kind, Replay};
use crate::{metadata, names};

/// How long a finished Job is kept for someone to read its log.
const KEPT_SECONDS: i32 = 3600;

/// What the bootstrap pod of a node does: the image the snapshot names, or the node's own, up to the
/// snapshot's target height.
pub fn replay<'a>(node: &Node<'a>) -> Result<Replay<'a>, Unrenderable> {
    let snapshot: &SnapshotSource = node.spec.snapshot().ok_or(Unrenderable::NoSnapshot)?;
    let s3 = snapshot.s3.as_ref().ok_or(Unrenderable::NoSnapshot)?;
    let image = snapshot.bootstrap_image.as_deref();
    Ok(Replay {
        image: image
            .filter(|it| !it.is_empty())
            .unwrap_or(&node.spec.image),
        halt_height: s3.target_height,
    })
}

/// The Job. It is not tried again by itself: what failed is for the operator to look at.
pub fn job(node: &Node<'_>, platform: &Platform) -> Result<Job, Unrenderable> {
    let name = names::bootstrap_job(node.name);
    Ok(Job {
        metadata: metadata::owned(node, name, metadata::bootstrap_labels(node)),
        spec: Some(JobSpec {
            backoff_limit: Some(0),
            ttl_seconds_after_finished: Some(KEPT_SECONDS),
            template: pod::template(node, platform, Kind::Bootstrap(replay(node)?))?,
            ..JobSpec::default()
        }),
        status: None,
    })
}
