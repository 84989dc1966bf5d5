//! What the crate does with a real API server, and with one that misbehaves.

mod access;
mod apply;
mod calls;
mod events;
mod lease;
mod mirror;
mod stage;
mod troubles;
