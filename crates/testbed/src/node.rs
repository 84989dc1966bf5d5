//! What a cluster with pods has besides programs: a cgroup, images, volumes, a labelled node.

use crate::components::{CONTAINERD_SOCKET, NODE};
use crate::enclosure::Enclosure;
use crate::error::{Doing, Error};
use crate::images;
use crate::manifests::{apply, object};
use crate::state::State;
use crate::{cache, cgroup};
use k8s_openapi::api::core::v1::{Node, PersistentVolume};
use k8s_openapi::api::storage::v1::StorageClass;
use kube::api::{Patch, PatchParams};
use kube::{Api, Client};
use serde_json::json;
use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The user our pods run as.
pub const NON_ROOT: u32 = 65532;

/// What a test may choose about the node.
#[derive(Clone, Debug)]
pub struct Pods {
    /// Labels the node gets besides its own.
    pub node_labels: BTreeMap<String, String>,
    /// Names of the StorageClasses; the first is the default one.
    pub storage_classes: Vec<String>,
    /// How many volumes each class can give.
    pub volumes: usize,
    /// Images to take in besides the pause and the test image: OCI layouts in tar files.
    pub images: Vec<PathBuf>,
}

impl Default for Pods {
    fn default() -> Self {
        Self {
            node_labels: BTreeMap::new(),
            storage_classes: vec!["local".into()],
            volumes: 8,
            images: Vec::new(),
        }
    }
}

/// Before anything of the node starts.
pub(crate) fn prepare(state: &State, enclosure: &Enclosure) -> Result<(), Error> {
    let name = state.cgroup();
    // Made inside: the mounts of the hierarchies are the same there.
    enclosure
        .run(move || cgroup::make(&name))
        .doing(|| "a cgroup for the cluster's pods could not be made")
}

/// Whether the container runtime takes calls.
pub(crate) fn containerd_answers(enclosure: &Enclosure) -> Result<(), String> {
    let version = ctr(&["version"]);
    enclosure
        .output(version)
        .map(drop)
        .map_err(|error| error.to_string())
}

/// The files of every image the node gets.
pub(crate) fn images(pods: &Pods) -> Result<Vec<PathBuf>, Error> {
    let written = images::write_all(&images::standard()?, &cache::images())?;
    let standard = written.into_iter().map(|it| it.file);
    Ok(standard.chain(pods.images.iter().cloned()).collect())
}

/// Takes an image into the container runtime.
pub(crate) fn import(enclosure: &Enclosure, image: &Path) -> Result<(), Error> {
    let file = image.display().to_string();
    enclosure
        .output(ctr(&["images", "import", &file]))
        .map(drop)
}

pub(crate) fn tag(enclosure: &Enclosure, image: &str, also: &str) -> Result<(), Error> {
    let words = ["images", "tag", "--force", image, also];
    enclosure.output(ctr(&words)).map(drop)
}

/// containerd's own command, for the containers of pods.
pub(crate) fn ctr(words: &[&str]) -> Command {
    let mut command = Command::new("ctr");
    command
        .args(["--address", CONTAINERD_SOCKET, "--namespace", "k8s.io"])
        .args(words);
    command
}

/// StorageClasses over folders of the cluster, each folder writable by the user our pods run as.
/// A volume's size is only a number here, so it is larger than anyone asks for.
pub(crate) async fn storage(client: &Client, state: &State, pods: &Pods) -> Result<(), Error> {
    for (order, class) in pods.storage_classes.iter().enumerate() {
        let default = (order == 0).to_string();
        let storage_class: StorageClass = object(json!({
            "metadata": {
                "name": class,
                "annotations": { "storageclass.kubernetes.io/is-default-class": default },
            },
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }));
        apply(&Api::all(client.clone()), &storage_class).await?;
        for number in 0..pods.volumes {
            let name = format!("{class}-{number}");
            let folder = state.folder().join("volumes").join(&name);
            make_volume(&folder).doing(|| format!("{} could not be made", folder.display()))?;
            apply(&Api::all(client.clone()), &volume(&name, class, &folder)).await?;
        }
    }
    Ok(())
}

fn make_volume(folder: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(folder)?;
    std::fs::set_permissions(folder, PermissionsExt::from_mode(0o770))?;
    chown(folder, Some(NON_ROOT), Some(NON_ROOT))
}

fn volume(name: &str, class: &str, folder: &Path) -> PersistentVolume {
    object(json!({
        "metadata": { "name": name },
        "spec": {
            "capacity": { "storage": "100Ti" },
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": class,
            "local": { "path": folder },
            "nodeAffinity": { "required": { "nodeSelectorTerms": [{
                "matchExpressions": [{
                    "key": "kubernetes.io/hostname", "operator": "In", "values": [NODE],
                }],
            }]}},
        },
    }))
}

/// Whether the node takes pods.
pub(crate) async fn ready(client: &Client) -> Result<(), String> {
    let node = Api::<Node>::all(client.clone())
        .get(NODE)
        .await
        .map_err(|error| error.to_string())?;
    let conditions = node
        .status
        .and_then(|status| status.conditions)
        .unwrap_or_default();
    match conditions
        .iter()
        .find(|condition| condition.type_ == "Ready")
    {
        Some(condition) if condition.status == "True" => Ok(()),
        Some(condition) => Err(condition.message.clone().unwrap_or_default()),
        None => Err("the node has not reported yet".into()),
    }
}

/// Gives the node a test's labels.
pub(crate) async fn label(client: &Client, labels: &BTreeMap<String, String>) -> Result<(), Error> {
    if labels.is_empty() {
        return Ok(());
    }
    let patch = Patch::Merge(json!({ "metadata": { "labels": labels } }));
    let nodes = Api::<Node>::all(client.clone());
    let labelled = nodes.patch(NODE, &PatchParams::default(), &patch).await;
    labelled
        .map(drop)
        .doing(|| "the node could not be labelled")
}
