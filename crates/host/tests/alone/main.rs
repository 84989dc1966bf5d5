//! The program with nobody but itself: roles, files, probes, and the webhook's answers over TLS.
//! There is no API server here, and nothing misses one.

#[path = "../common/mod.rs"]
mod common;
mod profiles;
mod questions;
mod roles;
