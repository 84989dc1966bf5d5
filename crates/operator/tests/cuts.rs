//! The controller of SeiNodes dies at every point of every plan, and another takes over.

mod stage;

#[path = "node/operator.rs"]
mod operator;

#[path = "cuts/crowd.rs"]
mod crowd;
#[path = "cuts/every_point.rs"]
mod every_point;
#[path = "cuts/guard.rs"]
mod guard;
#[path = "cuts/kind.rs"]
mod kind;
#[path = "cuts/toll.rs"]
mod toll;
