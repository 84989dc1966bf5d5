//! An object of the installation as the operator applies it: what it is, and what it says.
//!
//! Kinds this program has types for are made from those; the few it only writes down (monitoring, the
//! console) are made from JSON. Either way what comes out has one shape and one identity, so that what
//! has to be removed is a difference of two sets.

use std::collections::BTreeSet;

use k8s_openapi::Metadata;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::apps::v1::{DaemonSet, Deployment};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Service, ServiceAccount};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::{Value, json};

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Kind {
    /// API group; empty for the core.
    pub group: &'static str,
    /// Version.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural, as in paths.
    pub plural: &'static str,
    /// Whether its objects are in a namespace.
    pub namespaced: bool,
}

impl Kind {
    const fn of<K: k8s_openapi::Resource>(namespaced: bool) -> Self {
        Self {
            group: K::GROUP,
            version: K::VERSION,
            kind: K::KIND,
            plural: K::URL_PATH_SEGMENT,
            namespaced,
        }
    }

    /// Group and version, as in objects.
    pub fn api_version(&self) -> String {
        match self.group {
            "" => self.version.to_owned(),
            group => format!("{group}/{}", self.version),
        }
    }
}

pub(super) const SERVICE_MONITOR: Kind = Kind {
    group: "monitoring.coreos.com",
    version: "v1",
    kind: "ServiceMonitor",
    plural: "servicemonitors",
    namespaced: true,
};

pub(super) const PROMETHEUS_RULE: Kind = Kind {
    group: "monitoring.coreos.com",
    version: "v1",
    kind: "PrometheusRule",
    plural: "prometheusrules",
    namespaced: true,
};

pub(super) const CONSOLE_PLUGIN: Kind = Kind {
    group: "console.openshift.io",
    version: "v1",
    kind: "ConsolePlugin",
    plural: "consoleplugins",
    namespaced: false,
};

/// Every kind an installation may have, in the order of [`objects`](super::objects): what is watched
/// for drift and searched for what is left over. The last three are not served everywhere.
pub const KINDS: &[Kind] = &[
    Kind::of::<Namespace>(false),
    Kind::of::<ServiceAccount>(true),
    Kind::of::<ClusterRole>(false),
    Kind::of::<ClusterRoleBinding>(false),
    Kind::of::<Role>(true),
    Kind::of::<RoleBinding>(true),
    Kind::of::<ConfigMap>(true),
    Kind::of::<ValidatingAdmissionPolicy>(false),
    Kind::of::<ValidatingAdmissionPolicyBinding>(false),
    Kind::of::<NetworkPolicy>(true),
    Kind::of::<Service>(true),
    Kind::of::<PodDisruptionBudget>(true),
    Kind::of::<DaemonSet>(true),
    Kind::of::<Deployment>(true),
    Kind::of::<MutatingWebhookConfiguration>(false),
    SERVICE_MONITOR,
    PROMETHEUS_RULE,
    CONSOLE_PLUGIN,
];

/// Which object, whatever it says.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// Its kind.
    pub kind: Kind,
    /// Its namespace, if its kind has one.
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{} {namespace}/{}", self.kind.kind, self.name),
            None => write!(f, "{} {}", self.kind.kind, self.name),
        }
    }
}

/// One object.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Which.
    pub identity: Identity,
    /// The whole of it, with `apiVersion` and `kind`, as it is applied.
    pub value: Value,
}

impl Object {
    /// An object of a kind there is a type for.
    pub(super) fn of<K>(object: K) -> Self
    where
        K: k8s_openapi::Resource + Metadata<Ty = ObjectMeta> + Serialize,
    {
        let metadata = object.metadata();
        let (namespace, name) = (metadata.namespace.clone(), metadata.name.clone());
        let kind = Kind::of::<K>(namespace.is_some());
        Self {
            identity: Identity {
                kind,
                namespace,
                name: name.unwrap_or_default(),
            },
            value: serde_json::to_value(object).expect("an object of Kubernetes is JSON"),
        }
    }

    /// An object of a kind that is only written down.
    pub(super) fn written(kind: Kind, metadata: ObjectMeta, spec: Value) -> Self {
        let identity = Identity {
            kind,
            namespace: metadata.namespace.clone(),
            name: metadata.name.clone().unwrap_or_default(),
        };
        let value = json!({
            "apiVersion": kind.api_version(),
            "kind": kind.kind,
            "metadata": metadata,
            "spec": spec,
        });
        Self { identity, value }
    }
}

/// What is there and no longer wanted, in the order to remove it in: last applied, first removed.
/// A Namespace never is: others live in it too.
pub fn leftover(there: &BTreeSet<Identity>, wanted: &[Object]) -> Vec<Identity> {
    let wanted: BTreeSet<_> = wanted.iter().map(|object| &object.identity).collect();
    let place = |it: &Identity| KINDS.iter().position(|kind| *kind == it.kind);
    let mut gone: Vec<_> = there
        .iter()
        .filter(|it| it.kind.kind != "Namespace" && !wanted.contains(it))
        .cloned()
        .collect();
    gone.sort_by_key(|it| std::cmp::Reverse(place(it)));
    gone
}
