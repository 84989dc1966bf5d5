//! What a SeiNode asks for, worked out: the objects it shall have, the configuration of its process,
//! and the target its plans serve.
//!
//! Pure. What of it is there already is for `observe`, and bringing it about for `act`.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use keelson_api::SeiNode;
use keelson_api::node::Mode;
use keelson_api::node_status::Applied;
use keelson_cluster::{comparable, digest as owned_digest};
use keelson_plan::{Keys, Source, Start, Target, Tls};
use keelson_render::{
    Node, Platform, Unrenderable, bootstrap, certificate, claim, network_policy, proxy_config,
    service, stateful_set, tls,
};
use keelson_seid_config::{Intent, snapshot_generation};
use keelson_wire::params::PeerSource;
use serde::Serialize;
use serde_json::{Value, json};

use super::made::{Demand, Made};
use super::peers;
use crate::digest::digest;
use crate::platform::Settings;

/// An object as it shall be.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// The object.
    pub object: Value,
    /// Digest of what we own of it when it is so.
    pub digest: String,
}

impl Wanted {
    fn new(object: &impl Serialize) -> Self {
        // Types of the API have no other form than JSON.
        let object = serde_json::to_value(object).unwrap_or_default();
        let digest = owned_digest(&comparable(&object));
        Self { object, digest }
    }
}

/// The proxy's configuration as it shall be, and what its two modes look like.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedConfig {
    /// The one of the spec.
    pub wanted: Wanted,
    /// Digest of the one that says plaintext.
    pub plaintext: String,
    /// Digest of the one that says TLS.
    pub tls: String,
}

/// What a SeiNode asks for.
#[derive(Clone, Debug)]
pub struct Desired {
    /// What its plans serve.
    pub target: Target,
    /// The pod it shall have.
    pub demand: Demand,
    /// The StatefulSet.
    pub stateful_set: Value,
    /// The Service.
    pub service: Wanted,
    /// The proxy's ConfigMap.
    pub config: WantedConfig,
    /// The NetworkPolicy, where the platform wants one.
    pub network_policy: Option<Wanted>,
    /// The Certificate, where one is ordered.
    pub certificate: Option<Wanted>,
    /// The claim, where none is imported.
    pub claim: Option<PersistentVolumeClaim>,
    /// The configuration of the process.
    pub intent: Intent,
    /// Where peers are found.
    pub peers: Vec<PeerSource>,
    /// Hosts found by label.
    pub resolved_peers: Vec<String>,
}

impl Desired {
    /// Works out what a node asks for. `resolved` are the hosts its labels found.
    pub fn of(
        node: &SeiNode,
        settings: &Settings,
        resolved: Vec<String>,
        applied: Option<&Applied>,
    ) -> Result<Self, Unrenderable> {
        let platform = &settings.render;
        let read = Node::read(node)?;
        let set = stateful_set::stateful_set(&read, platform)?;
        let template = set.spec.as_ref().map(|spec| &spec.template);
        let metadata = template.and_then(|it| it.metadata.clone());
        let pod = template.and_then(|it| it.spec.clone());
        let made = Made::read(&metadata.unwrap_or_default(), &pod.unwrap_or_default());
        let demand = Demand {
            made,
            asks_image: asks_image(node),
            tls_secret: tls::wanted(&read).then(|| tls::secret(&read)),
            rolls_outdated: settings.rolls_outdated,
        };
        let intent = intent(&read);
        let peers = peers::sources(&node.spec.peers, &resolved);
        let config = config(node, platform)?;
        let network_policy = network_policy::network_policy(&read, platform);
        let target = Target {
            pod: demand.made.seen_from(&demand),
            tls: wanted_tls(&read),
            proxy_policy: config.plaintext.clone(),
            settings: intent.fingerprint(),
            peers: peers_digest(node, &peers, applied),
            start: start(&read)?,
            keys: keys(node),
            publishes: publishes(node),
            network_policy: network_policy.is_some(),
        };
        Ok(Self {
            target,
            demand,
            stateful_set: serde_json::to_value(&set).unwrap_or_default(),
            service: Wanted::new(&service::service(&read)),
            config,
            network_policy: network_policy.as_ref().map(Wanted::new),
            certificate: certificate::certificate(&read).as_ref().map(Wanted::new),
            claim: claim::claim(&read, platform),
            intent,
            peers,
            resolved_peers: resolved,
        })
    }
}

/// Whether a person asks for an image of the sidecar, rather than the platform.
fn asks_image(node: &SeiNode) -> bool {
    let sidecar = node.spec.sidecar.as_ref();
    sidecar.is_some_and(|sidecar| sidecar.image.is_some())
}

fn wanted_tls(node: &Node<'_>) -> Option<Tls> {
    let source = node.spec.sidecar.as_ref()?.tls.as_ref()?;
    match source.issuer() {
        Some((name, kind)) => Some(Tls::Issuer {
            name: name.to_owned(),
            kind,
        }),
        None => source.secret_name.clone().map(Tls::Secret),
    }
}

/// The ConfigMap, and the digests of both modes: what differs only by the mode is a change of TLS.
fn config(node: &SeiNode, platform: &Platform) -> Result<WantedConfig, Unrenderable> {
    let with = |tls: Option<keelson_api::sidecar::SidecarTls>| -> Result<Wanted, Unrenderable> {
        let mut node = node.clone();
        let mut sidecar = node.spec.sidecar.take().unwrap_or_default();
        sidecar.tls = tls;
        node.spec.sidecar = Some(sidecar);
        let read = Node::read(&node)?;
        Ok(Wanted::new(&proxy_config::config_map(&read, platform)))
    };
    let on = with(Some(keelson_api::sidecar::SidecarTls::default()))?;
    let off = with(None)?;
    let (plaintext, tls) = (off.digest.clone(), on.digest.clone());
    let wants = node
        .spec
        .sidecar
        .as_ref()
        .is_some_and(|it| it.tls.is_some());
    Ok(WantedConfig {
        wanted: if wants { on } else { off },
        plaintext,
        tls,
    })
}

/// The configuration of the process: what its mode needs, then what a person says.
fn intent(node: &Node<'_>) -> Intent {
    let keep = |generation: &keelson_api::snapshot::SnapshotGeneration| {
        let kept = generation.tendermint.as_ref()?.keep_recent;
        u32::try_from(kept).ok()
    };
    let kept = node.spec.snapshot_generation().and_then(keep);
    let mut overrides: BTreeMap<String, String> = match (node.mode, kept) {
        (Mode::FullNode, Some(kept)) => snapshot_generation(kept),
        (Mode::Archive, Some(kept)) => texts(&[
            ("storage.snapshot_interval", "2000"),
            ("storage.snapshot_keep_recent", &kept.to_string()),
        ]),
        (Mode::Replayer, _) => texts(&[
            ("storage.state_commit.async_commit_buffer", "100"),
            ("storage.state_commit.memiavl.snapshot_keep_recent", "2"),
            (
                "storage.state_commit.memiavl.snapshot_min_time_interval",
                "3600",
            ),
        ]),
        _ => BTreeMap::new(),
    };
    if let Some(address) = &node.spec.external_address {
        overrides.insert("network.p2p.external_address".to_owned(), address.clone());
    }
    overrides.extend(node.spec.overrides.clone());
    Intent {
        mode: node.mode.config_name().to_owned(),
        overrides,
        ..Intent::default()
    }
}

fn texts(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let pairs = pairs.iter();
    pairs
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

/// Digest of the peers. A node that never had any is given none; one whose peers were all taken away
/// is given an empty list.
fn peers_digest(node: &SeiNode, peers: &[PeerSource], applied: Option<&Applied>) -> Option<String> {
    let had = applied.is_some_and(|applied| applied.peers.is_some());
    (!node.spec.peers.is_empty() || had).then(|| digest(&json!(peers)))
}

fn start(node: &Node<'_>) -> Result<Start, Unrenderable> {
    let ceremony = node.spec.validator.as_ref();
    if ceremony.is_some_and(|validator| validator.genesis_ceremony.is_some()) {
        return Ok(Start::Genesis);
    }
    let Some(snapshot) = node.spec.snapshot() else {
        return Ok(Start::Base(Source::Genesis));
    };
    let Some(s3) = &snapshot.s3 else {
        return Ok(Start::Base(Source::StateSync));
    };
    if snapshot
        .bootstrap_image
        .as_ref()
        .is_some_and(|it| !it.is_empty())
    {
        let replay = bootstrap::replay(node)?;
        return Ok(Start::Bootstrap {
            from: format!("{} up to {}", replay.image, replay.halt_height),
        });
    }
    Ok(Start::Base(Source::S3(s3.target_height.to_string())))
}

fn keys(node: &SeiNode) -> Keys {
    let validator = node.spec.validator.as_ref();
    Keys {
        signing: validator.is_some_and(|it| it.signing_key.is_some()),
        node: validator.is_some_and(|it| it.node_key.is_some()),
        operator_keyring: validator.is_some_and(|it| it.operator_keyring.is_some()),
    }
}

fn publishes(node: &SeiNode) -> bool {
    let generation = node.spec.snapshot_generation();
    generation
        .and_then(|generation| generation.tendermint.as_ref())
        .is_some_and(|tendermint| tendermint.publish.is_some())
}
