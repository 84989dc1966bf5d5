//! The container of the exporter of chain metrics.
//!
//! It has no probe: metrics must not decide whether a node is ready or lives, and what it asks is
//! not there on every node. It stands after the node and never among what is started before it.

use k8s_openapi::api::core::v1::Container;
use keelson_api::names::Port;

use super::{SCRATCH, apart, mount, port, resources};
use crate::platform::Platform;

/// The container's name.
pub(crate) const NAME: &str = "cosmos-exporter";

/// The exporter.
pub(crate) fn container(platform: &Platform) -> Container {
    let listen = format!(":{}", Port::CosmosMetrics.number());
    let arguments = [
        "--denom",
        "usei",
        "--denom-coefficient",
        "1000000",
        "--bech-prefix",
        "sei",
        "--listen-address",
        &listen,
    ];
    Container {
        name: NAME.to_owned(),
        image: Some(platform.exporter.image.clone()),
        args: Some(arguments.map(str::to_owned).to_vec()),
        ports: Some(vec![port(
            Port::CosmosMetrics,
            Port::CosmosMetrics.number(),
        )]),
        resources: Some(resources(&platform.exporter.size)),
        security_context: Some(apart()),
        volume_mounts: Some(vec![mount(SCRATCH, "/tmp")]),
        ..Container::default()
    }
}
