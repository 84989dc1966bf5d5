//! The node's own containers: the one that makes its home, and the one that is the node.

use k8s_openapi::api::core::v1::{Container, ExecAction, Lifecycle, LifecycleHandler, Probe};
use keelson_api::names::Port;

use super::{ABOVE_HOME, DATA, HOME, Pace, confined, env, get, mount, port, read_only, resources};
use crate::node::Node;
use crate::platform::{Platform, Size};
use crate::pod::{Key, Kind};
use crate::script::{self, CHAIN_VARIABLE};

/// The container that is the node.
pub(crate) const NAME: &str = "seid";
/// The container that makes its home.
pub(crate) const INIT_NAME: &str = "seid-init";

/// Ports of the node's process, in the order of its Service.
pub(crate) const PORTS: [Port; 7] = [
    Port::EvmRpc,
    Port::EvmWs,
    Port::Grpc,
    Port::Rest,
    Port::P2p,
    Port::Rpc,
    Port::Metrics,
];

/// Seconds a pod that is going away still serves, while Services forget it.
const DRAIN: &str = "5";

/// The size of the node's process: by role, the same for both kinds of pod.
pub(crate) fn size<'a>(node: &Node<'_>, platform: &'a Platform) -> &'a Size {
    &crate::pod::class(node, platform).size
}

/// Makes the home of a node that has none. It is given the node's size, which costs nothing: the
/// node's own container asks for it after this one has ended.
pub(crate) fn init(node: &Node<'_>, platform: &Platform, kind: Kind<'_>) -> Container {
    Container {
        name: INIT_NAME.to_owned(),
        image: Some(kind.image(node).to_owned()),
        command: Some(script::init()),
        env: Some(vec![
            env("HOME", ABOVE_HOME),
            env(CHAIN_VARIABLE, &node.spec.chain_id),
        ]),
        resources: Some(resources(size(node, platform))),
        security_context: Some(confined()),
        volume_mounts: Some(vec![mount(DATA, HOME)]),
        ..Container::default()
    }
}

/// The node.
pub(crate) fn main(node: &Node<'_>, platform: &Platform, kind: Kind<'_>) -> Container {
    let mut mounts = vec![mount(DATA, HOME)];
    mounts.extend(kind.keys(node).iter().filter_map(Key::file_mount));
    let serves = matches!(kind, Kind::Node);
    Container {
        name: NAME.to_owned(),
        image: Some(kind.image(node).to_owned()),
        command: Some(script::start(node, kind)),
        env: Some(vec![
            env("HOME", ABOVE_HOME),
            env("TMPDIR", format!("{HOME}/tmp")),
        ]),
        ports: serves.then(|| PORTS.map(|it| port(it, it.number())).to_vec()),
        readiness_probe: serves.then(readiness),
        lifecycle: serves.then(drain),
        resources: Some(resources(size(node, platform))),
        security_context: Some(confined()),
        volume_mounts: Some(mounts),
        ..Container::default()
    }
}

/// Ready is a node that keeps up with the chain. There is no liveness probe: a node that replays
/// blocks answers nobody for hours. There is no startup probe: the gate is in the command.
fn readiness() -> Probe {
    let pace = Pace {
        delay: 30,
        period: 10,
        failures: 3,
        timeout: 5,
    };
    get("/lag_status", Port::Rpc, pace)
}

fn drain() -> Lifecycle {
    let command = ["/bin/sleep", DRAIN].map(str::to_owned).to_vec();
    Lifecycle {
        pre_stop: Some(LifecycleHandler {
            exec: Some(ExecAction {
                command: Some(command),
            }),
            ..LifecycleHandler::default()
        }),
        ..Lifecycle::default()
    }
}

impl Key<'_> {
    /// The file in the node's configuration folder. A file that is mounted alone is never refreshed:
    /// an edit of the Secret cannot change a consensus key under a running node.
    fn file_mount(&self) -> Option<k8s_openapi::api::core::v1::VolumeMount> {
        let file = self.file?;
        let mut mount = read_only(self.volume, &format!("{HOME}/config/{file}"));
        mount.sub_path = Some(file.to_owned());
        Some(mount)
    }
}
