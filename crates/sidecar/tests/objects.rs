//! Object storage and what is done with it: a real S3 server, folders, and the program between them.

#[path = "objects/decisions.rs"]
mod decisions;
#[path = "objects/faults.rs"]
mod faults;
#[path = "objects/gateway.rs"]
mod gateway;
#[path = "objects/line.rs"]
mod line;
#[path = "objects/pack.rs"]
mod pack;
#[path = "objects/refusals.rs"]
mod refusals;
#[path = "objects/restore.rs"]
mod restore;
#[allow(
    dead_code,
    reason = "a stage that is shared has more than one play needs"
)]
#[path = "outside/stage.rs"]
mod stage;
#[path = "objects/suite.rs"]
mod suite;
#[path = "objects/trials.rs"]
mod trials;
