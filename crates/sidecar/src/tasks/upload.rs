//! Uploading snapshots.

use super::not_there_yet;
use crate::site::Site;
use crate::work::{Done, Run};
use keelson_wire::TaskType;

/// Uploads snapshots for as long as the node lives.
pub async fn upload(_: &Site, _: &Run) -> Done {
    not_there_yet(TaskType::SnapshotUpload)
}

/// Uploads one snapshot.
pub async fn upload_once(_: &Site, _: &Run) -> Done {
    not_there_yet(TaskType::SnapshotUploadOnce)
}
