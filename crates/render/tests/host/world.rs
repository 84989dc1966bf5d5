//! The installations the tests are about, and ways to look at what comes out.

use std::sync::LazyLock;

use keelson_api::NMStateSpec;
use keelson_api::names::Label;
use keelson_render::host::{
    Capabilities, Certificates, HostInstall, Object, Plugin, Profile, Retries, objects,
};
use keelson_render::platform::Source;
use serde_json::{Value, json};

/// The bytes of Intermediate are not what matters here; that they are passed on is.
pub(crate) const PROFILE: &str = r#"{"ciphers":["TLS_AES_128_GCM_SHA256","ECDHE-ECDSA-AES128-GCM-SHA256"],"minTLSVersion":"VersionTLS12"}"#;

static OPERATOR: LazyLock<Source> = LazyLock::new(|| Source {
    namespace: "keelson-system".to_owned(),
    labels: [(Label::AppName.to_string(), "keelson-operator".to_owned())].into(),
});

/// A plain cluster with nothing but Kubernetes.
pub(crate) fn vanilla(spec: &NMStateSpec) -> HostInstall<'_> {
    HostInstall {
        name: "nmstate",
        uid: "5f6e2e5e-9d40-4a43-a1a5-000000000008",
        spec,
        namespace: "nmstate",
        monitoring_namespace: "monitoring",
        operator: &OPERATOR,
        image: "registry.example/keelson-host:1",
        capabilities: Capabilities::default(),
        profile: Profile {
            text: PROFILE,
            hash: "1f",
        },
        certificates: Certificates::Operator {
            ca_bundle: "-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n",
        },
        webhook_replicas: 2,
        api_ports: &[443, 6443],
        retries: Retries::default(),
        plugin: Some(Plugin {
            name: "nmstate-console-plugin",
            image: "registry.example/console-plugin:1",
            port: 9443,
        }),
    }
}

/// OpenShift, with everything it has.
pub(crate) fn openshift(spec: &NMStateSpec) -> HostInstall<'_> {
    HostInstall {
        capabilities: Capabilities {
            openshift: true,
            security_constraints: true,
            console: true,
            service_monitors: true,
            prometheus_rules: true,
        },
        namespace: "openshift-nmstate",
        monitoring_namespace: "openshift-monitoring",
        certificates: Certificates::ServiceCa,
        ..vanilla(spec)
    }
}

/// What a person asks for.
pub(crate) fn spec(value: Value) -> NMStateSpec {
    serde_json::from_value(value).expect("a spec")
}

/// What a person who says nothing asks for.
pub(crate) fn plain() -> NMStateSpec {
    spec(json!({}))
}

pub(crate) fn rendered(install: &HostInstall<'_>) -> Vec<Object> {
    objects(install).expect("objects")
}

/// The objects of a kind.
pub(crate) fn of_kind<'a>(objects: &'a [Object], kind: &str) -> Vec<&'a Object> {
    let found = objects.iter().filter(|it| it.identity.kind.kind == kind);
    found.collect()
}

/// One object, which must be there.
pub(crate) fn find<'a>(objects: &'a [Object], kind: &str, name: &str) -> &'a Value {
    let found = objects
        .iter()
        .find(|it| it.identity.kind.kind == kind && it.identity.name == name);
    &found.unwrap_or_else(|| panic!("no {kind} {name}")).value
}

/// The pod of a workload.
pub(crate) fn pod<'a>(objects: &'a [Object], name: &str) -> &'a Value {
    let kind = match name {
        "nmstate-handler" => "DaemonSet",
        _ => "Deployment",
    };
    &find(objects, kind, name)["spec"]["template"]
}

/// The only container of it.
pub(crate) fn container<'a>(objects: &'a [Object], name: &str) -> &'a Value {
    &pod(objects, name)["spec"]["containers"][0]
}

/// A variable of a workload.
pub(crate) fn variable<'a>(objects: &'a [Object], workload: &str, name: &str) -> Option<&'a Value> {
    let variables = container(objects, workload)["env"].as_array()?;
    variables.iter().find(|it| it["name"] == name)
}

pub(crate) const WORKLOADS: [&str; 3] = ["nmstate-handler", "nmstate-webhook", "nmstate-metrics"];
