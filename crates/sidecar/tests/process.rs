//! The node's process: found, stopped, restarted and waited for, with real processes. None is ever
//! signalled that was not started here: every one has a home of its own.

#[path = "process/matching.rs"]
mod matching;
#[path = "process/puppet.rs"]
mod puppet;
#[path = "process/signals.rs"]
mod signals;
