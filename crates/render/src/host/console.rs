//! The plugin of OpenShift's console: files behind nginx, which is not ours and reads its
//! configuration once.
//!
//! nginx speaks what the profile says as far as it can be said in its words: the lowest version, and
//! the suites of TLS 1.2 by OpenSSL's names. Groups are left to it: an nginx that does not know one
//! would not start.

use k8s_openapi::api::apps::v1::{
    Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment,
};
use k8s_openapi::api::core::v1::{
    ConfigMapVolumeSource, Container, PodSpec, PodTemplateSpec, Probe, Service, ServicePort,
    ServiceSpec, TCPSocketAction, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use keelson_api::names::Label;
use serde_json::{Value, json};

use super::object::{CONSOLE_PLUGIN, Object};
use super::{HostInstall, Plugin, accounts, configuration, metadata, network, pod};
use crate::container::{Pace, probe, read_only};
use crate::metadata::{Labels, label_selector};

const CONFIGURATION: &str = "nginx-conf";
const FILE: &str = "nginx.conf";
const SECRET: &str = "plugin-serving-cert";

/// Hash of nginx's configuration on its pod, so that another configuration is another pod.
const CONFIGURATION_HASH: &str = "nmstate.io/nginx-conf-hash";

pub(super) fn objects(install: &HostInstall<'_>) -> Vec<Object> {
    let Some(plugin) = install.plugin.filter(|_| install.capabilities.console) else {
        return Vec::new();
    };
    let text = nginx(install.profile.text, plugin.port);
    vec![
        accounts::account(install, plugin.name),
        configuration::map(install, CONFIGURATION, FILE, &text),
        network::to_pods(
            install,
            &format!("allow-plugin-{}-ingress", plugin.name),
            selector(&plugin),
            None,
            plugin.port,
        ),
        service(install, &plugin),
        deployment(install, &plugin, &text),
        announced(install, &plugin),
    ]
}

/// The plugin's pods have its own name as their application: nothing that is denied to ours is
/// denied to them.
fn selector(plugin: &Plugin<'_>) -> Labels {
    Labels::from([(Label::App.to_string(), plugin.name.to_owned())])
}

fn service(install: &HostInstall<'_>, plugin: &Plugin<'_>) -> Object {
    let mut metadata = metadata::owned(install, plugin.name);
    metadata.annotations = metadata::serving_certificate(install, SECRET);
    Object::of(Service {
        metadata,
        spec: Some(ServiceSpec {
            ports: Some(vec![ServicePort {
                name: Some("https".to_owned()),
                port: plugin.port.into(),
                target_port: Some(IntOrString::Int(plugin.port.into())),
                protocol: Some("TCP".to_owned()),
                ..ServicePort::default()
            }]),
            selector: Some(selector(plugin)),
            ..ServiceSpec::default()
        }),
        status: None,
    })
}

fn deployment(install: &HostInstall<'_>, plugin: &Plugin<'_>, text: &str) -> Object {
    let quarter = || Some(IntOrString::String("25%".to_owned()));
    let hash = keelson_seid_config::of_parts([text.as_bytes()].into_iter());
    let template = PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(selector(plugin)),
            annotations: Some(Labels::from([(CONFIGURATION_HASH.to_owned(), hash)])),
            ..ObjectMeta::default()
        }),
        spec: Some(spec(install, plugin)),
    };
    Object::of(Deployment {
        metadata: metadata::owned(install, plugin.name),
        spec: Some(DeploymentSpec {
            replicas: Some(1),
            selector: label_selector(selector(plugin)),
            strategy: Some(DeploymentStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(RollingUpdateDeployment {
                    max_surge: quarter(),
                    max_unavailable: quarter(),
                }),
            }),
            template,
            ..DeploymentSpec::default()
        }),
        status: None,
    })
}

/// Placed only where the NMState says so: it is no part of the control plane.
fn spec(install: &HostInstall<'_>, plugin: &Plugin<'_>) -> PodSpec {
    let said = install.spec;
    let (selected, tolerations) = (&said.infra_node_selector, &said.infra_tolerations);
    PodSpec {
        affinity: said.infra_affinity.clone(),
        automount_service_account_token: Some(false),
        containers: vec![container(plugin)],
        node_selector: (!selected.is_empty()).then(|| selected.clone()),
        service_account_name: Some(plugin.name.to_owned()),
        tolerations: (!tolerations.is_empty()).then(|| tolerations.clone()),
        volumes: Some(vec![
            pod::key_pair(SECRET, SECRET),
            Volume {
                name: CONFIGURATION.to_owned(),
                config_map: Some(ConfigMapVolumeSource {
                    name: CONFIGURATION.to_owned(),
                    ..ConfigMapVolumeSource::default()
                }),
                ..Volume::default()
            },
        ]),
        ..PodSpec::default()
    }
}

fn container(plugin: &Plugin<'_>) -> Container {
    let reached = |failures, timeout| Probe {
        tcp_socket: Some(TCPSocketAction {
            port: IntOrString::Int(plugin.port.into()),
            host: None,
        }),
        ..probe(Pace {
            delay: 10,
            period: 10,
            failures,
            timeout,
        })
    };
    Container {
        name: plugin.name.to_owned(),
        image: Some(plugin.image.to_owned()),
        image_pull_policy: Some("IfNotPresent".to_owned()),
        liveness_probe: Some(reached(3, 1)),
        ports: Some(vec![pod::port("https", plugin.port)]),
        readiness_probe: Some(reached(3, 1)),
        resources: Some(pod::requests("10m", "50Mi")),
        volume_mounts: Some(vec![
            read_only(SECRET, "/var/serving-cert"),
            VolumeMount {
                sub_path: Some(FILE.to_owned()),
                ..read_only(CONFIGURATION, "/etc/nginx/nginx.conf")
            },
        ]),
        ..Container::default()
    }
}

/// What tells the console of the plugin.
fn announced(install: &HostInstall<'_>, plugin: &Plugin<'_>) -> Object {
    let mut metadata = metadata::cluster(install, plugin.name);
    let i18n = (
        "console.openshift.io/use-i18n".to_owned(),
        "true".to_owned(),
    );
    metadata.annotations = Some(Labels::from([i18n]));
    let spec = json!({
        "displayName": "Console Plugin for NMState",
        "backend": {
            "type": "Service",
            "service": {
                "name": plugin.name,
                "namespace": install.namespace,
                "port": plugin.port,
                "basePath": "/",
            },
        },
    });
    Object::written(CONSOLE_PLUGIN, metadata, spec)
}

/// nginx's configuration.
fn nginx(profile: &str, port: u16) -> String {
    let lines = [
        format!("listen {port} ssl;"),
        "ssl_certificate /var/serving-cert/tls.crt;".to_owned(),
        "ssl_certificate_key /var/serving-cert/tls.key;".to_owned(),
        "root /opt/app-root/src;".to_owned(),
    ];
    let server: String = lines
        .into_iter()
        .chain(spoken(profile))
        .map(|line| format!("    {line}\n"))
        .collect();
    format!(
        "error_log /dev/stdout info;\nevents {{}}\nhttp {{\n  access_log /dev/stdout;\n  include /etc/nginx/mime.types;\n  default_type application/octet-stream;\n  server {{\n{server}  }}\n}}\n"
    )
}

/// What of a profile nginx is told; nothing where it is the library's own.
fn spoken(profile: &str) -> Vec<String> {
    let profile: Value = serde_json::from_str(profile).unwrap_or_default();
    let Some(minimum) = profile["minTLSVersion"].as_str() else {
        return Vec::new();
    };
    let listed = profile["ciphers"].as_array();
    let suites: Vec<_> = listed
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|name| openssl_name_of_tls12(name))
        .collect();
    let modern = minimum == "VersionTLS13" || (listed.is_some() && suites.is_empty());
    let mut lines = vec![match modern {
        true => "ssl_protocols TLSv1.3;".to_owned(),
        false => "ssl_protocols TLSv1.2 TLSv1.3;".to_owned(),
    }];
    if !modern && !suites.is_empty() {
        lines.push(format!("ssl_ciphers {};", suites.join(":")));
    }
    lines
}

/// Anything else could end the line it stands on.
fn openssl_name_of_tls12(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    !name.is_empty() && !name.starts_with("TLS_") && name.chars().all(plain)
}
