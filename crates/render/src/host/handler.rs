//! The DaemonSet of the handler: on every host, on the host's own network, with the host's own D-Bus.
//!
//! It serves nothing and loads no profile, so it is not stamped with one. It is asked for its health
//! over a socket in its own container: the host's addresses change under it, and under a probe too.

use std::net::IpAddr;

use k8s_openapi::api::apps::v1::{
    DaemonSet, DaemonSetSpec, DaemonSetUpdateStrategy, RollingUpdateDaemonSet,
};
use k8s_openapi::api::core::v1::{
    Container, EmptyDirVolumeSource, EnvVar, HostPathVolumeSource, PodSpec, Probe, SecurityContext,
    Toleration, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use keelson_api::host::{
    BOOTSTRAP_CONFIG_MAP, BOOTSTRAP_DIR, CHECKPOINT_TIMEOUT_VARIABLE, DBUS_ADDRESS,
    DBUS_ADDRESS_VARIABLE, DBUS_DIR, DISPATCH_SCRIPTS_VARIABLE, HANDLER, HANDLER_RUN_DIR,
    HANDLER_SOCKET, HANDLER_STATE_DIR, INITIAL_BACKOFF_VARIABLE, LOCK_FILE, LOCK_FILE_VARIABLE,
    MAX_BACKOFF_VARIABLE, MAX_RETRIES_VARIABLE, NODE_NAME_VARIABLE, PROBE_DNS_HOST_VARIABLE,
    PROBE_DNS_SERVERS_VARIABLE, PROBE_GATEWAYS_VARIABLE, PROBE_TIMEOUT_VARIABLE, PROGRAM,
};
use keelson_api::names::HostWorkload;
use keelson_api::nmstate::{DispatchScripts, LogLevel};

use super::object::Object;
use super::{HostInstall, metadata, pod};
use crate::container::{Pace, env, exec, mount, read_only};
use crate::metadata::label_selector;

/// How long a handler may take to end: longer than NetworkManager keeps a checkpoint, so that a change
/// under way is finished or undone first.
const GRACE_SECONDS: i64 = 600;

/// How many handlers may be replaced at once.
const MAX_UNAVAILABLE: &str = "10%";

/// Volume of the health socket.
const RUN: &str = "run";

/// Volume of the policies a host starts with.
const BOOTSTRAP: &str = "bootstrap-policies";

/// What of the host the handler sees: name, path, type.
const HOST_PATHS: [(&str, &str, Option<&str>); 4] = [
    // A handler starts on a host whose D-Bus does not run yet.
    ("dbus-socket", DBUS_DIR, Some("DirectoryOrCreate")),
    ("nmstate-lock", HANDLER_STATE_DIR, Some("DirectoryOrCreate")),
    ("ovs-socket", "/run/openvswitch", None),
    // nmstate keeps alternative names of interfaces there.
    (
        "systemd-network",
        "/etc/systemd/network",
        Some("DirectoryOrCreate"),
    ),
];

pub(super) fn daemon_set(install: &HostInstall<'_>) -> Object {
    let mut metadata = metadata::owned(install, HANDLER);
    metadata.labels = Some(metadata::workload(HostWorkload::Handler));
    let spec = DaemonSetSpec {
        selector: label_selector(metadata::selector(HANDLER)),
        template: pod::template(install, HANDLER, HostWorkload::Handler, spec(install)),
        update_strategy: Some(DaemonSetUpdateStrategy {
            type_: Some("RollingUpdate".to_owned()),
            rolling_update: Some(RollingUpdateDaemonSet {
                max_unavailable: Some(IntOrString::String(MAX_UNAVAILABLE.to_owned())),
                max_surge: None,
            }),
        }),
        ..DaemonSetSpec::default()
    };
    Object::of(DaemonSet {
        metadata,
        spec: Some(spec),
        status: None,
    })
}

fn spec(install: &HostInstall<'_>) -> PodSpec {
    let said = install.spec;
    let everywhere = Toleration {
        operator: Some("Exists".to_owned()),
        ..Toleration::default()
    };
    let tolerations = match said.tolerations.as_slice() {
        [] => vec![everywhere],
        tolerations => tolerations.to_vec(),
    };
    PodSpec {
        affinity: said.affinity.clone(),
        automount_service_account_token: Some(true),
        containers: vec![container(install)],
        // The host's resolver: the cluster's needs the network that is being changed.
        dns_policy: Some("Default".to_owned()),
        host_network: Some(true),
        node_selector: Some(pod::on_linux_unless(&said.node_selector)),
        priority_class_name: Some("system-node-critical".to_owned()),
        service_account_name: Some(HANDLER.to_owned()),
        termination_grace_period_seconds: Some(GRACE_SECONDS),
        tolerations: Some(tolerations),
        volumes: Some(volumes()),
        ..PodSpec::default()
    }
}

fn container(install: &HostInstall<'_>) -> Container {
    let arguments: &[&str] = match install.spec.log_level {
        Some(LogLevel::Debug) => &["handler", "--v", "debug"],
        Some(LogLevel::Info) | None => &["handler"],
    };
    Container {
        env: Some(told(install)),
        liveness_probe: Some(ask(
            "live",
            // A loop that has not ticked for 10 seconds is asked for twice more before it is ended.
            Pace {
                delay: 10,
                period: 15,
                failures: 3,
                timeout: 5,
            },
        )),
        readiness_probe: Some(ask(
            "ready",
            Pace {
                delay: 5,
                period: 5,
                failures: 3,
                timeout: 5,
            },
        )),
        resources: Some(pod::requests("100m", "100Mi")),
        security_context: Some(SecurityContext {
            privileged: Some(true),
            read_only_root_filesystem: Some(true),
            // The image is that of webhook and metrics, whose user is nobody.
            run_as_user: Some(0),
            ..SecurityContext::default()
        }),
        volume_mounts: Some(mounts()),
        ..pod::container(install, HANDLER, arguments)
    }
}

fn told(install: &HostInstall<'_>) -> Vec<EnvVar> {
    let spec = install.spec;
    let scripts = spec.dispatch_scripts.unwrap_or(DispatchScripts::Refused);
    let retries = install.retries;
    let probes = spec.probes();
    let dns = probes.dns.unwrap_or_default();
    let gateways = probes.gateway.unwrap_or_default().addresses;
    let mut told = pod::told(install);
    told.extend([
        pod::field(NODE_NAME_VARIABLE, "spec.nodeName"),
        env(LOCK_FILE_VARIABLE, LOCK_FILE),
        env(DBUS_ADDRESS_VARIABLE, DBUS_ADDRESS),
        env(PROBE_DNS_HOST_VARIABLE, dns.host),
        env(PROBE_DNS_SERVERS_VARIABLE, listed(&dns.servers)),
        env(PROBE_GATEWAYS_VARIABLE, listed(&gateways)),
        env(PROBE_TIMEOUT_VARIABLE, probes.timeout_seconds.to_string()),
        env(
            CHECKPOINT_TIMEOUT_VARIABLE,
            probes.checkpoint_seconds.to_string(),
        ),
        env(DISPATCH_SCRIPTS_VARIABLE, scripts.to_string()),
        env(MAX_RETRIES_VARIABLE, retries.attempts.to_string()),
        env(MAX_BACKOFF_VARIABLE, retries.longest_seconds.to_string()),
        env(INITIAL_BACKOFF_VARIABLE, retries.first_seconds.to_string()),
    ]);
    told
}

/// Addresses apart by commas.
fn listed(addresses: &[IpAddr]) -> String {
    let texts: Vec<_> = addresses.iter().map(IpAddr::to_string).collect();
    texts.join(",")
}

fn ask(what: &str, pace: Pace) -> Probe {
    exec(&[PROGRAM, "probe", "--socket", HANDLER_SOCKET, what], pace)
}

fn mounts() -> Vec<VolumeMount> {
    let host = HOST_PATHS.map(|(name, path, _)| mount(name, path));
    host.into_iter()
        .chain([
            mount(RUN, HANDLER_RUN_DIR),
            read_only(BOOTSTRAP, BOOTSTRAP_DIR),
        ])
        .collect()
}

fn volumes() -> Vec<Volume> {
    let host = HOST_PATHS.map(|(name, path, type_)| Volume {
        name: name.to_owned(),
        host_path: Some(HostPathVolumeSource {
            path: path.to_owned(),
            type_: type_.map(str::to_owned),
        }),
        ..Volume::default()
    });
    let run = Volume {
        name: RUN.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource {
            medium: Some("Memory".to_owned()),
            ..EmptyDirVolumeSource::default()
        }),
        ..Volume::default()
    };
    // Most installations have none.
    let bootstrap = pod::optional(BOOTSTRAP, BOOTSTRAP_CONFIG_MAP);
    host.into_iter().chain([run, bootstrap]).collect()
}
