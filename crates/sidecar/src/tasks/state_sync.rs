//! Switching state sync on.

use super::not_there_yet;
use crate::site::Site;
use crate::work::{Done, Run};
use keelson_wire::TaskType;
use keelson_wire::params::ConfigureStateSync;

/// Finds a block to trust and writes it.
pub async fn configure(_: ConfigureStateSync, _: &Site, _: &Run) -> Done {
    not_there_yet(TaskType::ConfigureStateSync)
}
