//! The kinds of plans: how each is brought about, and how many pods it may cost.

use keelson_api::SeiNode;
use keelson_render::Platform;
use keelson_testbed::Authority;
use serde_json::json;

use crate::stage::objects::{original_proxy, secret, tls_by_issuer, tls_by_secret};
use crate::stage::{Scene, platform};

/// What brings a plan about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Kind {
    Genesis,
    StateSync,
    S3,
    Ceremony,
    Bootstrap,
    Keys,
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
    SecretOn,
    SecretOff,
    Publish,
    FlagsOn,
    FlagsOff,
}

/// Plans that set a node up.
pub(crate) const BIRTHS: [Kind; 6] = [
    Kind::Genesis,
    Kind::StateSync,
    Kind::S3,
    Kind::Ceremony,
    Kind::Bootstrap,
    Kind::Keys,
];

/// Plans that change a node that runs, in an order in which one node can go through all of them.
pub(crate) const EDITS: [Kind; 13] = [
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
    Kind::SecretOn,
    Kind::SecretOff,
    Kind::Publish,
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
            // It is mounted under its own name.
            Self::SecretOn => 1,
            _ => 0,
        }
    }

    /// What the proxy serves when it is over: nothing where that is as it was.
    pub(crate) fn serves(self) -> Option<&'static str> {
        match self {
            Self::TlsOn | Self::TlsSwap | Self::BothOn | Self::SecretOn | Self::FlagsOn => {
                Some("required")
            }
            Self::TlsOff | Self::BothOff | Self::SecretOff | Self::FlagsOff => Some("off"),
            _ => None,
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
            Self::Keys => return made(with_keys(scene, name).await),
            Self::Image => json!({ "image": "registry.example/seid:v6.1.0" }),
            Self::SidecarImage => json!({ "sidecar": { "image": "registry.example/sidecar:2" } }),
            Self::Overrides => json!({ "overrides": { "logging.level": "debug" } }),
            Self::Peers => json!({ "peers": [{ "static": { "addresses": [peer] } }] }),
            Self::TlsOn | Self::FlagsOn => json!({ "sidecar": tls(0) }),
            Self::TlsSwap => json!({ "sidecar": tls(1) }),
            Self::TlsOff | Self::FlagsOff | Self::SecretOff => {
                json!({ "sidecar": { "tls": null } })
            }
            Self::SecretOn => {
                let authority = Authority::new("provided").expect("an authority");
                let secret = format!("{name}-provided");
                scene.tls_secret(&secret, name, &authority).await;
                json!({ "sidecar": tls_by_secret(&secret) })
            }
            Self::Publish => {
                let tendermint = json!({ "keepRecent": 3, "publish": {} });
                json!({ "fullNode": { "snapshotGeneration": { "tendermint": tendermint } } })
            }
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

/// A validator that is given every key there is.
async fn with_keys(scene: &Scene, name: &str) -> SeiNode {
    let [signing, node, ring, phrase] =
        ["signing", "node", "ring", "phrase"].map(|it| format!("{name}-{it}"));
    let entries = [("admin.info", "x"), ("00ff.address", "x")];
    scene.secret(&secret(&ring, &entries)).await;
    scene.secret(&secret(&phrase, &[("word", "open")])).await;
    let block = json!({
        "signingKey": { "secret": { "secretName": signing } },
        "nodeKey": { "secret": { "secretName": node } },
        "operatorKeyring": { "secret": {
            "secretName": ring, "keyName": "admin",
            "passphraseSecretRef": { "secretName": phrase, "key": "word" },
        }},
    });
    scene.validator(name, json!({ "validator": block })).await
}
