//! Fetching a snapshot of the chain's state.

use super::not_there_yet;
use crate::site::Site;
use crate::work::{Done, Run};
use keelson_wire::TaskType;
use keelson_wire::params::SnapshotRestore;

/// Stages a snapshot.
pub async fn restore(_: SnapshotRestore, _: &Site, _: &Run) -> Done {
    not_there_yet(TaskType::SnapshotRestore)
}
