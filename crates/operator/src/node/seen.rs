//! What is kept of the objects of nodes while they are watched: what decisions need, and no more.
//!
//! Each is read from an object by one function. A fleet has thousands of them, so nothing is kept
//! that is not looked at.

use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerStatus, PersistentVolumeClaim, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use keelson_api::names::{Annotation, Component, FieldManager, Label};
use keelson_cluster::{digest, owned};
use kube::api::DynamicObject;

use super::edited::Edited;
use super::made::{Made, container};

/// What every object of a node has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Identity {
    /// The node it belongs to, by its label.
    pub node: String,
    /// Its uid.
    pub uid: String,
    /// Its version.
    pub version: String,
    /// The uid of the object that owns it.
    pub owner: Option<String>,
    /// Whether it is being deleted.
    pub leaving: bool,
    /// Whether it is the bootstrap pod's.
    pub bootstrap: bool,
}

impl Identity {
    fn read(metadata: &ObjectMeta) -> Self {
        let label = |label: Label| metadata.labels.as_ref()?.get(label.as_str()).cloned();
        let owner = metadata.owner_references.iter().flatten();
        let owner = owner
            .filter(|owner| owner.controller == Some(true))
            .map(|owner| owner.uid.clone())
            .next();
        Self {
            node: label(Label::Node).unwrap_or_default(),
            uid: metadata.uid.clone().unwrap_or_default(),
            version: metadata.resource_version.clone().unwrap_or_default(),
            owner,
            leaving: metadata.deletion_timestamp.is_some(),
            bootstrap: label(Label::Component).as_deref() == Some(Component::Bootstrap.as_str()),
        }
    }

    /// Whether it belongs to someone else than the object of this uid.
    pub fn is_of_another(&self, uid: &str) -> bool {
        self.owner.as_deref().is_some_and(|owner| owner != uid)
    }
}

/// An object of which only matters whether it is as it should be.
#[derive(Clone, Debug, PartialEq)]
pub struct Plain {
    /// Whose it is.
    pub identity: Identity,
    /// Digest of what we own of it.
    pub digest: String,
}

impl Plain {
    /// Reads any object.
    pub fn read(object: &DynamicObject) -> Self {
        let value = serde_json::to_value(object).unwrap_or_default();
        Self {
            identity: Identity::read(&object.metadata),
            digest: digest(&owned(&value, FieldManager::Node.as_str())),
        }
    }
}

/// A Certificate.
#[derive(Clone, Debug, PartialEq)]
pub struct Ordered {
    /// Whose it is, and what we own of it.
    pub plain: Plain,
    /// Who shall issue it: name and kind.
    pub issuer: (String, String),
    /// How far it is.
    pub order: crate::certificate::Order,
}

impl Ordered {
    /// Reads a Certificate.
    pub fn read(object: &DynamicObject) -> Self {
        let text = |name: &str| {
            let issuer = &object.data["spec"]["issuerRef"][name];
            issuer.as_str().unwrap_or_default().to_owned()
        };
        let value = serde_json::to_value(object).unwrap_or_default();
        Self {
            plain: Plain::read(object),
            issuer: (text("name"), text("kind")),
            order: crate::certificate::order(&value),
        }
    }
}

/// A StatefulSet.
#[derive(Clone, Debug, PartialEq)]
pub struct Set {
    /// Whose it is.
    pub identity: Identity,
    /// What its pods are made of.
    pub made: Made,
    /// Whether it has one pod, which nobody replaces but us.
    pub keeps_one_pod: bool,
    /// The revision pods get that are made now, once the controller has seen the template.
    pub revision: Option<String>,
}

impl Set {
    /// Reads a StatefulSet.
    pub fn read(set: &StatefulSet) -> Self {
        let spec = set.spec.clone().unwrap_or_default();
        let strategy = spec.update_strategy.and_then(|it| it.type_);
        let metadata = spec.template.metadata.unwrap_or_default();
        let status = set.status.as_ref();
        let current = status.and_then(|status| status.observed_generation);
        let seen = current.is_some() && current >= set.metadata.generation;
        Self {
            identity: Identity::read(&set.metadata),
            made: Made::read(&metadata, &spec.template.spec.unwrap_or_default()),
            keeps_one_pod: spec.replicas == Some(1) && strategy.as_deref() == Some("OnDelete"),
            revision: status
                .filter(|_| seen)
                .and_then(|status| status.update_revision.clone()),
        }
    }
}

/// A container as the kubelet reports it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Container {
    /// Its identity, which is another one after each start.
    pub id: Option<String>,
    /// The image it runs.
    pub image: String,
    /// Whether it runs.
    pub runs: bool,
    /// Since when.
    pub since: Option<Timestamp>,
    /// When it ended, where it has.
    pub ended: Option<Timestamp>,
    /// Why it does not, where the kubelet says.
    pub waits: Option<String>,
}

impl Container {
    fn read(status: &ContainerStatus) -> Self {
        let state = status.state.as_ref();
        let waiting = state.and_then(|state| state.waiting.as_ref());
        let running = state.and_then(|state| state.running.as_ref());
        let ended = state.and_then(|state| state.terminated.as_ref());
        Self {
            id: status.container_id.clone(),
            image: status.image.clone(),
            runs: running.is_some(),
            since: running.and_then(|it| Some(it.started_at.as_ref()?.0)),
            ended: ended.and_then(|it| Some(it.finished_at.as_ref()?.0)),
            waits: waiting.and_then(|waiting| waiting.reason.clone()),
        }
    }

    /// Whether it is said to run this image. A runtime may say in full what a spec says in short.
    fn is_said_to_run(&self, image: &str) -> bool {
        self.image == image || self.image.ends_with(&format!("/{image}"))
    }
}

/// A pod.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenPod {
    /// Whose it is.
    pub identity: Identity,
    /// Its name.
    pub name: String,
    /// What it is made of.
    pub made: Made,
    /// Its address.
    pub ip: Option<IpAddr>,
    /// Whether it is ready.
    pub ready: bool,
    /// The node's process.
    pub process: Container,
    /// The sidecar.
    pub sidecar: Container,
    /// The proxy.
    pub proxy: Container,
    /// The first container that cannot start, and why.
    pub stuck: Option<(String, String)>,
    /// Revision of the template it was made of.
    pub revision: Option<String>,
    /// Whether its proxy was seen to serve TLS.
    pub spoke_tls: bool,
    /// How its images were edited.
    pub edited: Edited,
}

/// Reasons of a container that will not start by itself.
const STUCK: [&str; 6] = [
    "ImagePullBackOff",
    "ErrImagePull",
    "InvalidImageName",
    "CrashLoopBackOff",
    "CreateContainerConfigError",
    "CreateContainerError",
];

impl SeenPod {
    /// Reads a pod.
    pub fn read(pod: &Pod) -> Self {
        let status = pod.status.clone().unwrap_or_default();
        let init = status.init_container_statuses.unwrap_or_default();
        let main = status.container_statuses.unwrap_or_default();
        let statuses = || init.iter().chain(&main);
        let of = |name: &str| {
            let status = statuses().find(|status| status.name == name);
            status.map(Container::read).unwrap_or_default()
        };
        let stuck = statuses().find_map(|status| {
            let why = Container::read(status).waits?;
            STUCK
                .contains(&why.as_str())
                .then(|| (status.name.clone(), why))
        });
        let metadata = &pod.metadata;
        let annotation = |name: &str| metadata.annotations.as_ref()?.get(name).cloned();
        let label = |name: &str| metadata.labels.as_ref()?.get(name).cloned();
        let conditions = status.conditions.unwrap_or_default();
        Self {
            identity: Identity::read(metadata),
            name: metadata.name.clone().unwrap_or_default(),
            made: Made::read(metadata, &pod.spec.clone().unwrap_or_default()),
            ip: status.pod_ip.and_then(|ip| ip.parse().ok()),
            ready: conditions
                .iter()
                .any(|it| it.type_ == "Ready" && it.status == "True"),
            process: of(container::NODE),
            sidecar: of(container::SIDECAR),
            proxy: of(container::PROXY),
            stuck,
            revision: label("controller-revision-hash"),
            spoke_tls: annotation(Annotation::SpokeTls.as_str()).is_some(),
            edited: Edited::read(pod),
        }
    }

    /// The containers whose images may be others: their names, and the images the pod asks for.
    pub fn containers(&self) -> [(&'static str, &Container, &str); 3] {
        let made = &self.made;
        [
            (container::NODE, &self.process, &made.image),
            (container::SIDECAR, &self.sidecar, &made.sidecar_image),
            (container::PROXY, &self.proxy, &made.proxy_image),
        ]
    }

    /// Whether a container runs the image the pod asks for.
    pub fn runs(&self, name: &str, now: Timestamp) -> bool {
        let mut containers = self.containers().into_iter();
        let found = containers.find(|(called, ..)| *called == name);
        found.is_some_and(|(name, container, image)| {
            let named = container.is_said_to_run(image);
            container.runs && (named || self.edited.started(name, container, now))
        })
    }

    /// Whether its sidecar can be called.
    pub fn can_be_called(&self) -> bool {
        self.sidecar.runs && self.proxy.runs && self.ip.is_some() && !self.identity.leaving
    }
}

/// A claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Whose it is.
    pub identity: Identity,
    /// Whether it is bound to a volume.
    pub bound: bool,
}

impl Claim {
    /// Reads a claim.
    pub fn read(claim: &PersistentVolumeClaim) -> Self {
        let phase = claim.status.as_ref().and_then(|it| it.phase.as_deref());
        Self {
            identity: Identity::read(&claim.metadata),
            bound: phase == Some("Bound"),
        }
    }
}

/// A Job.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenJob {
    /// Whose it is.
    pub identity: Identity,
    /// Whether it is complete.
    pub complete: bool,
    /// Why it failed.
    pub failed: Option<String>,
}

impl SeenJob {
    /// Reads a Job.
    pub fn read(job: &Job) -> Self {
        let conditions = job.status.as_ref().and_then(|it| it.conditions.as_ref());
        let holds = |type_: &str| {
            let conditions = conditions.into_iter().flatten();
            conditions
                .filter(|it| it.type_ == type_ && it.status == "True")
                .map(|it| it.message.clone().or_else(|| it.reason.clone()))
                .next()
        };
        Self {
            identity: Identity::read(&job.metadata),
            complete: holds("Complete").is_some(),
            failed: holds("Failed").map(Option::unwrap_or_default),
        }
    }
}
