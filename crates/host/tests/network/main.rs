//! Handlers on real hosts, as processes: NetworkManager, nmstate and the journal, with no API server.

#[path = "../common/mod.rs"]
mod common;

mod changes;
mod cost;
mod kills;
mod moments;
mod world;
