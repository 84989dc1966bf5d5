//! The container of the sidecar: on loopback, told who calls by the proxy, holding the gate.

use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource, Probe, SecretKeySelector};
use keelson_api::names::Port;

use super::{
    ALWAYS, DATA, HOME, Pace, SCRATCH, env, exec, mount, port, read_only, resources, sealed,
};
use crate::fingerprint;
use crate::node::Node;
use crate::platform::Platform;
use crate::pod::{KEYRING, Kind, PASSPHRASE_VARIABLE};
use crate::script::CHAIN_VARIABLE;

/// The container's name.
pub(crate) const NAME: &str = "sei-sidecar";

/// The program, by the name the original gave it; ours answers to it too.
const PROGRAM: &str = "seictl";
/// Variable the start fingerprint is in.
pub(crate) const FINGERPRINT_VARIABLE: &str = "KEELSON_START_FINGERPRINT";
/// A sidecar that hangs has nothing to save: what was answered with 201 is on the volume.
const KILL_AFTER_SECONDS: i64 = 10;

/// The sidecar.
pub(crate) fn container(node: &Node<'_>, platform: &Platform, kind: Kind<'_>) -> Container {
    let wished = node.spec.sidecar.as_ref();
    let image = wished.and_then(|it| it.image.as_ref());
    let size = wished.and_then(|it| it.resources.clone());
    let mut mounts = vec![mount(DATA, HOME), mount(SCRATCH, "/tmp")];
    let keyring = kind.keys(node).iter().any(|key| key.volume == KEYRING);
    if keyring {
        mounts.push(read_only(KEYRING, &format!("{HOME}/keyring-file")));
    }
    Container {
        name: NAME.to_owned(),
        image: Some(image.unwrap_or(&platform.sidecar.image).clone()),
        command: Some([PROGRAM, "serve"].map(str::to_owned).to_vec()),
        env: Some(variables(node, platform, kind)),
        ports: Some(vec![port(Port::Sidecar, node.sidecar_port)]),
        liveness_probe: Some(liveness()),
        readiness_probe: Some(readiness()),
        resources: Some(size.unwrap_or_else(|| resources(&platform.sidecar.size))),
        restart_policy: Some(ALWAYS.to_owned()),
        security_context: Some(sealed()),
        volume_mounts: Some(mounts),
        ..Container::default()
    }
}

fn variables(node: &Node<'_>, platform: &Platform, kind: Kind<'_>) -> Vec<EnvVar> {
    let mut variables = vec![
        env(CHAIN_VARIABLE, &node.spec.chain_id),
        env("SEI_SIDECAR_PORT", node.sidecar_port.to_string()),
        env("SEI_HOME", HOME),
        env("SEI_GENESIS_BUCKET", &platform.genesis.name),
        env("SEI_GENESIS_REGION", &platform.genesis.region),
        env("SEI_SNAPSHOT_BUCKET", &platform.snapshots.name),
        env("SEI_SNAPSHOT_REGION", &platform.snapshots.region),
        env("SEI_SIDECAR_AUTHN_MODE", "trusted-header"),
        env("KEELSON_NODE_UID", node.uid),
        env("KEELSON_POD_KIND", kind.word()),
        env(FINGERPRINT_VARIABLE, fingerprint::start(node, kind)),
    ];
    variables.extend(object_store(platform));
    variables.extend(keyring(node, kind));
    variables
}

/// Where buckets are, and the keys for them, where the platform says so.
fn object_store(platform: &Platform) -> impl Iterator<Item = EnvVar> {
    let reach = &platform.object_store;
    let endpoint = reach.endpoint.as_ref();
    let endpoint = endpoint.map(|it| env("SEI_OBJECT_STORE_ENDPOINT", it));
    let keys = reach.secret.iter().flat_map(|secret| {
        ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"].map(|name| of_secret(name, secret, name))
    });
    endpoint.into_iter().chain(keys)
}

fn of_secret(variable: &str, secret: &str, key: &str) -> EnvVar {
    EnvVar {
        name: variable.to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            secret_key_ref: Some(SecretKeySelector {
                name: secret.to_owned(),
                key: key.to_owned(),
                optional: None,
            }),
            ..EnvVarSource::default()
        }),
    }
}

/// How the keyring is opened; without a backend the sidecar does not sign at all.
fn keyring(node: &Node<'_>, kind: Kind<'_>) -> Vec<EnvVar> {
    let Some(keyring) = kind.keyring(node) else {
        return Vec::new();
    };
    let passphrase = keyring.passphrase_secret_ref.as_ref();
    let passphrase = passphrase.map(|at| of_secret(PASSPHRASE_VARIABLE, &at.secret_name, &at.key));
    [env("SEI_KEYRING_BACKEND", "file")]
        .into_iter()
        .chain(passphrase)
        .collect()
}

/// Asked from inside: the sidecar is on loopback, and a probe of the proxy's port would blame the
/// proxy.
fn liveness() -> Probe {
    let pace = Pace {
        delay: 5,
        period: 10,
        failures: 3,
        timeout: 5,
    };
    let mut probe = exec(&[PROGRAM, "healthcheck", "livez"], pace);
    probe.termination_grace_period_seconds = Some(KILL_AFTER_SECONDS);
    probe
}

fn readiness() -> Probe {
    let pace = Pace {
        delay: 2,
        period: 5,
        failures: 6,
        timeout: 5,
    };
    exec(&[PROGRAM, "healthcheck", "healthz"], pace)
}
