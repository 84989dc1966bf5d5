//! Emptying the data folder.

use super::not_there_yet;
use crate::site::Site;
use crate::work::{Done, Run};
use keelson_wire::TaskType;

/// Empties the data folder.
pub async fn reset(_: &Site, _: &Run) -> Done {
    not_there_yet(TaskType::ResetData)
}
