//! The handler's dealings with a real API server, in good times and in outages: what it follows, whose
//! turn it is, what it tells, and that it tells nothing twice.

mod claims;
#[path = "../common/mod.rs"]
mod common;
mod events;
mod follow;
mod outbox;
mod states;
mod telling;
mod world;
