//! The controller of SeiNodes dies at every point of every plan, and another takes over; and specs are
//! edited at every step.

mod stage;

#[path = "node/operator.rs"]
mod operator;

#[path = "cuts/crowd.rs"]
mod crowd;
#[path = "cuts/every_point.rs"]
mod every_point;
#[path = "cuts/every_step.rs"]
mod every_step;
#[path = "cuts/guard.rs"]
mod guard;
#[path = "cuts/kind.rs"]
mod kind;
#[path = "cuts/rounds.rs"]
mod rounds;
#[path = "cuts/toll.rs"]
mod toll;
#[path = "cuts/uncut.rs"]
mod uncut;
