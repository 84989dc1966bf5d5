//! The controller of SeiNodes on a real control plane, with played kubelets and sidecars.

mod stage;

#[path = "node/operator.rs"]
mod operator;

#[path = "fields/mark.rs"]
mod mark;

#[path = "node/first.rs"]
mod first;
