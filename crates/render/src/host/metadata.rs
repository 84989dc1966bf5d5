//! What the objects of the host components have in common: labels, owner, and the namespace itself.

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use keelson_api::names::{HostWorkload, Label, NMSTATE_GROUP};

use super::object::Object;
use super::{Certificates, HostInstall};
use crate::metadata::Labels;

/// Value of the label `app` on everything here.
const APP: &str = "kubernetes-nmstate";

/// Label of pods and Services that are scraped.
const SCRAPED: &str = "prometheus.nmstate.io";

/// The name of a workload, as a label: what its pods are selected by, which cannot be changed.
const NAME: &str = "name";

/// Metadata of an object in the whole cluster that goes when the NMState goes.
pub(super) fn cluster(install: &HostInstall<'_>, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        labels: Some(app()),
        owner_references: Some(vec![owner(install)]),
        ..ObjectMeta::default()
    }
}

/// The same in the namespace of the host components.
pub(super) fn owned(install: &HostInstall<'_>, name: &str) -> ObjectMeta {
    within(install, install.namespace, name)
}

/// The same in another namespace.
pub(super) fn within(install: &HostInstall<'_>, namespace: &str, name: &str) -> ObjectMeta {
    ObjectMeta {
        namespace: Some(namespace.to_owned()),
        ..cluster(install, name)
    }
}

/// The label everything has.
pub(super) fn app() -> Labels {
    Labels::from([(Label::App.to_string(), APP.to_owned())])
}

/// Labels of a workload and of its pods, but for the pods' name.
pub(super) fn workload(workload: HostWorkload) -> Labels {
    let mut labels = app();
    labels.insert(Label::HostComponent.to_string(), workload.to_string());
    if workload == HostWorkload::Metrics {
        labels.extend(scraped());
    }
    labels
}

/// Label of what is scraped.
pub(super) fn scraped() -> Labels {
    Labels::from([(SCRAPED.to_owned(), "true".to_owned())])
}

/// What the pods of a workload are selected by.
pub(super) fn selector(name: &str) -> Labels {
    Labels::from([(NAME.to_owned(), name.to_owned())])
}

fn owner(install: &HostInstall<'_>) -> OwnerReference {
    OwnerReference {
        api_version: format!("{NMSTATE_GROUP}/v1"),
        kind: "NMState".to_owned(),
        name: install.name.to_owned(),
        uid: install.uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The namespace. It has no owner: it may have been there before, and hold what is others'.
pub(super) fn namespace(install: &HostInstall<'_>) -> Object {
    let levels = ["enforce", "audit", "warn"];
    let mut labels: Labels = levels
        .into_iter()
        .map(|level| {
            let label = format!("pod-security.kubernetes.io/{level}");
            (label, "privileged".to_owned())
        })
        .collect();
    let mut annotations = None;
    if install.capabilities.openshift {
        labels.insert(
            "openshift.io/cluster-monitoring".to_owned(),
            "true".to_owned(),
        );
        // The handler runs on every node, whatever the cluster's default for pods is.
        let selector = ("openshift.io/node-selector".to_owned(), String::new());
        annotations = Some(Labels::from([selector]));
    }
    Object::of(Namespace {
        metadata: ObjectMeta {
            name: Some(install.namespace.to_owned()),
            labels: Some(labels),
            annotations,
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    })
}

/// The annotation that has service-ca make a certificate for a Service, where it is service-ca's.
pub(super) fn serving_certificate(install: &HostInstall<'_>, secret: &str) -> Option<Labels> {
    let annotation = "service.beta.openshift.io/serving-cert-secret-name";
    match install.certificates {
        Certificates::ServiceCa => Some(Labels::from([(annotation.to_owned(), secret.to_owned())])),
        Certificates::Operator { .. } => None,
    }
}
