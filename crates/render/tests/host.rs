//! The objects of the host components from the outside: one decided installation in, objects out.

#[path = "../../seid-config/tests/config/committed.rs"]
mod committed;
#[path = "host/console.rs"]
mod console;
#[path = "host/golden.rs"]
mod golden;
#[path = "host/order.rs"]
mod order;
#[path = "host/placement.rs"]
mod placement;
#[path = "host/profile.rs"]
mod profile;
#[path = "host/reach.rs"]
mod reach;
#[path = "host/refused.rs"]
mod refused;
#[path = "host/rights.rs"]
mod rights;
#[path = "host/workloads.rs"]
mod workloads;
#[path = "host/world.rs"]
mod world;
