//! NMStates on a cluster that serves the types of OpenShift, as OpenShift publishes them, and of
//! prometheus-operator. Nothing of OpenShift runs: what its service-ca does is played. The type of its
//! cluster settings is a derived one, with two fields that newer versions have.

#[path = "host/delivered.rs"]
mod delivered;
#[path = "host/grounds.rs"]
mod grounds;
#[path = "host/matrix.rs"]
mod matrix;
#[path = "host/offers.rs"]
mod offers;
#[path = "host/played.rs"]
mod played;
#[path = "host/stage.rs"]
mod stage;

#[path = "host_openshift/installed.rs"]
mod installed;
#[path = "host_openshift/service_ca.rs"]
mod service_ca;
#[path = "host_openshift/wire.rs"]
mod wire;

/// The console's plugin, where one is wanted.
fn plugin() -> Option<keelson_operator::host::settings::ConsolePlugin> {
    Some(keelson_operator::host::settings::ConsolePlugin {
        image: "registry.example/plugin:test".to_owned(),
        name: "nmstate-console-plugin".to_owned(),
        port: 9443,
    })
}

/// The types of others that are served here.
fn types() -> Vec<String> {
    let mut types = keelson_testbed::openshift_crds().expect("the published types");
    types.push(keelson_testbed::derived_api_server_crd().expect("the derived type"));
    types.extend(installed::MONITORING.map(installed::stand_in));
    types
}
