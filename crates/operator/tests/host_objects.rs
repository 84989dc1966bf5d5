//! The rendered installation of the host components on a real API server: that every object is taken
//! and stays as it was applied, and what its rules and rights make of those who act on it.

#[path = "host_objects/accounts.rs"]
mod accounts;
#[path = "host_objects/applied.rs"]
mod applied;
#[path = "platform/deployed.rs"]
mod deployed;
#[path = "host_objects/handlers.rs"]
mod handlers;
#[path = "platform/install.rs"]
#[allow(dead_code, reason = "the install of nodes is not this one")]
mod install;
#[path = "host_objects/policies.rs"]
mod policies;
#[path = "host_objects/stage.rs"]
mod stage;
#[path = "../../render/tests/host/world.rs"]
#[allow(dead_code, reason = "only the installation itself is used here")]
mod world;
