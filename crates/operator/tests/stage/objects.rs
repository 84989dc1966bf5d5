//! Objects tests need beside nodes: a platform, issuers, certificates and keys.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use keelson_api::names::Label;
use keelson_render::names;
use keelson_render::platform::{
    Access, Bucket, Class, DEFAULT_TERMINATION_GRACE_SECONDS, ObjectStore, Platform, Program,
    Proxy, Right, Size, Source,
};
use keelson_testbed::{Authority, Identity};
use kube::api::ObjectMeta;
use serde_json::{Value, json};

/// The ServiceAccount of every pod.
pub(crate) const SERVICE_ACCOUNT: &str = "seid-node";

/// A platform with our proxy.
pub(crate) fn platform() -> Platform {
    let size = |cpu: &str, memory: &str| Size {
        cpu: Quantity(cpu.to_owned()),
        memory: Quantity(memory.to_owned()),
    };
    let program = |image: &str| Program {
        image: image.to_owned(),
        size: size("20m", "64Mi"),
    };
    let class = |pool: &str, storage: &str| Class {
        pool: pool.to_owned(),
        storage_class: "played".to_owned(),
        storage: Quantity(storage.to_owned()),
        size: size("4", "32Gi"),
    };
    let bucket = |name: &str| Bucket {
        name: name.to_owned(),
        region: "us-east-2".to_owned(),
    };
    let operator = (Label::AppName.to_string(), "keelson-operator".to_owned());
    Platform {
        service_account: SERVICE_ACCOUNT.to_owned(),
        toleration_key: "sei.io/workload".to_owned(),
        genesis: bucket("genesis"),
        snapshots: bucket("snapshots"),
        object_store: ObjectStore::default(),
        default: class("sei-node", "2000Gi"),
        archive: class("sei-archive", "40Ti"),
        sidecar: program("registry.example/keelson-sidecar:1"),
        exporter: program("registry.example/exporter:1"),
        proxy: Proxy {
            program: program("registry.example/keelson-proxy:1"),
            reloads: true,
            audiences: vec!["https://kubernetes.default.svc".to_owned()],
            open_metrics: true,
            right: Right::default(),
        },
        termination_grace_seconds: DEFAULT_TERMINATION_GRACE_SECONDS,
        access: Some(Access {
            operator: Source {
                namespace: "keelson-system".to_owned(),
                labels: BTreeMap::from([operator]),
            },
            scrapers: Vec::new(),
        }),
    }
}

/// The same platform with kube-rbac-proxy.
pub(crate) fn original_proxy() -> Platform {
    let mut platform = platform();
    platform.proxy.reloads = false;
    "registry.example/kube-rbac-proxy:v0.19.1".clone_into(&mut platform.proxy.program.image);
    platform
}

/// A Secret of these entries.
pub(crate) fn secret(name: &str, entries: &[(&str, &str)]) -> Secret {
    let data = entries
        .iter()
        .map(|(key, value)| ((*key).to_owned(), ByteString(value.as_bytes().to_vec())));
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            ..ObjectMeta::default()
        },
        data: Some(data.collect()),
        ..Secret::default()
    }
}

/// A certificate for the names of a node.
pub(crate) fn identity(authority: &Authority, node: &str, namespace: &str) -> Identity {
    let names = names::dns(node, namespace);
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    authority.server(&names).expect("a certificate")
}

/// A Secret of type `kubernetes.io/tls`, as a person would provide it.
pub(crate) fn tls_secret(name: &str, identity: &Identity, authority: &Authority) -> Secret {
    let entries = [
        ("tls.crt", identity.certificate.as_str()),
        ("tls.key", identity.key.as_str()),
        ("ca.crt", authority.certificate()),
    ];
    Secret {
        type_: Some("kubernetes.io/tls".to_owned()),
        ..secret(name, &entries)
    }
}

/// What a spec says under `sidecar` where the certificate is ordered from an issuer of the namespace.
pub(crate) fn tls_by_issuer(issuer: &str) -> Value {
    json!({ "tls": { "issuerName": issuer, "issuerKind": "Issuer" } })
}

/// The same where it is in a Secret somebody provides.
pub(crate) fn tls_by_secret(secret: &str) -> Value {
    json!({ "tls": { "secretName": secret } })
}

/// The Secret an issuer signs with.
pub(crate) fn authority_secret(name: &str, authority: &Authority) -> Secret {
    tls_secret(name, &authority.identity(), authority)
}
