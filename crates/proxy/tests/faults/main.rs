//! The program before an API server that fails: what each caller gets, how soon, and how often the
//! API server is asked for it.

#[path = "../common/mod.rs"]
mod common;
mod outages;
mod stage;
