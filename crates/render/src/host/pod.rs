//! What the pods of the host components have in common: where they run, what they are told, how they
//! are asked for their health.
//!
//! A container must start again with no API server: every variable is a literal or something the
//! kubelet knows by itself, and an image that is there is not asked for.

use k8s_openapi::api::core::v1::{
    Affinity, ConfigMapVolumeSource, Container, ContainerPort, EnvVar, EnvVarSource, HTTPGetAction,
    NodeAffinity, NodeSelectorRequirement, NodeSelectorTerm, ObjectFieldSelector,
    PodSecurityContext, PodSpec, PodTemplateSpec, PreferredSchedulingTerm, Probe,
    ResourceRequirements, SecretVolumeSource, SecurityContext, Toleration,
    TopologySpreadConstraint, Volume,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use keelson_api::host::{
    HEALTH_PORT, IS_OPENSHIFT_VARIABLE, LIVE_PATH, POD_NAME_VARIABLE, POD_NAMESPACE_VARIABLE,
    READY_PATH, TLS_CONFIG_MAP, TLS_PROFILE_HASH, TLS_PROFILE_HASH_VARIABLE,
};
use keelson_api::names::{HostWorkload, Label};

use super::{HostInstall, metadata};
use crate::container::{Pace, USER, env, probe, sealed};
use crate::metadata::{Labels, label_selector};

/// Volume with the TLS profile.
pub(super) const PROFILE: &str = "tls-config";

/// What every variable of a host pod is taken from: the first three of each.
pub(super) fn told(install: &HostInstall<'_>) -> Vec<EnvVar> {
    vec![
        env(
            IS_OPENSHIFT_VARIABLE,
            install.capabilities.openshift.to_string(),
        ),
        env(POD_NAMESPACE_VARIABLE, install.namespace),
        field(POD_NAME_VARIABLE, "metadata.name"),
    ]
}

/// A variable with something the kubelet knows of the pod.
pub(super) fn field(name: &str, path: &str) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: None,
        value_from: Some(EnvVarSource {
            field_ref: Some(ObjectFieldSelector {
                api_version: Some("v1".to_owned()),
                field_path: path.to_owned(),
            }),
            ..EnvVarSource::default()
        }),
    }
}

/// The hash the pod was made for, so that it can say whether it has loaded that profile.
pub(super) fn stamped() -> EnvVar {
    let path = format!("metadata.annotations['{TLS_PROFILE_HASH}']");
    field(TLS_PROFILE_HASH_VARIABLE, &path)
}

/// One container of `keelson-host` in a role.
pub(super) fn container(install: &HostInstall<'_>, name: &str, arguments: &[&str]) -> Container {
    Container {
        name: name.to_owned(),
        image: Some(install.image.to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        args: Some(arguments.iter().map(|&word| word.to_owned()).collect()),
        termination_message_policy: Some("FallbackToLogsOnError".to_owned()),
        ..Container::default()
    }
}

/// What is asked for. Not limited: a pod that is ended for its memory serves nobody.
pub(super) fn requests(cpu: &str, memory: &str) -> ResourceRequirements {
    let amounts = [("cpu", cpu), ("memory", memory)];
    ResourceRequirements {
        requests: Some(
            amounts
                .map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())))
                .into(),
        ),
        ..ResourceRequirements::default()
    }
}

/// A pod of a workload. Only those that serve a profile are stamped with it.
pub(super) fn template(
    install: &HostInstall<'_>,
    name: &str,
    workload: HostWorkload,
    spec: PodSpec,
) -> PodTemplateSpec {
    let mut labels = metadata::workload(workload);
    labels.extend(metadata::selector(name));
    let mut annotations = Labels::from([(
        "target.workload.openshift.io/management".to_owned(),
        r#"{"effect":"PreferredDuringScheduling"}"#.to_owned(),
    )]);
    if matches!(workload, HostWorkload::Webhook | HostWorkload::Metrics) {
        let hash = install.profile.hash.to_owned();
        annotations.insert(TLS_PROFILE_HASH.to_owned(), hash);
    }
    PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        }),
        spec: Some(spec),
    }
}

/// Where webhook and metrics run: where the NMState says, or near the control plane.
pub(super) fn infrastructure(install: &HostInstall<'_>) -> PodSpec {
    let spec = install.spec;
    let tolerations = match spec.infra_tolerations.as_slice() {
        [] => [CONTROL_PLANE, MASTER].map(tolerates).to_vec(),
        said => said.to_vec(),
    };
    PodSpec {
        affinity: Some(
            spec.infra_affinity
                .clone()
                .unwrap_or_else(near_control_plane),
        ),
        containers: Vec::new(),
        node_selector: Some(on_linux_unless(&spec.infra_node_selector)),
        priority_class_name: Some("system-cluster-critical".to_owned()),
        security_context: Some(groups(install)),
        tolerations: Some(tolerations),
        ..PodSpec::default()
    }
}

const CONTROL_PLANE: &str = "node-role.kubernetes.io/control-plane";
const MASTER: &str = "node-role.kubernetes.io/master";

/// What a person selects, and otherwise every machine these programs run on.
pub(super) fn on_linux_unless(selected: &Labels) -> Labels {
    match selected.is_empty() {
        true => Labels::from([("kubernetes.io/os".to_owned(), "linux".to_owned())]),
        false => selected.clone(),
    }
}

fn tolerates(key: &str) -> Toleration {
    Toleration {
        key: Some(key.to_owned()),
        operator: Some("Exists".to_owned()),
        effect: Some("NoSchedule".to_owned()),
        ..Toleration::default()
    }
}

fn near_control_plane() -> Affinity {
    let prefer = |weight, key: &str| PreferredSchedulingTerm {
        weight,
        preference: NodeSelectorTerm {
            match_expressions: Some(vec![NodeSelectorRequirement {
                key: key.to_owned(),
                operator: "Exists".to_owned(),
                values: None,
            }]),
            match_fields: None,
        },
    };
    Affinity {
        node_affinity: Some(NodeAffinity {
            preferred_during_scheduling_ignored_during_execution: Some(vec![
                prefer(10, CONTROL_PLANE),
                prefer(1, MASTER),
            ]),
            ..NodeAffinity::default()
        }),
        ..Affinity::default()
    }
}

/// One pod on a machine before two are on one. A machine whose taints keep the pods away does not
/// count, or a machine being drained would keep a rollout waiting.
pub(super) fn spread(workload: HostWorkload) -> Vec<TopologySpreadConstraint> {
    let component = (Label::HostComponent.to_string(), workload.to_string());
    vec![TopologySpreadConstraint {
        max_skew: 1,
        topology_key: "kubernetes.io/hostname".to_owned(),
        when_unsatisfiable: "DoNotSchedule".to_owned(),
        label_selector: Some(label_selector(Labels::from([component]))),
        node_taints_policy: Some("Honor".to_owned()),
        ..TopologySpreadConstraint::default()
    }]
}

/// The user of the process, and the group that reads the mounted keys. OpenShift gives both.
fn groups(install: &HostInstall<'_>) -> PodSecurityContext {
    PodSecurityContext {
        run_as_non_root: Some(true),
        fs_group: (!install.capabilities.openshift).then_some(USER),
        ..PodSecurityContext::default()
    }
}

/// No privileges and an image that cannot be written to; OpenShift chooses the user by itself.
pub(super) fn confined(install: &HostInstall<'_>) -> SecurityContext {
    let mut context = sealed();
    if install.capabilities.openshift {
        context.run_as_user = None;
        context.run_as_group = None;
    }
    context
}

/// The profile. Absent, a pod starts with what is built in, and says so.
pub(super) fn profile() -> Volume {
    optional(PROFILE, TLS_CONFIG_MAP)
}

/// The files of a ConfigMap, which need not be there for the pod to start.
pub(super) fn optional(volume: &str, map: &str) -> Volume {
    Volume {
        name: volume.to_owned(),
        config_map: Some(ConfigMapVolumeSource {
            name: map.to_owned(),
            optional: Some(true),
            ..ConfigMapVolumeSource::default()
        }),
        ..Volume::default()
    }
}

/// A certificate and its key, for the pod's group alone.
pub(super) fn key_pair(volume: &str, secret: &str) -> Volume {
    Volume {
        name: volume.to_owned(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret.to_owned()),
            default_mode: Some(0o440),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    }
}

pub(super) fn port(name: &str, number: u16) -> ContainerPort {
    ContainerPort {
        name: Some(name.to_owned()),
        container_port: number.into(),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }
}

/// The port of health; in the clear, so that no profile can keep the kubelet out.
pub(super) fn health_port() -> ContainerPort {
    port("health", HEALTH_PORT)
}

/// The three probes of a pod that serves: three minutes to start on a machine that is slow, and seen
/// within a second on one that is not.
pub(super) fn probed(container: Container) -> Container {
    Container {
        startup_probe: Some(ask(LIVE_PATH, 1, 180)),
        readiness_probe: Some(ask(READY_PATH, 5, 3)),
        liveness_probe: Some(ask(LIVE_PATH, 10, 3)),
        ..container
    }
}

fn ask(path: &str, period: i32, failures: i32) -> Probe {
    let pace = Pace {
        delay: 0,
        period,
        failures,
        timeout: 3,
    };
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::Int(HEALTH_PORT.into()),
            ..HTTPGetAction::default()
        }),
        ..probe(pace)
    }
}
