//! Keys are where they may be, and a pod with a key anywhere else is refused.

use k8s_openapi::api::core::v1::{
    Container, EnvFromSource, EnvVar, EnvVarSource, PodSpec, ProjectedVolumeSource,
    SecretEnvSource, SecretKeySelector, SecretProjection, SecretVolumeSource, Volume, VolumeMount,
    VolumeProjection,
};
use keelson_render::pod::Kind;
use keelson_render::{Node, bootstrap, containment, stateful_set};
use serde_json::json;

use super::world::{
    MODES, bootstrap_pod_of, changed, container, containers, node, platform, pod_of,
};

const SECRETS: [&str; 4] = ["val-signing", "val-node", "val-keyring", "val-passphrase"];

#[test]
fn key_files_are_mounted_alone_and_read_only_in_the_node_only() {
    let pod = pod_of(&node("validator"), &platform());
    let seid = container(&pod, "seid");
    for (volume, file) in [
        ("signing-key", "priv_validator_key.json"),
        ("node-key", "node_key.json"),
    ] {
        let all = containers(&pod);
        let mounting: Vec<_> = all
            .iter()
            .filter(|it| it.volume_mounts.iter().flatten().any(|m| m.name == volume))
            .map(|it| it.name.as_str())
            .collect();
        assert_eq!(mounting, ["seid"], "{volume}");
        let mut mounts = seid.volume_mounts.iter().flatten();
        let mount = mounts.find(|it| it.name == volume).expect("a mount");
        assert_eq!(mount.sub_path.as_deref(), Some(file));
        assert_eq!(mount.mount_path, format!("/.sei/config/{file}"));
        assert_eq!(mount.read_only, Some(true));
        let mut volumes = pod.volumes.iter().flatten();
        let source = volumes.find(|it| it.name == volume).expect("a volume");
        let source = source.secret.as_ref().expect("a Secret");
        assert_eq!(source.default_mode, Some(0o400));
        let items = source.items.as_ref().expect("items");
        assert_eq!(items.len(), 1);
        assert_eq!(
            (items[0].key.as_str(), items[0].path.as_str()),
            (file, file)
        );
    }
}

#[test]
fn the_keyring_and_its_passphrase_are_the_sidecars() {
    let pod = pod_of(&node("validator"), &platform());
    for it in containers(&pod) {
        let text = serde_json::to_string(it).expect("JSON");
        let has = text.contains("operator-keyring") || text.contains("val-passphrase");
        assert_eq!(has, it.name == "sei-sidecar", "{}", it.name);
    }
    let text = serde_json::to_string(container(&pod, "sei-sidecar")).expect("JSON");
    assert!(text.contains(r#"{"name":"SEI_KEYRING_BACKEND","value":"file"}"#));
}

/// Containers of a pod see each other's processes, and `/proc` shows a process's files to its user.
#[test]
fn who_holds_no_keys_is_another_user_than_those_who_do() {
    for pod in [
        pod_of(&node("validator"), &platform()),
        bootstrap_pod_of(&node("fullNode"), &platform()),
    ] {
        for it in containers(&pod) {
            let context = it.security_context.as_ref().expect("a security context");
            let works = it.name.starts_with("sei");
            let user = if works { 65532 } else { 65533 };
            let is = (context.run_as_user, context.run_as_group);
            assert_eq!(is, (Some(user), Some(user)), "{}", it.name);
        }
    }
}

#[test]
fn a_node_without_keys_and_every_bootstrap_pod_has_none() {
    for mode in MODES {
        let mut pods = Vec::new();
        if mode != "validator" {
            pods.push(pod_of(&node(mode), &platform()));
        }
        if mode != "archive" {
            pods.push(bootstrap_pod_of(&node(mode), &platform()));
        }
        for pod in pods {
            let text = serde_json::to_string(&pod).expect("JSON");
            for word in SECRETS.into_iter().chain(["KEYRING"]) {
                assert!(!text.contains(word), "{mode} has {word}");
            }
        }
    }
}

/// Ways a Secret comes into a container, all of which the guard has to know.
const WAYS: [&str; 4] = ["files", "projected", "variable", "variables"];

/// Brings a Secret into one container of a pod.
fn smuggle(pod: &mut PodSpec, way: &str, secret: &str, into: &str) {
    let name = || "smuggled".to_owned();
    let secret = secret.to_owned();
    let mut volume = Volume {
        name: name(),
        ..Volume::default()
    };
    let init = pod.init_containers.iter_mut().flatten();
    let mut all = init.chain(&mut pod.containers);
    let target: &mut Container = all.find(|it| it.name == into).expect("a container");
    if way == "variable" {
        let source = EnvVarSource {
            secret_key_ref: Some(SecretKeySelector {
                name: secret,
                key: "key".to_owned(),
                optional: None,
            }),
            ..EnvVarSource::default()
        };
        target.env.get_or_insert_default().push(EnvVar {
            name: name(),
            value: None,
            value_from: Some(source),
        });
        return;
    }
    if way == "variables" {
        target.env_from.get_or_insert_default().push(EnvFromSource {
            secret_ref: Some(SecretEnvSource {
                name: secret,
                optional: None,
            }),
            ..EnvFromSource::default()
        });
        return;
    }
    target
        .volume_mounts
        .get_or_insert_default()
        .push(VolumeMount {
            name: name(),
            mount_path: "/x".to_owned(),
            ..VolumeMount::default()
        });
    match way {
        "projected" => {
            let source = VolumeProjection {
                secret: Some(SecretProjection {
                    name: secret,
                    ..SecretProjection::default()
                }),
                ..VolumeProjection::default()
            };
            volume.projected = Some(ProjectedVolumeSource {
                sources: Some(vec![source]),
                default_mode: None,
            });
        }
        _ => {
            volume.secret = Some(SecretVolumeSource {
                secret_name: Some(secret),
                ..SecretVolumeSource::default()
            });
        }
    }
    pod.volumes.get_or_insert_default().push(volume);
}

/// Whether a Secret may be in a container in this way.
fn may(secret: &str, way: &str, into: &str, bootstrap: bool) -> bool {
    let files = way == "files" || way == "projected";
    match secret {
        "val-node" => files && into == "seid",
        _ if bootstrap => false,
        "val-signing" => files && into == "seid",
        "val-keyring" => files && into == "sei-sidecar",
        _ => !files && into == "sei-sidecar",
    }
}

#[test]
fn the_guard_knows_every_way_of_every_key_into_every_container() {
    let validator = node("validator");
    let view = Node::read(&validator).expect("a node");
    let replay = bootstrap::replay(&view).expect("a snapshot");
    let pods = [
        (Kind::Node, pod_of(&validator, &platform())),
        (
            Kind::Bootstrap(replay),
            bootstrap_pod_of(&validator, &platform()),
        ),
    ];
    for (kind, clean) in pods {
        assert_eq!(containment::check(&view, kind, &clean), Ok(()));
        for secret in SECRETS {
            for way in WAYS {
                for into in containers(&clean).iter().map(|it| it.name.clone()) {
                    let mut pod = clean.clone();
                    smuggle(&mut pod, way, secret, &into);
                    let passes = containment::check(&view, kind, &pod).is_ok();
                    let may = may(secret, way, &into, kind.word() == "bootstrap");
                    assert_eq!(
                        passes,
                        may,
                        "{secret} as {way} in {into} of {}",
                        kind.word()
                    );
                }
            }
        }
    }
}

#[test]
fn a_key_named_as_the_certificate_is_refused_with_its_name() {
    let sidecar = json!({"tls": {"secretName": "val-signing"}});
    let object = changed(node("validator"), "sidecar", sidecar);
    let view = Node::read(&object).expect("a node");
    let refused = stateful_set::stateful_set(&view, &platform()).expect_err("a refusal");
    assert_eq!(
        refused.to_string(),
        "the Secret \"val-signing\" of signingKey would be in the container kube-rbac-proxy, where it \
         must not be: name another Secret there"
    );
}
