//! The kinds of plans: how each is brought about, and how many pods it may cost.

use keelson_api::SeiNode;
use keelson_render::Platform;
use serde_json::json;

use crate::stage::objects::{original_proxy, tls_by_issuer};
use crate::stage::{Scene, platform};

/// What brings a plan about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    Genesis,
    StateSync,
    S3,
    Ceremony,
    Bootstrap,
    Image,
    SidecarImage,
    Overrides,
    Peers,
    Approval,
    TlsOn,
    TlsSwap,
    TlsOff,
    BothOn,
    BothOff,
    FlagsOn,
    FlagsOff,
}

/// Plans that set a node up.
pub(crate) const BIRTHS: [Kind; 5] = [
    Kind::Genesis,
    Kind::StateSync,
    Kind::S3,
    Kind::Ceremony,
    Kind::Bootstrap,
];

/// Plans that change a node that runs, in an order in which one node can go through all of them.
pub(crate) const EDITS: [Kind; 10] = [
    Kind::Image,
    Kind::SidecarImage,
    Kind::Overrides,
    Kind::Peers,
    Kind::Approval,
    Kind::TlsOn,
    Kind::TlsSwap,
    Kind::TlsOff,
    Kind::BothOn,
    Kind::BothOff,
];

/// Changes of TLS under kube-rbac-proxy, which has it in its flags.
pub(crate) const ORIGINAL_EDITS: [Kind; 2] = [Kind::FlagsOn, Kind::FlagsOff];

/// Issuers the edits take turns with.
pub(crate) const ISSUERS: [&str; 2] = ["first-issuer", "second-issuer"];

impl Kind {
    /// How many pods are deleted.
    pub(crate) fn pods(self) -> usize {
        match self {
            // The pod of the Job goes with it.
            Self::Bootstrap => 1,
            Self::Image | Self::BothOn | Self::BothOff | Self::FlagsOn | Self::FlagsOff => 1,
            _ => 0,
        }
    }

    /// The platform it happens on.
    pub(crate) fn platform(self) -> Platform {
        match ORIGINAL_EDITS.contains(&self) {
            true => original_proxy(),
            false => platform(),
        }
    }

    /// Brings it about.
    pub(crate) async fn begin(self, scene: &Scene, name: &str) {
        let tls = |issuer: usize| tls_by_issuer(ISSUERS[issuer]);
        let peer = format!("{}@203.0.113.1:26656", "0".repeat(40));
        let edit = match self {
            Self::Approval => return scene.disapprove(name),
            Self::Genesis => return made(scene.full_node(name, json!({})).await),
            Self::StateSync => {
                let block = json!({ "snapshot": {
                    "stateSync": {}, "rpcServers": ["one.example:26657", "two.example:26657"],
                }});
                return made(scene.node(name, "fullNode", block, json!({})).await);
            }
            Self::S3 => {
                let block = json!({ "snapshot": { "s3": { "targetHeight": 100 } } });
                return made(scene.node(name, "fullNode", block, json!({})).await);
            }
            Self::Ceremony => {
                let block = json!({ "genesisCeremony": {
                    "chainId": "born-1", "stakingAmount": "1usei", "accountBalance": "2usei",
                }});
                return made(scene.node(name, "validator", block, json!({})).await);
            }
            Self::Bootstrap => return made(scene.bootstrapped(name, 100, json!({})).await),
            Self::Image => json!({ "image": "registry.example/seid:v6.1.0" }),
            Self::SidecarImage => json!({ "sidecar": { "image": "registry.example/sidecar:2" } }),
            Self::Overrides => json!({ "overrides": { "logging.level": "debug" } }),
            Self::Peers => json!({ "peers": [{ "static": { "addresses": [peer] } }] }),
            Self::TlsOn | Self::FlagsOn => json!({ "sidecar": tls(0) }),
            Self::TlsSwap => json!({ "sidecar": tls(1) }),
            Self::TlsOff | Self::FlagsOff => json!({ "sidecar": { "tls": null } }),
            Self::BothOn => json!({ "image": "registry.example/seid:v6.2.0", "sidecar": tls(0) }),
            Self::BothOff => json!({
                "image": "registry.example/seid:v6.3.0", "sidecar": { "tls": null },
            }),
        };
        drop(scene.edit(name, edit).await);
    }

    /// Whether it is over, where the node says that it is settled.
    pub(crate) fn is_over(self, scene: &Scene, name: &str) -> bool {
        self != Self::Approval || scene.approved(name) == Some(true)
    }
}

fn made(node: SeiNode) {
    drop(node);
}
