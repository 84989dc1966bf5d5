//! Handlers on real hosts, as processes, whose way to a real API server is cut in every way it can be.

#[path = "../common/mod.rs"]
mod common;

mod console;
mod cuts;
mod lock;
mod start;
mod story;
mod turns;
mod world;
