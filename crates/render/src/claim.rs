//! The claim of the data volume. It is made once: what it says cannot be changed afterwards.

use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimSpec, VolumeResourceRequirements,
};

use crate::node::Node;
use crate::platform::Platform;
use crate::{metadata, names, pod};

/// The claim, or nothing for a node that imports one. It belongs to the node only where it shall go
/// with it: what has an owner is deleted with the owner.
pub fn claim(node: &Node<'_>, platform: &Platform) -> Option<PersistentVolumeClaim> {
    if names::imported_claim(node).is_some() {
        return None;
    }
    let name = names::own_claim(node.name);
    let class = pod::class(node, platform);
    let metadata = match node.spec.retains_volume() {
        true => metadata::kept(node, name, metadata::labels(node)),
        false => metadata::owned(node, name, metadata::labels(node)),
    };
    Some(PersistentVolumeClaim {
        metadata,
        spec: Some(PersistentVolumeClaimSpec {
            access_modes: Some(vec!["ReadWriteOnce".to_owned()]),
            storage_class_name: Some(class.storage_class.clone()),
            resources: Some(VolumeResourceRequirements {
                requests: Some([("storage".to_owned(), class.storage.clone())].into()),
                limits: None,
            }),
            ..PersistentVolumeClaimSpec::default()
        }),
        status: None,
    })
}
