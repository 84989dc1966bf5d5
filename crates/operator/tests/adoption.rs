//! Objects the original operator really wrote, taken over on a real control plane.
//!
//! They are not part of this workspace: where they are not beside it, every test here says so and
//! passes.

mod stage;

#[path = "node/operator.rs"]
mod operator;

#[path = "adoption/original.rs"]
mod original;

#[path = "adoption/after.rs"]
mod after;
#[path = "adoption/plans.rs"]
mod plans;
#[path = "adoption/taken.rs"]
mod taken;
