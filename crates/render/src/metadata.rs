//! What the objects of a node have in common: labels, namespace and owner.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use keelson_api::names::{Component, Label, SEI_GROUP};

use crate::node::Node;

/// Labels, by their names.
pub(crate) type Labels = BTreeMap<String, String>;

/// Labels of the node's objects and of its pod: the person's, with ours on top.
pub(crate) fn labels(node: &Node<'_>) -> Labels {
    let mut labels = node.spec.pod_labels.clone();
    // A label of a kind of pod this is not would lead others astray.
    labels.remove(Label::Component.as_str());
    labels.extend(selector(node));
    labels.insert(Label::Role.to_string(), node.mode.role().to_string());
    if !node.spec.chain_id.is_empty() {
        labels.insert(Label::Chain.to_string(), node.spec.chain_id.clone());
    }
    labels
}

/// Labels of what belongs to the bootstrap pod. None of the person's: a Service of a fleet selects by
/// those, and would lead its callers to a node that replays.
pub(crate) fn bootstrap_labels(node: &Node<'_>) -> Labels {
    let mut labels = selector(node);
    labels.insert(
        Label::Component.to_string(),
        Component::Bootstrap.to_string(),
    );
    labels
}

/// What pods of the node are found by. A label that may change is no part of it, because the
/// selector of a StatefulSet may not.
pub(crate) fn selector(node: &Node<'_>) -> Labels {
    Labels::from([(Label::Node.to_string(), node.name.to_owned())])
}

/// The same as a selector.
pub(crate) fn label_selector(labels: Labels) -> LabelSelector {
    LabelSelector {
        match_labels: Some(labels),
        match_expressions: None,
    }
}

/// Metadata of an object that goes when the node goes.
pub(crate) fn owned(node: &Node<'_>, name: String, labels: Labels) -> ObjectMeta {
    ObjectMeta {
        owner_references: Some(vec![owner(node)]),
        ..kept(node, name, labels)
    }
}

/// Metadata of an object that stays when the node goes.
pub(crate) fn kept(node: &Node<'_>, name: String, labels: Labels) -> ObjectMeta {
    ObjectMeta {
        name: Some(name),
        namespace: Some(node.namespace.to_owned()),
        labels: Some(labels),
        ..ObjectMeta::default()
    }
}

fn owner(node: &Node<'_>) -> OwnerReference {
    OwnerReference {
        api_version: format!("{SEI_GROUP}/v1alpha1"),
        kind: "SeiNode".to_owned(),
        name: node.name.to_owned(),
        uid: node.uid.to_owned(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}
