//! The platform and the nodes the tests are about.

use k8s_openapi::api::core::v1::{Container, PodSpec};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use keelson_api::SeiNode;
use keelson_api::names::Label;
use keelson_render::platform::{
    Access, Bucket, Class, ObjectStore, Platform, Program, Proxy, Right, Size, Source,
};
use keelson_render::{Node, bootstrap, pod, stateful_set};
use serde_json::{Value, json};

pub(crate) const MODES: [&str; 4] = ["fullNode", "archive", "replayer", "validator"];

fn size(cpu: &str, memory: &str) -> Size {
    Size {
        cpu: Quantity(cpu.to_owned()),
        memory: Quantity(memory.to_owned()),
    }
}

fn program(image: &str, cpu: &str, memory: &str) -> Program {
    Program {
        image: image.to_owned(),
        size: size(cpu, memory),
    }
}

fn class(pool: &str, storage_class: &str, storage: &str, size: Size) -> Class {
    Class {
        pool: pool.to_owned(),
        storage_class: storage_class.to_owned(),
        storage: Quantity(storage.to_owned()),
        size,
    }
}

fn bucket(name: &str) -> Bucket {
    Bucket {
        name: name.to_owned(),
        region: "us-east-2".to_owned(),
    }
}

/// A platform with our proxy.
pub(crate) fn platform() -> Platform {
    let labels = [(Label::AppName.to_string(), "keelson-operator".to_owned())];
    Platform {
        service_account: "seid-node".to_owned(),
        toleration_key: "sei.io/workload".to_owned(),
        genesis: bucket("dev-sei-k8s-genesis-artifacts"),
        snapshots: bucket("dev-sei-snapshots"),
        object_store: ObjectStore::default(),
        default: class("sei-node", "gp3-10k-750", "2000Gi", size("4", "32Gi")),
        archive: class("sei-archive", "gp3-archive", "40Ti", size("48", "448Gi")),
        sidecar: program("sidecar:1", "100m", "256Mi"),
        exporter: program("exporter:1", "50m", "384Mi"),
        proxy: Proxy {
            program: program("registry.example/keelson-proxy:1", "20m", "64Mi"),
            reloads: true,
            audiences: vec!["https://kubernetes.default.svc".to_owned()],
            open_metrics: true,
            right: Right::default(),
        },
        termination_grace_seconds: 300,
        access: Some(Access {
            operator: Source {
                namespace: "keelson-system".to_owned(),
                labels: labels.into(),
            },
            scrapers: vec![Source {
                namespace: "monitoring".to_owned(),
                labels: [].into(),
            }],
        }),
    }
}

/// The same platform with kube-rbac-proxy.
pub(crate) fn original_proxy() -> Platform {
    let mut platform = platform();
    platform.proxy.reloads = false;
    platform.proxy.program.image = "quay.io/brancz/kube-rbac-proxy:v0.19.1".to_owned();
    platform
}

/// A node of each mode, with what that mode can have.
pub(crate) fn node(mode: &str) -> SeiNode {
    let snapshot =
        json!({"s3": {"targetHeight": 1000}, "bootstrapImage": "registry.example/seid:v5.9.0"});
    let block = match mode {
        "fullNode" | "replayer" => json!({"snapshot": snapshot}),
        "validator" => json!({
            "signingKey": {"secret": {"secretName": "val-signing"}},
            "nodeKey": {"secret": {"secretName": "val-node"}},
            "operatorKeyring": {"secret": {
                "secretName": "val-keyring",
                "passphraseSecretRef": {"secretName": "val-passphrase", "key": "passphrase"},
            }},
            "snapshot": snapshot,
        }),
        _ => json!({}),
    };
    read(json!({
        "apiVersion": "sei.io/v1alpha1",
        "kind": "SeiNode",
        "metadata": {"name": "node-0", "namespace": "chain", "uid": "5f6e2e5e-9d40-4a43-a1a5-000000000001"},
        "spec": {
            "chainId": "atlantic-2",
            "image": "registry.example/seid:v6.0.0",
            "podLabels": {"team": "rpc", "sei.io/node": "not-this"},
            mode: block,
        },
    }))
}

/// A full node with something else in its spec.
pub(crate) fn with(field: &str, value: Value) -> SeiNode {
    changed(node("fullNode"), field, value)
}

/// A node with something else in its spec.
pub(crate) fn changed(node: SeiNode, field: &str, value: Value) -> SeiNode {
    let mut object = serde_json::to_value(node).expect("an object");
    object["spec"][field] = value;
    read(object)
}

fn read(object: Value) -> SeiNode {
    serde_json::from_value(object).expect("a SeiNode")
}

/// Ways a certificate is asked for, by name.
pub(crate) fn tls_states() -> [(&'static str, Value); 3] {
    [
        ("off", json!({})),
        ("issuer", json!({"tls": {"issuerName": "pacific-ca"}})),
        ("secret", json!({"tls": {"secretName": "my-tls"}})),
    ]
}

/// The pod of a node.
pub(crate) fn pod_of(node: &SeiNode, platform: &Platform) -> PodSpec {
    let node = Node::read(node).expect("a node");
    let set = stateful_set::stateful_set(&node, platform).expect("a StatefulSet");
    set.spec.expect("a spec").template.spec.expect("a pod")
}

/// Its bootstrap pod.
pub(crate) fn bootstrap_pod_of(node: &SeiNode, platform: &Platform) -> PodSpec {
    let node = Node::read(node).expect("a node");
    let kind = pod::Kind::Bootstrap(bootstrap::replay(&node).expect("a snapshot"));
    let template = pod::template(&node, platform, kind).expect("a pod");
    template.spec.expect("a pod")
}

/// All containers of a pod.
pub(crate) fn containers(pod: &PodSpec) -> Vec<&Container> {
    let init = pod.init_containers.iter().flatten();
    init.chain(&pod.containers).collect()
}

/// One container of a pod.
pub(crate) fn container<'a>(pod: &'a PodSpec, name: &str) -> &'a Container {
    let found = containers(pod).into_iter().find(|it| it.name == name);
    found.expect("a container of that name")
}

/// A variable of a container.
pub(crate) fn variable<'a>(container: &'a Container, name: &str) -> Option<&'a str> {
    let mut all = container.env.iter().flatten();
    all.find(|it| it.name == name)?.value.as_deref()
}
