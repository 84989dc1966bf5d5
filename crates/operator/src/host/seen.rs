//! What is kept of an object of the installation.
//!
//! Enough to know whether it is as it shall be, whose it is, and, of the few kinds that decisions are
//! made from, what it says. Nothing is decided here.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::Pod;
use keelson_api::host::CLAIMS_CONFIG_MAP;
use keelson_api::names::{FieldManager, Label};
use keelson_cluster::{digest, owned};
use keelson_render::host::Kind;
use kube::api::DynamicObject;
use kube::{Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Kinds whose objects are kept whole: decisions are made from them.
const READ: [&str; 4] = [
    "ConfigMap",
    "DaemonSet",
    "Deployment",
    "MutatingWebhookConfiguration",
];

/// What is kept of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Seen {
    /// Its uid.
    pub uid: String,
    /// The uid of the object that controls it.
    pub owner: Option<String>,
    /// Digest of what we applied of it, as it is now.
    pub digest: String,
    value: Option<Value>,
}

impl Seen {
    /// Reads an object of this kind; lists do not say it for each.
    pub fn read(kind: &Kind, object: &DynamicObject) -> Self {
        let mut owners = object.owner_references().iter();
        let owner = owners.find(|it| it.controller == Some(true));
        let value = serde_json::to_value(object).unwrap_or_default();
        // Handlers write their claims all the time, and nothing that is installed depends on them.
        let read = READ.contains(&kind.kind) && object.name_any() != CLAIMS_CONFIG_MAP;
        Self {
            uid: object.uid().unwrap_or_default(),
            owner: owner.map(|it| it.uid.clone()),
            digest: digest(&owned(&value, FieldManager::Nmstate.as_str())),
            value: read.then(|| without_managers(value)),
        }
    }

    /// What it says, as a type; none where it is not kept or is another.
    pub fn as_type<K: DeserializeOwned>(&self) -> Option<K> {
        serde_json::from_value(self.value.clone()?).ok()
    }
}

/// Who wrote what is most of an object, and of no use once it is compared.
fn without_managers(mut value: Value) -> Value {
    if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.shift_remove("managedFields");
    }
    value
}

/// What is kept of a pod of ours.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenPod {
    /// Its uid.
    pub uid: String,
    /// Which workload it is of.
    pub component: String,
    /// The node it is on.
    pub node: Option<String>,
    /// Its address.
    pub address: Option<IpAddr>,
    /// Whether its containers run, as far as its phase tells.
    pub running: bool,
    /// Whether it has ended for good.
    pub ended: bool,
}

impl SeenPod {
    /// Reads a pod.
    pub fn read(pod: &Pod) -> Self {
        let status = pod.status.clone().unwrap_or_default();
        let phase = status.phase.unwrap_or_default();
        let component = pod.labels().get(Label::HostComponent.as_str());
        Self {
            uid: pod.uid().unwrap_or_default(),
            component: component.cloned().unwrap_or_default(),
            node: pod.spec.as_ref().and_then(|it| it.node_name.clone()),
            address: status.pod_ip.and_then(|ip| ip.parse().ok()),
            running: phase == "Running" && pod.meta().deletion_timestamp.is_none(),
            ended: phase == "Succeeded" || phase == "Failed",
        }
    }
}
