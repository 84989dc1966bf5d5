//! What the controller of NMStates decides, without a cluster: functions of what was seen and when.

#[path = "host_decisions/certificates.rs"]
mod certificates;
#[path = "host_decisions/farewells.rs"]
mod farewells;
#[path = "host_decisions/intervals.rs"]
mod intervals;
#[path = "host_decisions/platform.rs"]
mod platform;
#[path = "host_decisions/policies.rs"]
mod policies;
#[path = "host_decisions/profile.rs"]
mod profile;
#[path = "host_decisions/replicas.rs"]
mod replicas;
#[path = "host_decisions/status.rs"]
mod status;
#[path = "host_decisions/store.rs"]
mod store;
