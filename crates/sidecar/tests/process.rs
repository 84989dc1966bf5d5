//! The node's process: found, stopped, restarted and waited for, with real processes. None is ever
//! signalled that was not started here: every one has a home of its own.

#[path = "process/conditions.rs"]
mod conditions;
#[path = "process/kubelet.rs"]
mod kubelet;
#[path = "process/matching.rs"]
mod matching;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "chain/node.rs"]
mod node;
#[path = "process/puppet.rs"]
mod puppet;
#[path = "process/reset.rs"]
mod reset;
#[path = "process/signals.rs"]
mod signals;
#[allow(dead_code, reason = "other tests use the rest")]
#[path = "outside/stage.rs"]
mod stage;
#[path = "process/stops.rs"]
mod stops;
