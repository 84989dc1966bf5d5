//! Waiting for the node.

use super::not_there_yet;
use crate::site::Site;
use crate::work::{Done, Run};
use keelson_wire::TaskType;
use keelson_wire::params::AwaitCondition;

/// Waits for the node, then does something.
pub async fn wait(_: AwaitCondition, _: &Site, _: &Run) -> Done {
    not_there_yet(TaskType::AwaitCondition)
}
