//! NMStates on a real control plane: everything that is rendered applied, kept so and reported, with
//! the real type of OpenShift's cluster settings.

#[path = "host/delivered.rs"]
mod delivered;
#[path = "host/grounds.rs"]
mod grounds;
#[path = "host/hosts.rs"]
mod hosts;
#[path = "host/matrix.rs"]
mod matrix;
#[path = "host/offers.rs"]
mod offers;
#[path = "host/played.rs"]
mod played;
#[path = "host/stage.rs"]
mod stage;

#[path = "host/account.rs"]
mod account;
#[path = "host/certificates.rs"]
mod certificates;
#[path = "host/installed.rs"]
mod installed;
#[path = "host/nudge.rs"]
mod nudge;
#[path = "host/platform.rs"]
mod platform;
#[path = "host/policies.rs"]
mod policies;
#[path = "host/profile.rs"]
mod profile;
#[path = "host/trouble.rs"]
mod trouble;
#[path = "host/wire.rs"]
mod wire;

/// The console's plugin, where one is wanted.
fn plugin() -> Option<keelson_operator::host::settings::ConsolePlugin> {
    None
}

/// The types of others that are served here.
fn types() -> Vec<String> {
    vec![keelson_testbed::api_server_crd().expect("the published type")]
}
