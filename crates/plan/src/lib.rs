//! What to do to a node, and in which order: the decisions of the operator as values and pure
//! functions.
//!
//! [`drifts`] says how the world differs from the spec, [`Plan::new`] turns that into an ordered list
//! of steps, [`next`] says what to do now and [`Plan::record`] moves the list by one outcome. Nothing
//! here talks to anyone, reads a clock or draws an id: whoever calls says what was seen and what time
//! it is. How a task is done, what objects look like and how a plan is written into a status is for
//! others.
//!
//! Four rules hold everywhere:
//!
//! * *One order, written once*: the declaration order of [`Stage`] and [`Task`].
//! * *Co-drift is set union*: a plan's steps are the union of what its causes ask for, so two edits
//!   made together cost one pod cycle.
//! * *Whatever a task writes, drift reads*: a plan dropped half-way leaves nothing unseen.
//! * *What is not known is not drift*: a sidecar that does not answer starts nothing.

mod asks;
mod drift;
mod lint;
mod memory;
mod next;
mod observed;
mod plan;
mod target;
mod task;
mod waiting;

pub use drift::{Drift, drifts, outdated};
pub use lint::lint;
pub use memory::{Failure, Memory};
pub use next::{Next, next};
pub use observed::{Data, Observed, ProxyConfig, Running, Served};
pub use plan::{Entry, Plan, Progress, Verdict};
pub use target::{Keys, Pod, Source, Start, Target, Tls};
pub use task::{Stage, Step, Task};
pub use waiting::{Outcome, Waiting};
