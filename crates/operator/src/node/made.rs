//! What a pod is made of, as far as anyone may change it: read in the same way from the template we
//! render, from the template of the StatefulSet and from the pod that runs.
//!
//! What only an operator upgrade changes is one hash, which a template carries. What a person may
//! change is read from the containers and volumes themselves, so that pods of the original, which
//! carry no hash of ours, are compared as well.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Container, PodSpec, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use keelson_render::pod::{
    ASKED_LABELS, ASKED_RESOURCES, PASSPHRASE_VARIABLE, PROXY_CONFIG_HASH, TEMPLATE_HASH, volume,
};
use serde_json::json;

use crate::digest::digest;
use crate::quantity::Amount;

/// Names of the containers.
pub(crate) mod container {
    /// The node.
    pub(crate) const NODE: &str = "seid";
    /// The sidecar.
    pub(crate) const SIDECAR: &str = "sei-sidecar";
    /// The proxy.
    pub(crate) const PROXY: &str = "kube-rbac-proxy";
}

/// How a proxy is told its TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProxyMode {
    /// It follows its configuration.
    #[default]
    Follows,
    /// By its flags, which say plaintext.
    Plaintext,
    /// By its flags, which say TLS.
    Tls,
}

/// What a pod is made of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Made {
    /// Image of the node's process.
    pub image: String,
    /// Image of the sidecar.
    pub sidecar_image: String,
    /// Image of the proxy.
    pub proxy_image: String,
    /// How the proxy is told its TLS.
    pub proxy_mode: ProxyMode,
    /// Whether the proxy asks for tokens of an audience of its own.
    pub audience: bool,
    /// The Secret its certificate is read from.
    pub tls_secret: Option<String>,
    /// The Secret of the signing key.
    pub signing_key: Option<String>,
    template: Option<String>,
    proxy_config: Option<String>,
    labels: BTreeMap<String, String>,
    asked_labels: BTreeSet<String>,
    resources: String,
    asked_resources: bool,
    port: Option<i32>,
    volumes: BTreeMap<String, String>,
    passphrase: Option<(String, String)>,
}

/// The pod a node shall have, and what of it a person asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Demand {
    /// What it is made of.
    pub made: Made,
    /// Whether a person asks for an image of the sidecar, rather than the platform.
    pub asks_image: bool,
    /// The Secret a certificate is wanted from.
    pub tls_secret: Option<String>,
    /// Whether a pod is replaced for an operator upgrade alone.
    pub rolls_outdated: bool,
}

/// Volumes whose source a person chooses.
const CHOSEN: [&str; 4] = [
    volume::DATA,
    volume::SIGNING_KEY,
    volume::NODE_KEY,
    volume::KEYRING,
];

impl Made {
    /// Reads a pod or a template.
    pub fn read(metadata: &ObjectMeta, spec: &PodSpec) -> Self {
        let empty = BTreeMap::new();
        let annotations = metadata.annotations.as_ref().unwrap_or(&empty);
        let node = named(spec, container::NODE);
        let sidecar = named(spec, container::SIDECAR);
        let proxy = named(spec, container::PROXY);
        let image = |it: Option<&Container>| it.and_then(|it| it.image.clone()).unwrap_or_default();
        let volumes = sources(spec);
        let arguments = proxy.and_then(|it| it.args.as_deref()).unwrap_or_default();
        let flag = |name: &str| arguments.iter().any(|it| it.starts_with(name));
        Self {
            image: image(node),
            sidecar_image: image(sidecar),
            proxy_image: image(proxy),
            proxy_mode: if flag("--tls-cert-file") {
                ProxyMode::Tls
            } else if flag("--insecure-listen-address") {
                ProxyMode::Plaintext
            } else {
                ProxyMode::Follows
            },
            audience: flag("--auth-token-audiences"),
            tls_secret: volumes.get(volume::TLS).cloned(),
            signing_key: volumes.get(volume::SIGNING_KEY).cloned(),
            template: annotations.get(TEMPLATE_HASH).cloned(),
            proxy_config: annotations.get(PROXY_CONFIG_HASH).cloned(),
            labels: metadata.labels.clone().unwrap_or_default(),
            asked_labels: annotations
                .get(ASKED_LABELS)
                .map(|names| names.split(',').map(str::to_owned).collect())
                .unwrap_or_default(),
            resources: resources(sidecar.and_then(|it| it.resources.as_ref())),
            asked_resources: annotations.contains_key(ASKED_RESOURCES),
            port: sidecar
                .and_then(|it| it.ports.as_ref()?.first())
                .map(|port| port.container_port),
            passphrase: sidecar.and_then(passphrase),
            volumes: volumes
                .into_iter()
                .filter(|(name, _)| CHOSEN.contains(&name.as_str()))
                .collect(),
        }
    }

    /// The claim its data is on.
    pub fn claim(&self) -> Option<String> {
        self.volumes.get(volume::DATA).cloned()
    }

    /// The pod as a plan compares it with the one that is demanded.
    pub fn seen_from(&self, demand: &Demand) -> keelson_plan::Pod {
        let want = &demand.made;
        // Only what was made by today's template differs by an image alone.
        let comparable = self.template.is_some() && self.template == want.template;
        let or_wanted = |own: &String, wanted: &String| match comparable {
            true => own.clone(),
            false => wanted.clone(),
        };
        let image = Some(self.sidecar_image.as_str())
            .filter(|image| !comparable && demand.asks_image && *image != want.sidecar_image);
        let template = self.template.as_deref().filter(|_| demand.rolls_outdated);
        keelson_plan::Pod {
            image: self.image.clone(),
            sidecar_image: or_wanted(&self.sidecar_image, &want.sidecar_image),
            proxy_image: or_wanted(&self.proxy_image, &want.proxy_image),
            tls: match self.can_serve(demand.tls_secret.as_deref()) {
                true => String::new(),
                false => self.born_with(),
            },
            rest: self.rest(want, image, template),
            made_by: self.template.clone().unwrap_or_default(),
        }
    }

    /// Whether the proxy can serve TLS from this Secret, or plaintext, without another pod.
    fn can_serve(&self, secret: Option<&str>) -> bool {
        match (self.proxy_mode, secret) {
            (ProxyMode::Follows | ProxyMode::Plaintext, None) => true,
            (ProxyMode::Follows | ProxyMode::Tls, Some(_)) => self.tls_secret.as_deref() == secret,
            (ProxyMode::Plaintext, Some(_)) | (ProxyMode::Tls, None) => false,
        }
    }

    fn born_with(&self) -> String {
        match &self.tls_secret {
            Some(secret) => format!("the Secret {secret}"),
            None => "no certificate".to_owned(),
        }
    }

    /// Digests of what a person may change and only a new pod has, by the fields of a spec. A label, a
    /// size or a hash that neither was asked for nor is counts for nothing.
    fn rest(
        &self,
        want: &Self,
        image: Option<&str>,
        template: Option<&str>,
    ) -> BTreeMap<String, String> {
        let names = want.labels.keys().chain(&self.asked_labels);
        let labels: BTreeMap<&String, Option<&String>> =
            names.map(|name| (name, self.labels.get(name))).collect();
        let asked = want.asked_resources || self.asked_resources;
        let config = self.proxy_config.as_ref().or(want.proxy_config.as_ref());
        let config = config.filter(|_| want.proxy_config.is_some());
        let source = |volume: &str| json!(self.volumes.get(volume));
        [
            ("podLabels", json!(labels.into_iter().collect::<Vec<_>>())),
            ("sidecar.port", json!(self.port)),
            ("sidecar.resources", json!(asked.then_some(&self.resources))),
            ("sidecar.image", json!(image)),
            ("dataVolume", source(volume::DATA)),
            ("validator.signingKey", source(volume::SIGNING_KEY)),
            ("validator.nodeKey", source(volume::NODE_KEY)),
            ("validator.operatorKeyring", source(volume::KEYRING)),
            (
                "validator.operatorKeyring.passphrase",
                json!(self.passphrase),
            ),
            ("proxy-config", json!(config)),
            ("template", json!(template)),
        ]
        .into_iter()
        .filter(|(_, value)| !value.is_null())
        .map(|(name, value)| (name.to_owned(), digest(&value)))
        .collect()
    }
}

fn named<'a>(spec: &'a PodSpec, name: &str) -> Option<&'a Container> {
    let init = spec.init_containers.iter().flatten();
    spec.containers
        .iter()
        .chain(init)
        .find(|container| container.name == name)
}

/// What each volume is, by its name: a claim's or a Secret's.
fn sources(spec: &PodSpec) -> BTreeMap<String, String> {
    let volumes = spec.volumes.iter().flatten();
    let source = |volume: &k8s_openapi::api::core::v1::Volume| {
        let claim = volume.persistent_volume_claim.as_ref();
        let claim = claim.map(|claim| claim.claim_name.clone());
        claim.or_else(|| volume.secret.as_ref()?.secret_name.clone())
    };
    volumes
        .filter_map(|volume| Some((volume.name.clone(), source(volume)?)))
        .collect()
}

/// Where the keyring's passphrase is from. Other variables may be of a Secret too: the platform's.
fn passphrase(sidecar: &Container) -> Option<(String, String)> {
    let variables = sidecar.env.iter().flatten();
    variables
        .filter(|variable| variable.name == PASSPHRASE_VARIABLE)
        .filter_map(|variable| variable.value_from.as_ref()?.secret_key_ref.as_ref())
        .map(|at| (at.name.clone(), at.key.clone()))
        .next()
}

/// Resources in a form in which equal ones are equal: a limit is asked for where nothing else is.
fn resources(resources: Option<&ResourceRequirements>) -> String {
    let Some(resources) = resources else {
        return String::new();
    };
    let amounts = |of: &Option<BTreeMap<String, _>>| -> BTreeMap<String, String> {
        let of = of.iter().flatten();
        of.map(|(name, amount)| (name.clone(), format!("{:?}", Amount::of(amount))))
            .collect()
    };
    let limits = amounts(&resources.limits);
    let mut requests = limits.clone();
    requests.extend(amounts(&resources.requests));
    format!("{limits:?} {requests:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A pod whose sidecar has these variables, each from this key of this Secret.
    fn pod(variables: &[(&str, &str, &str)]) -> Made {
        let variables: Vec<_> = variables
            .iter()
            .map(|(name, secret, key)| {
                json!({
                    "name": name,
                    "valueFrom": { "secretKeyRef": { "name": secret, "key": key } },
                })
            })
            .collect();
        let spec = json!({
            "containers": [], "initContainers": [{ "name": container::SIDECAR, "env": variables }],
        });
        let spec: PodSpec = serde_json::from_value(spec).expect("a pod");
        Made::read(&ObjectMeta::default(), &spec)
    }

    fn rolls(have: &Made, want: Made) -> bool {
        let demand = Demand {
            made: want,
            ..Demand::default()
        };
        have.seen_from(&demand).rest != demand.made.seen_from(&demand).rest
    }

    #[test]
    fn another_passphrase_rolls_and_the_platforms_keys_of_buckets_do_not() {
        let bucket = ("AWS_ACCESS_KEY_ID", "bucket-keys", "id");
        let passphrase = |key| (PASSPHRASE_VARIABLE, "keyring", key);
        assert!(!rolls(&pod(&[]), pod(&[bucket])));
        let [old, new] = ["old", "new"].map(|key| pod(&[bucket, passphrase(key)]));
        assert!(rolls(&old, new.clone()));
        assert!(!rolls(&new, new.clone()));
        assert!(rolls(&pod(&[bucket]), new));
    }
}
