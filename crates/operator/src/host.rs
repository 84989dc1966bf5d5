//! The host components: what an NMState asks for, brought about and kept so.
//!
//! Decisions are functions of what was seen and of a time they are given: what the cluster can do
//! ([`platform`]), which TLS profile holds ([`profile`]).

pub mod certificates;
pub mod platform;
pub mod profile;
pub mod replicas;
pub mod status;
