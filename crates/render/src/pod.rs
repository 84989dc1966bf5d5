//! The one builder of pods: the node's own, and the one that replays a snapshot before it.
//!
//! Both have the same sidecar behind the same proxy, run as the same user on the same machines and
//! have the same sizes. What differs is what the node's process is told, and that a bootstrap pod
//! gets no key.

use k8s_openapi::api::core::v1::{
    Affinity, ConfigMapVolumeSource, EmptyDirVolumeSource, KeyToPath, NodeAffinity, NodeSelector,
    NodeSelectorRequirement, NodeSelectorTerm, PersistentVolumeClaimVolumeSource,
    PodSecurityContext, PodSpec, PodTemplateSpec, SecretVolumeSource, Toleration, Volume,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use keelson_api::names::Annotation;
use keelson_api::validator::KeyringSecret;

use crate::container::{DATA, SCRATCH, USER, exporter, proxy, seid, sidecar};
use crate::metadata::{self, Labels};
use crate::node::{Node, Unrenderable};
use crate::platform::{Class, Platform};
use crate::{containment, names, proxy_config, tls};

pub(crate) use volume::{KEYRING, NODE_KEY, PROXY_CONFIG, SIGNING_KEY, TLS};

/// The sidecar's variable with the passphrase of its keyring.
pub const PASSPHRASE_VARIABLE: &str = "SEI_KEYRING_PASSPHRASE";

/// Names of a pod's volumes.
pub mod volume {
    /// The chain's data.
    pub const DATA: &str = crate::container::DATA;
    /// The proxy's configuration.
    pub const PROXY_CONFIG: &str = "rbac-proxy-config";
    /// The certificate the proxy serves.
    pub const TLS: &str = "sidecar-tls";
    /// The key blocks are signed with.
    pub const SIGNING_KEY: &str = "signing-key";
    /// The key the node is known by.
    pub const NODE_KEY: &str = "node-key";
    /// The keyring transactions are signed with.
    pub const KEYRING: &str = "operator-keyring";
}

/// Readable by its owner, and by the pod's group, to which the kubelet opens it.
const OWNER_READS: i32 = 0o400;

/// Annotation of a pod whose proxy reads its configuration once: the hash of it, so that another
/// configuration is another pod.
pub const PROXY_CONFIG_HASH: &str = "sei.io/proxy-config-hash";

/// Annotation of a pod: the names of the labels a person asked for, so that one that is asked for no
/// more is seen.
pub const ASKED_LABELS: &str = "sei.io/asked-labels";

/// Annotation of a pod whose sidecar has the resources a person asked for, and not the platform's.
pub const ASKED_RESOURCES: &str = "sei.io/asked-resources";

/// Annotation of a pod: the hash of what the operator and the platform decided about it.
pub const TEMPLATE_HASH: &str = "sei.io/template-hash";

/// Which of a node's pods.
#[derive(Clone, Copy, Debug)]
pub enum Kind<'a> {
    /// The node's own.
    Node,
    /// The one that replays a snapshot before it.
    Bootstrap(Replay<'a>),
}

/// What a bootstrap pod does.
#[derive(Clone, Copy, Debug)]
pub struct Replay<'a> {
    /// The image that replays.
    pub image: &'a str,
    /// The height it stops at.
    pub halt_height: i64,
}

/// A key as a volume.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Key<'a> {
    pub(crate) volume: &'static str,
    pub(crate) secret: &'a str,
    /// The only file of it, and its name in the node's configuration folder; a keyring has many.
    pub(crate) file: Option<&'static str>,
}

impl<'a> Kind<'a> {
    /// The word the sidecar knows the kind by.
    pub fn word(self) -> &'static str {
        match self {
            Self::Node => "node",
            Self::Bootstrap(_) => "bootstrap",
        }
    }

    /// Image of the node's process.
    pub(crate) fn image<'b>(self, node: &Node<'b>) -> &'b str
    where
        'a: 'b,
    {
        match self {
            Self::Node => &node.spec.image,
            Self::Bootstrap(replay) => replay.image,
        }
    }

    /// The keys the pod is given.
    pub(crate) fn keys<'b>(self, node: &Node<'b>) -> Vec<Key<'b>> {
        let (Self::Node, Some(validator)) = (self, &node.spec.validator) else {
            return Vec::new();
        };
        let file = |volume, key: Option<&'b keelson_api::validator::ConsensusKey>, file| {
            key.map(|key| Key {
                volume,
                secret: &key.secret.secret_name,
                file: Some(file),
            })
        };
        let keyring = self.keyring(node).map(|keyring| Key {
            volume: KEYRING,
            secret: &keyring.secret_name,
            file: None,
        });
        [
            file(
                SIGNING_KEY,
                validator.signing_key.as_ref(),
                "priv_validator_key.json",
            ),
            file(NODE_KEY, validator.node_key.as_ref(), "node_key.json"),
            keyring,
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// The keyring the sidecar is given.
    pub(crate) fn keyring<'b>(self, node: &Node<'b>) -> Option<&'b KeyringSecret> {
        let validator = node.spec.validator.as_ref()?;
        let keyring = validator.operator_keyring.as_ref()?;
        matches!(self, Self::Node).then_some(&keyring.secret)
    }
}

/// The class of machines, volumes and sizes a node belongs to.
pub(crate) fn class<'a>(node: &Node<'_>, platform: &'a Platform) -> &'a Class {
    match node.is_archive() {
        true => &platform.archive,
        false => &platform.default,
    }
}

/// The pod, with its keys where they may be; or where they would have been and may not.
pub fn template(
    node: &Node<'_>,
    platform: &Platform,
    kind: Kind<'_>,
) -> Result<PodTemplateSpec, Unrenderable> {
    let spec = spec(node, platform, kind);
    containment::check(node, kind, &spec)?;
    let mut annotations = Labels::from([(Annotation::DoNotDisrupt.to_string(), "true".to_owned())]);
    if !platform.proxy.reloads {
        let hash = proxy_config::hash(node, platform);
        annotations.insert(PROXY_CONFIG_HASH.to_owned(), hash);
    }
    annotations.extend(asked(node));
    annotations.insert(TEMPLATE_HASH.to_owned(), template_hash(node, &spec));
    let labels = match kind {
        Kind::Node => metadata::labels(node),
        Kind::Bootstrap(_) => metadata::bootstrap_labels(node),
    };
    Ok(PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        }),
        spec: Some(spec),
    })
}

fn spec(node: &Node<'_>, platform: &Platform, kind: Kind<'_>) -> PodSpec {
    let mut containers = vec![seid::main(node, platform, kind)];
    let mut spec = PodSpec::default();
    match kind {
        Kind::Node => containers.push(exporter::container(platform)),
        Kind::Bootstrap(_) => {
            // The address of the node's own pod, so that the sidecar is called by one name.
            spec.hostname = Some(names::pod(node.name));
            spec.subdomain = Some(names::service(node.name));
            spec.restart_policy = Some("Never".to_owned());
        }
    }
    let pool = &class(node, platform).pool;
    PodSpec {
        affinity: Some(on_machines_of(pool)),
        automount_service_account_token: Some(true),
        containers,
        init_containers: Some(vec![
            seid::init(node, platform, kind),
            sidecar::container(node, platform, kind),
            proxy::container(node, platform),
        ]),
        security_context: Some(PodSecurityContext {
            fs_group: Some(USER),
            fs_group_change_policy: Some("OnRootMismatch".to_owned()),
            ..PodSecurityContext::default()
        }),
        service_account_name: Some(platform.service_account.clone()),
        // The sidecar ends the node's process with a signal.
        share_process_namespace: Some(true),
        termination_grace_period_seconds: Some(platform.termination_grace_seconds),
        tolerations: Some(vec![Toleration {
            key: Some(platform.toleration_key.clone()),
            value: Some(pool.clone()),
            effect: Some("NoSchedule".to_owned()),
            ..Toleration::default()
        }]),
        volumes: Some(volumes(node, platform, kind)),
        ..spec
    }
}

/// What a person asked for that a pod does not show by itself.
fn asked(node: &Node<'_>) -> Labels {
    let mut asked = Labels::new();
    if !node.spec.pod_labels.is_empty() {
        let names: Vec<_> = node.spec.pod_labels.keys().cloned().collect();
        asked.insert(ASKED_LABELS.to_owned(), names.join(","));
    }
    let sidecar = node.spec.sidecar.as_ref();
    if sidecar.is_some_and(|sidecar| sidecar.resources.is_some()) {
        asked.insert(ASKED_RESOURCES.to_owned(), "true".to_owned());
    }
    asked
}

/// Hash of a pod without what a person decides: images, the sidecar's own resources, the Secret of
/// the certificate, and what follows from the image.
fn template_hash(node: &Node<'_>, spec: &PodSpec) -> String {
    let mut spec = spec.clone();
    let asked = asked(node).contains_key(ASKED_RESOURCES);
    let init = spec.init_containers.iter_mut().flatten();
    for container in spec.containers.iter_mut().chain(init) {
        if container.name != exporter::NAME {
            container.image = None;
        }
        if container.name == sidecar::NAME && asked {
            container.resources = None;
        }
        let variables = container.env.iter_mut().flatten();
        for variable in variables.filter(|it| it.name == sidecar::FINGERPRINT_VARIABLE) {
            variable.value = None;
        }
    }
    for volume in spec.volumes.iter_mut().flatten() {
        if volume.name == TLS {
            volume.secret = None;
        }
    }
    let text = serde_json::to_vec(&spec).unwrap_or_default();
    keelson_seid_config::of_parts([text.as_slice()].into_iter())
}

fn on_machines_of(pool: &str) -> Affinity {
    let term = NodeSelectorTerm {
        match_expressions: Some(vec![NodeSelectorRequirement {
            key: "karpenter.sh/nodepool".to_owned(),
            operator: "In".to_owned(),
            values: Some(vec![pool.to_owned()]),
        }]),
        match_fields: None,
    };
    Affinity {
        node_affinity: Some(NodeAffinity {
            required_during_scheduling_ignored_during_execution: Some(NodeSelector {
                node_selector_terms: vec![term],
            }),
            ..NodeAffinity::default()
        }),
        ..Affinity::default()
    }
}

fn volumes(node: &Node<'_>, platform: &Platform, kind: Kind<'_>) -> Vec<Volume> {
    let mut volumes = vec![
        Volume {
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: names::claim(node),
                read_only: None,
            }),
            ..volume(DATA)
        },
        Volume {
            empty_dir: Some(EmptyDirVolumeSource::default()),
            ..volume(SCRATCH)
        },
        Volume {
            config_map: Some(ConfigMapVolumeSource {
                name: names::proxy_config(node.name),
                ..ConfigMapVolumeSource::default()
            }),
            ..volume(PROXY_CONFIG)
        },
    ];
    if proxy::mounts_tls(node, platform) {
        volumes.push(secret(TLS, &tls::secret(node), |source| {
            // A proxy that follows its files waits for the Secret; one that does not needs it to start.
            source.optional = platform.proxy.reloads.then_some(true);
        }));
    }
    volumes.extend(kind.keys(node).iter().map(|key| {
        secret(key.volume, key.secret, |source| {
            let item = |file: &str| KeyToPath {
                key: file.to_owned(),
                path: file.to_owned(),
                mode: None,
            };
            source.items = key.file.map(|file| vec![item(file)]);
        })
    }));
    volumes
}

fn volume(name: &str) -> Volume {
    Volume {
        name: name.to_owned(),
        ..Volume::default()
    }
}

fn secret(name: &str, secret: &str, finish: impl Fn(&mut SecretVolumeSource)) -> Volume {
    let mut source = SecretVolumeSource {
        secret_name: Some(secret.to_owned()),
        default_mode: Some(OWNER_READS),
        ..SecretVolumeSource::default()
    };
    finish(&mut source);
    Volume {
        secret: Some(source),
        ..volume(name)
    }
}
