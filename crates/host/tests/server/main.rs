//! The roles with a real API server: its writes pass the webhook, its objects are counted, and it
//! decides who may read the counts.

mod address;
mod admission;
#[path = "../common/mod.rs"]
mod common;
mod door;
mod memory;
mod series;
mod world;
