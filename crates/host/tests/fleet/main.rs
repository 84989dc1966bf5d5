//! Handlers on real hosts with a real API server: what policies ask of them, one host at a time and many
//! at once, and what they tell.

#[path = "../common/mod.rs"]
mod common;

#[path = "../examples/cables.rs"]
mod cables;
#[path = "../examples/files.rs"]
mod files;

mod brought;
mod known;
mod member;
mod policies;
mod refusals;
mod reporting;
mod rollout;
mod states;
mod undone;
mod world;
