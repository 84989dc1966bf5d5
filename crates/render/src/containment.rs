//! Where keys may be in a pod, checked on the pod as it was built.
//!
//! The signing key and the node's key are the node's alone, the keyring and its passphrase the
//! sidecar's alone, and a bootstrap pod has none but perhaps the node's key: it must not be able to
//! sign. The check looks at every volume, mount and variable of every container, so that it holds
//! whatever the builder does, and whatever Secret a person names for something else.

use k8s_openapi::api::core::v1::{Container, PodSpec, Volume};

use crate::container::{seid, sidecar};
use crate::node::Node;
use crate::pod::Kind;

/// A key where it must not be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the Secret {secret:?} of {field} would be in {place}, where it must not be: name another Secret there"
)]
pub struct Leak {
    /// The field that names the key's Secret.
    pub field: &'static str,
    /// The Secret.
    pub secret: String,
    /// Where it would be.
    pub place: String,
}

/// Where the Secret of one field may be.
struct Rule {
    /// The only container that may mount it as files.
    files: Option<&'static str>,
    /// The only container that may have it in a variable.
    variable: Option<&'static str>,
    /// Whether a bootstrap pod may have it.
    bootstrap: bool,
}

fn rule(field: &str) -> Rule {
    let (files, variable, bootstrap) = match field {
        "signingKey" => (Some(seid::NAME), None, false),
        "nodeKey" => (Some(seid::NAME), None, true),
        "operatorKeyring" => (Some(sidecar::NAME), None, false),
        "passphraseSecretRef" => (None, Some(sidecar::NAME), false),
        // A key nobody has thought about is nowhere.
        _ => (None, None, false),
    };
    Rule {
        files,
        variable,
        bootstrap,
    }
}

/// Says of a pod whether every key of the node is where it may be.
pub fn check(node: &Node<'_>, kind: Kind<'_>, pod: &PodSpec) -> Result<(), Leak> {
    let Some(validator) = &node.spec.validator else {
        return Ok(());
    };
    for (field, secret) in validator.key_secrets() {
        let place = misplaced(pod, secret, &rule(field), kind);
        if let Some(place) = place {
            return Err(Leak {
                field,
                secret: secret.to_owned(),
                place,
            });
        }
    }
    Ok(())
}

fn misplaced(pod: &PodSpec, secret: &str, rule: &Rule, kind: Kind<'_>) -> Option<String> {
    let barred = matches!(kind, Kind::Bootstrap(_)) && !rule.bootstrap;
    let volumes: Vec<_> = pod.volumes.iter().flatten().collect();
    let holding: Vec<_> = volumes
        .into_iter()
        .filter(|volume| holds(volume, secret))
        .map(|volume| volume.name.as_str())
        .collect();
    // A volume nobody mounts is one mistake from being mounted.
    if let Some(name) = holding.first()
        && (barred || rule.files.is_none())
    {
        return Some(format!("the volume {name}"));
    }
    let init = pod.init_containers.iter().flatten();
    init.chain(&pod.containers).find_map(|container| {
        let mounted = mounts(container, &holding) && rule.files != Some(&container.name);
        let told = tells(container, secret) && (barred || rule.variable != Some(&container.name));
        (mounted || told).then(|| format!("the container {}", container.name))
    })
}

fn holds(volume: &Volume, secret: &str) -> bool {
    let alone = volume
        .secret
        .iter()
        .filter_map(|it| it.secret_name.as_ref());
    let sources = volume.projected.iter().flat_map(|it| &it.sources).flatten();
    let projected = sources.filter_map(|it| Some(&it.secret.as_ref()?.name));
    alone.chain(projected).any(|name| name == secret)
}

fn mounts(container: &Container, volumes: &[&str]) -> bool {
    let mut mounts = container.volume_mounts.iter().flatten();
    mounts.any(|mount| volumes.contains(&mount.name.as_str()))
}

fn tells(container: &Container, secret: &str) -> bool {
    let variables = container.env.iter().flatten();
    let one =
        variables.filter_map(|it| Some(&it.value_from.as_ref()?.secret_key_ref.as_ref()?.name));
    let whole = container.env_from.iter().flatten();
    let all = whole.filter_map(|it| Some(&it.secret_ref.as_ref()?.name));
    one.chain(all).any(|name| name == secret)
}
