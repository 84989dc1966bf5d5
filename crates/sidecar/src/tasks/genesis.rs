//! Writing the genesis file.

use super::not_there_yet;
use crate::site::Site;
use crate::work::{Done, Run};
use keelson_wire::TaskType;
use keelson_wire::params::ConfigureGenesis;

/// Writes the genesis file.
pub async fn configure(_: ConfigureGenesis, _: &Site, _: &Run) -> Done {
    not_there_yet(TaskType::ConfigureGenesis)
}
