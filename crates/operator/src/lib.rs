//! The operator: controllers of `sei.io` and `nmstate.io`.
//!
//! A reconcile is five verbs: observe, validate, plan, act, report. What to do is decided in `plan`,
//! what objects look like in `render`; here is what looks at the cluster and the sidecars, does one
//! task at a time and says what came of it.

pub mod certificate;
pub mod claim;
pub mod cli;
pub mod controllers;
mod digest;
pub mod flaw;
pub mod host;
pub mod key;
pub mod metrics;
pub mod node;
pub mod nudge;
pub mod platform;
pub mod quantity;
pub mod rights;
pub mod run;
pub mod sidecar;
