//! What is brought to buckets and fetched from them by tasks: the genesis file, and snapshots. The
//! program itself before a real S3 server and folders.

#[allow(dead_code, reason = "other tests use the rest")]
#[path = "objects/gateway.rs"]
mod gateway;
#[path = "uploads/genesis.rs"]
mod genesis;
#[path = "uploads/play.rs"]
mod play;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "outside/stage.rs"]
mod stage;
