//! Stopping and restarting seid.

use super::not_there_yet;
use crate::site::Site;
use crate::work::{Done, Run};
use keelson_wire::TaskType;

/// Stops seid.
pub async fn stop(_: &Site, _: &Run) -> Done {
    not_there_yet(TaskType::StopSeid)
}

/// Stops seid and waits until it serves again.
pub async fn restart(_: &Site, _: &Run) -> Done {
    not_there_yet(TaskType::RestartSeid)
}
