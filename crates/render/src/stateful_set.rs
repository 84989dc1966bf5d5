//! The StatefulSet of a node: one pod, replaced only by the operator.

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy};

use crate::node::{Node, Unrenderable};
use crate::platform::Platform;
use crate::pod::{self, Kind};
use crate::{metadata, names};

/// The StatefulSet.
pub fn stateful_set(node: &Node<'_>, platform: &Platform) -> Result<StatefulSet, Unrenderable> {
    let name = names::stateful_set(node.name);
    Ok(StatefulSet {
        metadata: metadata::owned(node, name, metadata::labels(node)),
        spec: Some(StatefulSetSpec {
            replicas: Some(1),
            selector: metadata::label_selector(metadata::selector(node)),
            service_name: Some(names::service(node.name)),
            template: pod::template(node, platform, Kind::Node)?,
            update_strategy: Some(StatefulSetUpdateStrategy {
                type_: Some("OnDelete".to_owned()),
                rolling_update: None,
            }),
            ..StatefulSetSpec::default()
        }),
        status: None,
    })
}
