//! NMStates on a real control plane: everything that is rendered applied, kept so and reported, with
//! the real type of OpenShift's cluster settings.

#[path = "host/stage.rs"]
mod stage;

#[path = "host/account.rs"]
mod account;
#[path = "host/certificates.rs"]
mod certificates;
#[path = "host/installed.rs"]
mod installed;
#[path = "host/platform.rs"]
mod platform;
#[path = "host/profile.rs"]
mod profile;
