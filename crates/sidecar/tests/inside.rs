//! The sidecar's parts, without a process: pure decisions, the store's file, and the engine with
//! tasks that do as they are told.

#[path = "inside/approvals.rs"]
mod approvals;
#[path = "inside/decisions.rs"]
mod decisions;
#[path = "inside/ec2.rs"]
mod ec2;
#[path = "inside/engine.rs"]
mod engine;
#[path = "inside/holds.rs"]
mod holds;
#[path = "inside/rpc.rs"]
mod rpc;
#[path = "inside/settings.rs"]
mod settings;
#[path = "inside/stage.rs"]
mod stage;
#[path = "inside/store.rs"]
mod store;
