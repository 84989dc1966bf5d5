//! Finding peers.

use super::not_there_yet;
use crate::site::Site;
use crate::work::{Done, Run};
use keelson_wire::TaskType;
use keelson_wire::params::DiscoverPeers;

/// Finds peers and writes them.
pub async fn discover(_: DiscoverPeers, _: &Site, _: &Run) -> Done {
    not_there_yet(TaskType::DiscoverPeers)
}
