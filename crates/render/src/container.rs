//! The containers of a pod, one file each, and what they have in common.

pub(crate) mod exporter;
pub(crate) mod proxy;
pub(crate) mod seid;
pub(crate) mod sidecar;

use k8s_openapi::api::core::v1::{
    Capabilities, ContainerPort, EnvVar, ExecAction, HTTPGetAction, Probe, ResourceRequirements,
    SeccompProfile, SecurityContext, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use keelson_api::names::Port;

use crate::platform::Size;

/// The node's home: where the data volume is mounted. A program that is told nothing looks for
/// `.sei` in `HOME`, which is the folder above.
pub(crate) const HOME: &str = "/.sei";
pub(crate) const ABOVE_HOME: &str = "/";

/// User and group of those who work on the volumes, and group of the volumes.
pub(crate) const USER: i64 = 65532;
/// User and group of those who only listen. All see each other's processes, and a process may look
/// into those of its own user, where the keys are.
const STRANGER: i64 = 65533;

/// Volumes every container names in the same way.
pub(crate) const DATA: &str = "data";
pub(crate) const SCRATCH: &str = "sidecar-tmp";

/// Runs beside the containers, started before them: a native sidecar.
pub(crate) const ALWAYS: &str = "Always";

pub(crate) fn env(name: &str, value: impl Into<String>) -> EnvVar {
    EnvVar {
        name: name.to_owned(),
        value: Some(value.into()),
        value_from: None,
    }
}

pub(crate) fn mount(volume: &str, path: &str) -> VolumeMount {
    VolumeMount {
        name: volume.to_owned(),
        mount_path: path.to_owned(),
        ..VolumeMount::default()
    }
}

pub(crate) fn read_only(volume: &str, path: &str) -> VolumeMount {
    VolumeMount {
        read_only: Some(true),
        ..mount(volume, path)
    }
}

pub(crate) fn port(port: Port, number: u16) -> ContainerPort {
    ContainerPort {
        name: Some(port.to_string()),
        container_port: number.into(),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    }
}

/// Memory is asked for and limited alike; processors are asked for only.
pub(crate) fn resources(size: &Size) -> ResourceRequirements {
    let memory = ("memory".to_owned(), size.memory.clone());
    let cpu = ("cpu".to_owned(), size.cpu.clone());
    ResourceRequirements {
        limits: Some([memory.clone()].into()),
        requests: Some([cpu, memory].into()),
        claims: None,
    }
}

/// No root, no privileges, no capabilities.
pub(crate) fn confined() -> SecurityContext {
    SecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(USER),
        run_as_group: Some(USER),
        allow_privilege_escalation: Some(false),
        capabilities: Some(Capabilities {
            drop: Some(vec!["ALL".to_owned()]),
            add: None,
        }),
        seccomp_profile: Some(SeccompProfile {
            type_: "RuntimeDefault".to_owned(),
            localhost_profile: None,
        }),
        ..SecurityContext::default()
    }
}

/// The same, and the image cannot be written to.
pub(crate) fn sealed() -> SecurityContext {
    SecurityContext {
        read_only_root_filesystem: Some(true),
        ..confined()
    }
}

/// The same, for whom the node's files and keys are none of its business.
pub(crate) fn apart() -> SecurityContext {
    SecurityContext {
        run_as_user: Some(STRANGER),
        run_as_group: Some(STRANGER),
        ..sealed()
    }
}

/// When a probe begins, how often it is made, and how often it may fail.
pub(crate) struct Pace {
    pub(crate) delay: i32,
    pub(crate) period: i32,
    pub(crate) failures: i32,
    pub(crate) timeout: i32,
}

pub(crate) fn probe(pace: Pace) -> Probe {
    Probe {
        initial_delay_seconds: Some(pace.delay),
        period_seconds: Some(pace.period),
        failure_threshold: Some(pace.failures),
        timeout_seconds: Some(pace.timeout),
        ..Probe::default()
    }
}

pub(crate) fn get(path: &str, port: Port, pace: Pace) -> Probe {
    Probe {
        http_get: Some(HTTPGetAction {
            path: Some(path.to_owned()),
            port: IntOrString::Int(port.number().into()),
            ..HTTPGetAction::default()
        }),
        ..probe(pace)
    }
}

pub(crate) fn exec(command: &[&str], pace: Pace) -> Probe {
    Probe {
        exec: Some(ExecAction {
            command: Some(command.iter().map(|&word| word.to_owned()).collect()),
        }),
        ..probe(pace)
    }
}
