//! The container of the proxy, the only way to the sidecar.
//!
//! Ours is told its mode and policy by a file it follows, so its arguments are the same in every TLS
//! state. kube-rbac-proxy gets the original's arguments, and TLS is among them.

use k8s_openapi::api::core::v1::{Container, Probe};
use keelson_api::names::Port;

use super::{ALWAYS, Pace, apart, get, port, read_only, resources};
use crate::node::Node;
use crate::platform::Platform;
use crate::pod::{PROXY_CONFIG, TLS};
use crate::proxy_config::{self, FILE};
use crate::{names, tls};

/// The container's name.
pub(crate) const NAME: &str = "kube-rbac-proxy";
const FOLDER: &str = "/etc/kube-rbac-proxy";

/// The proxy.
pub(crate) fn container(node: &Node<'_>, platform: &Platform) -> Container {
    let ours = platform.proxy.reloads;
    let mut mounts = vec![read_only(PROXY_CONFIG, FOLDER)];
    if mounts_tls(node, platform) {
        mounts.push(read_only(TLS, tls::FOLDER));
    }
    let mut ports = vec![port(Port::Api, Port::Api.number())];
    if ours {
        ports.push(port(Port::ProxyHealth, Port::ProxyHealth.number()));
    }
    Container {
        name: NAME.to_owned(),
        image: Some(platform.proxy.program.image.clone()),
        args: Some(if ours {
            arguments(node, platform)
        } else {
            original_arguments(node, platform)
        }),
        ports: Some(ports),
        // kube-rbac-proxy has no port of its own to ask, and a probe of 8443 asks the sidecar.
        startup_probe: ours.then(|| health(5, 60)),
        liveness_probe: ours.then(|| health(10, 3)),
        resources: Some(resources(&platform.proxy.program.size)),
        restart_policy: Some(ALWAYS.to_owned()),
        security_context: Some(apart()),
        volume_mounts: Some(mounts),
        ..Container::default()
    }
}

/// Ours has the Secret mounted before there is one; kube-rbac-proxy is given it with its flags.
pub(crate) fn mounts_tls(node: &Node<'_>, platform: &Platform) -> bool {
    platform.proxy.reloads || tls::wanted(node)
}

fn arguments(node: &Node<'_>, platform: &Platform) -> Vec<String> {
    let audiences: Vec<_> = [names::audience(node.name, node.namespace)]
        .into_iter()
        .chain(platform.proxy.audiences.iter().cloned())
        .collect();
    vec![
        listen("--listen-address", Port::Api),
        listen("--health-listen-address", Port::ProxyHealth),
        upstream(node),
        config_file(),
        "--strict-config".to_owned(),
        "--auth-header-fields-enabled=true".to_owned(),
        format!("--auth-token-audiences={}", audiences.join(",")),
        "--v=0".to_owned(),
    ]
}

fn original_arguments(node: &Node<'_>, platform: &Platform) -> Vec<String> {
    let open = proxy_config::open_paths(platform).join(",");
    let tls = tls::wanted(node);
    let address = if tls {
        "--secure-listen-address"
    } else {
        "--insecure-listen-address"
    };
    let mut arguments = vec![listen(address, Port::Api), upstream(node), config_file()];
    if tls {
        arguments.push(format!("--tls-cert-file={}", tls::CERT_FILE));
        arguments.push(format!("--tls-private-key-file={}", tls::KEY_FILE));
        arguments.push("--tls-reload-interval=30s".to_owned());
    }
    arguments.push(format!("--ignore-paths={open}"));
    arguments.push("--auth-header-fields-enabled=true".to_owned());
    arguments.push("--v=0".to_owned());
    arguments
}

fn listen(flag: &str, port: Port) -> String {
    format!("{flag}=0.0.0.0:{}", port.number())
}

fn upstream(node: &Node<'_>) -> String {
    format!("--upstream=http://127.0.0.1:{}/", node.sidecar_port)
}

fn config_file() -> String {
    format!("--config-file={FOLDER}/{FILE}")
}

fn health(period: i32, failures: i32) -> Probe {
    let pace = Pace {
        delay: 0,
        period,
        failures,
        timeout: 3,
    };
    get("/healthz", Port::ProxyHealth, pace)
}
