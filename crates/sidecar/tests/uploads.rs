//! What is brought to buckets and fetched from them by tasks: the genesis file, and snapshots. The
//! program itself before a real S3 server and folders.

#[path = "uploads/chain.rs"]
mod chain;
#[path = "uploads/choices.rs"]
mod choices;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "objects/gateway.rs"]
mod gateway;
#[path = "uploads/genesis.rs"]
mod genesis;
#[path = "uploads/interrupted.rs"]
mod interrupted;
#[path = "uploads/loops.rs"]
mod loops;
#[allow(dead_code, reason = "other tests use the rest")]
#[allow(
    clippy::zombie_processes,
    reason = "its guard waits for the end of this process"
)]
#[path = "chain/node.rs"]
mod node;
#[path = "uploads/packing.rs"]
mod packing;
#[path = "uploads/play.rs"]
mod play;
#[path = "uploads/snapshots.rs"]
mod snapshots;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "outside/stage.rs"]
mod stage;
#[path = "uploads/tap.rs"]
mod tap;
