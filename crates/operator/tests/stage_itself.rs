//! The stage, tested by itself: what it plays is what real kubelets, proxies and sidecars do.

mod stage;

#[path = "stage_itself/caller.rs"]
mod caller;
#[path = "stage_itself/doors.rs"]
mod doors;
#[path = "stage_itself/many.rs"]
mod many;
#[path = "stage_itself/nodes.rs"]
mod nodes;
#[path = "stage_itself/pods.rs"]
mod pods;
#[path = "stage_itself/rendered.rs"]
mod rendered;
#[path = "stage_itself/tasks.rs"]
mod tasks;
