//! The controller of SeiNodes while the API server, the network or sidecars fail, and while another
//! operator is at work too.

mod stage;

#[path = "node/operator.rs"]
mod operator;

#[path = "faults/another.rs"]
mod another;
#[path = "faults/api_server.rs"]
mod api_server;
#[path = "faults/bindings.rs"]
mod bindings;
#[path = "faults/sidecars.rs"]
mod sidecars;
#[path = "faults/stale.rs"]
mod stale;
#[path = "cuts/toll.rs"]
mod toll;
