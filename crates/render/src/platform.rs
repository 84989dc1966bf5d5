//! What a platform says about all of its nodes: machines, images, sizes, buckets and who may call.
//!
//! Values only. Reading them from `SEI_*` variables or a file, and naming all that is missing at
//! once, is for the operator.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use keelson_api::names::SIDECAR_ACCESS_RESOURCE;

/// The platform.
#[derive(Clone, Debug, PartialEq)]
pub struct Platform {
    /// ServiceAccount of every pod (`SEI_SERVICE_ACCOUNT`).
    pub service_account: String,
    /// Key of the taint on the machines; its value is the pool (`SEI_TOLERATION_KEY`).
    pub toleration_key: String,
    /// Where a genesis file is looked for (`SEI_GENESIS_BUCKET`, `SEI_GENESIS_REGION`).
    pub genesis: Bucket,
    /// Where snapshots are (`SEI_SNAPSHOT_BUCKET`, `SEI_SNAPSHOT_REGION`).
    pub snapshots: Bucket,
    /// How sidecars reach both.
    pub object_store: ObjectStore,
    /// Machines, volume and size of full nodes, replayers and validators.
    pub default: Class,
    /// The same for archive nodes.
    pub archive: Class,
    /// The sidecar, where a node asks for no other.
    pub sidecar: Program,
    /// The exporter of chain metrics.
    pub exporter: Program,
    /// The proxy before the sidecar.
    pub proxy: Proxy,
    /// How long the processes of a pod may take to end. A node's database is closed in this time.
    pub termination_grace_seconds: i64,
    /// Who may reach the proxy; nothing where the platform wants no NetworkPolicy.
    pub access: Option<Access>,
}

/// How long the processes of a pod may take to end where the platform does not say.
pub const DEFAULT_TERMINATION_GRACE_SECONDS: i64 = 300;

/// What nodes of some modes have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Pool of machines.
    pub pool: String,
    /// Storage class of the data volume.
    pub storage_class: String,
    /// Size of the data volume.
    pub storage: Quantity,
    /// Size of the node's process.
    pub size: Size,
}

/// What a container is given. Memory is both asked for and the limit: what may be taken and was not
/// asked for is taken from a neighbour.
#[derive(Clone, Debug, PartialEq)]
pub struct Size {
    /// CPUs asked for. There is no limit.
    pub cpu: Quantity,
    /// Memory, asked for and at most.
    pub memory: Quantity,
}

/// A program of the platform's in every pod.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// Its image.
    pub image: String,
    /// Its size.
    pub size: Size,
}

/// The proxy before the sidecar.
#[derive(Clone, Debug, PartialEq)]
pub struct Proxy {
    /// Image and size.
    pub program: Program,
    /// Whether it follows its files while it runs; see [`follows_files`].
    pub reloads: bool,
    /// Audiences it accepts beside the node's own.
    pub audiences: Vec<String>,
    /// Whether the sidecar's metrics are open to all who reach the port.
    pub open_metrics: bool,
    /// What callers must have a right to.
    pub right: Right,
}

/// What callers of a sidecar must have a right to, of the node they call, in the group `sei.io`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Right {
    /// The resource.
    pub resource: String,
    /// What of it; nothing where it is the resource itself.
    pub subresource: Option<String>,
}

impl Default for Right {
    fn default() -> Self {
        Self {
            resource: SIDECAR_ACCESS_RESOURCE.to_owned(),
            subresource: None,
        }
    }
}

/// A bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// Its name.
    pub name: String,
    /// Its region.
    pub region: String,
}

/// How sidecars reach buckets. What is not said they find as AWS has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectStore {
    /// An S3 server other than AWS (`SEI_OBJECT_STORE_ENDPOINT`).
    pub endpoint: Option<String>,
    /// The Secret in a node's namespace with the keys for it (`SEI_OBJECT_STORE_SECRET`).
    pub secret: Option<String>,
}

/// Who may reach the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Access {
    /// The operator.
    pub operator: Source,
    /// Who reads metrics.
    pub scrapers: Vec<Source>,
}

/// Pods that traffic comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Source {
    /// Their namespace.
    pub namespace: String,
    /// Labels they have; with none, every pod of the namespace.
    pub labels: BTreeMap<String, String>,
}

/// A proxy that is said to be what its name says it is not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "proxyReloads is {wanted}, but the image {image:?} is {name}, for which it is {}: leave proxyReloads out",
    !wanted
)]
pub struct Contradiction {
    image: String,
    name: &'static str,
    wanted: bool,
}

/// Whether the proxy of this image follows its files while it runs: ours does and kube-rbac-proxy
/// does not; of an image with another name it is believed where it is said.
pub fn follows_files(image: &str, wanted: Option<bool>) -> Result<bool, Contradiction> {
    let known = [("keelson-proxy", true), ("kube-rbac-proxy", false)];
    let known = known.into_iter().find(|(name, _)| *name == program(image));
    match (known, wanted) {
        (Some((name, follows)), Some(wanted)) if follows != wanted => Err(Contradiction {
            image: image.to_owned(),
            name,
            wanted,
        }),
        (Some((_, follows)), _) => Ok(follows),
        (None, wanted) => Ok(wanted.unwrap_or(false)),
    }
}

/// The last part of an image's path, without tag and digest.
fn program(image: &str) -> &str {
    let path = image.split_once('@').map_or(image, |(path, _)| path);
    let last = path.rsplit_once('/').map_or(path, |(_, last)| last);
    last.split_once(':').map_or(last, |(name, _)| name)
}
