//! The settings of a platform, one row each: the name, whether it must be said, and what it means.
//!
//! The reader, its sentences and `docs/platform-settings.md` come from these rows.

use keelson_api::names::SIDECAR_ACCESS_RESOURCE;

/// One setting.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The variable.
    pub variable: &'static str,
    /// Whether it must be said.
    pub need: Need,
    /// What it is, as the end of "set it to …".
    pub what: &'static str,
}

/// Whether a setting must be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It must.
    Required,
    /// Without it, this is meant.
    Default(&'static str),
    /// Without it, nothing is.
    Optional,
}

impl Setting {
    /// Its key in the platform file: the variable without `SEI_`, as `camelCase`. What a pod is told
    /// of itself has none.
    pub fn key(&self) -> Option<String> {
        let words = self.variable.strip_prefix("SEI_")?.split('_');
        let word = |(place, word): (usize, &str)| {
            let lower = word.to_lowercase();
            match place {
                0 => lower,
                _ => word[..1].to_owned() + &lower[1..],
            }
        };
        Some(words.enumerate().map(word).collect())
    }
}

/// The row of a variable.
pub(super) fn setting(variable: &str) -> &'static Setting {
    let found = SETTINGS.iter().find(|row| row.variable == variable);
    found.expect("a row for every variable that is read")
}

const fn required(variable: &'static str, what: &'static str) -> Setting {
    Setting {
        variable,
        need: Need::Required,
        what,
    }
}

const fn default(variable: &'static str, value: &'static str, what: &'static str) -> Setting {
    Setting {
        variable,
        need: Need::Default(value),
        what,
    }
}

const fn optional(variable: &'static str, what: &'static str) -> Setting {
    Setting {
        variable,
        need: Need::Optional,
        what,
    }
}

/// Every setting: first what sei-k8s-controller requires, then what it needs and does not, then
/// Keelson's own.
pub const SETTINGS: &[Setting] = &[
    required(
        "SEI_NODEPOOL_NAME",
        "the pool of machines of all nodes but archives",
    ),
    required(
        "SEI_NODEPOOL_ARCHIVE",
        "the pool of machines of archive nodes",
    ),
    required(
        "SEI_TOLERATION_KEY",
        "the key of the taint on the machines, whose value is the pool",
    ),
    required(
        "SEI_SERVICE_ACCOUNT",
        "the ServiceAccount of every node's pod",
    ),
    required(
        "SEI_STORAGE_CLASS_PERF",
        "the storage class of all nodes but archives",
    ),
    required(
        "SEI_STORAGE_CLASS_DEFAULT",
        "a storage class (sei-k8s-controller requires it; no volume of a node has it)",
    ),
    required(
        "SEI_STORAGE_CLASS_ARCHIVE",
        "the storage class of archive nodes",
    ),
    required(
        "SEI_STORAGE_SIZE_DEFAULT",
        "the size of a data volume, such as 2000Gi",
    ),
    required(
        "SEI_STORAGE_SIZE_ARCHIVE",
        "the size of an archive's data volume, such as 40Ti",
    ),
    required(
        "SEI_RESOURCE_CPU_DEFAULT",
        "the CPUs of a node's process, such as 4",
    ),
    required(
        "SEI_RESOURCE_MEM_DEFAULT",
        "the memory of a node's process, such as 32Gi",
    ),
    required(
        "SEI_RESOURCE_CPU_ARCHIVE",
        "the CPUs of an archive's process, such as 48",
    ),
    required(
        "SEI_RESOURCE_MEM_ARCHIVE",
        "the memory of an archive's process, such as 448Gi",
    ),
    required("SEI_SNAPSHOT_BUCKET", "the bucket of snapshots"),
    required("SEI_SNAPSHOT_REGION", "the region of that bucket"),
    required(
        "SEI_RESULT_EXPORT_BUCKET",
        "the bucket of exported results (sei-k8s-controller requires it; nothing is exported)",
    ),
    required("SEI_RESULT_EXPORT_REGION", "the region of that bucket"),
    required("SEI_RESULT_EXPORT_PREFIX", "the prefix in that bucket"),
    required("SEI_GENESIS_BUCKET", "the bucket of genesis files"),
    required("SEI_GENESIS_REGION", "the region of that bucket"),
    required(
        "SEI_GATEWAY_NAME",
        "the Gateway that routes to fleets are attached to",
    ),
    required("SEI_GATEWAY_NAMESPACE", "the namespace of that Gateway"),
    required("SEI_GATEWAY_DOMAIN", "the domain of the fleets' host names"),
    required(
        "SEI_SIDECAR_IMAGE",
        "the image of the sidecar where a node names no other",
    ),
    required(
        "SEI_KUBE_RBAC_PROXY_IMAGE",
        "the image of the proxy before the sidecar",
    ),
    required(
        "SEI_COSMOS_EXPORTER_IMAGE",
        "the image of the exporter of chain metrics",
    ),
    required("POD_NAME", "the operator's own pod, from its metadata.name"),
    required(
        "POD_NAMESPACE",
        "the operator's own namespace, from its metadata.namespace",
    ),
    optional(
        "SEI_GATEWAY_PUBLIC_DOMAIN",
        "a second domain of the fleets' host names",
    ),
    default(
        "SEI_RESOURCE_CPU_SIDECAR",
        "100m",
        "the CPUs of the sidecar",
    ),
    default(
        "SEI_RESOURCE_MEM_SIDECAR",
        "256Mi",
        "the memory of the sidecar",
    ),
    default(
        "SEI_RESOURCE_CPU_EXPORTER",
        "50m",
        "the CPUs of the exporter",
    ),
    default(
        "SEI_RESOURCE_MEM_EXPORTER",
        "384Mi",
        "the memory of the exporter",
    ),
    default("SEI_RESOURCE_CPU_PROXY", "20m", "the CPUs of the proxy"),
    default("SEI_RESOURCE_MEM_PROXY", "128Mi", "the memory of the proxy"),
    optional(
        "SEI_PROXY_RELOADS",
        "true where the proxy follows its files while it runs; keelson-proxy does, kube-rbac-proxy does not, another image does not unless this says so",
    ),
    default(
        "SEI_OPEN_METRICS",
        "true",
        "false where the sidecar's metrics need a permission",
    ),
    default(
        "SEI_SIDECAR_RIGHT",
        SIDECAR_ACCESS_RESOURCE,
        "the resource of sei.io, or resource/subresource such as seinodes/sidecar, that callers of a sidecar must have a right to; give it to the ServiceAccount whose tokens go to sidecars first",
    ),
    optional(
        "SEI_OBJECT_STORE_ENDPOINT",
        "the S3 server of the buckets where it is not AWS, such as http://s3.storage.svc:7070",
    ),
    optional(
        "SEI_OBJECT_STORE_SECRET",
        "the Secret of each namespace of nodes whose AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY open the buckets; without it sidecars look for a role of their pod or machine",
    ),
    optional(
        "SEI_AUDIENCES",
        "a list of audiences a proxy accepts in tokens beside the node's own",
    ),
    optional(
        "SEI_ISSUERS",
        "a list of the issuers nodes may order certificates from, each as Issuer/name or ClusterIssuer/name; without it, any",
    ),
    default(
        "SEI_TEMPLATE_UPGRADE",
        "report",
        "roll where a new operator may restart nodes to bring their pods up to date, report where it only says so",
    ),
    default(
        "SEI_TERMINATION_GRACE_SECONDS",
        "300",
        "the seconds the processes of a pod may take to end",
    ),
    default(
        "SEI_NETWORK_POLICY",
        "true",
        "false where nodes get no NetworkPolicy",
    ),
    default(
        "SEI_OPERATOR_LABELS",
        "app.kubernetes.io/name=keelson-operator",
        "a list of the labels of the operator's pods, each as key=value; by them and its namespace the NetworkPolicy lets it in",
    ),
    default(
        "SEI_SCRAPERS",
        "monitoring",
        "a list of who reads metrics, each as namespace or namespace/key=value;key=value",
    ),
    default(
        "SEI_SIDECAR_CLIENT_ACCOUNT",
        "keelson-sidecar-client",
        "the ServiceAccount whose tokens go to sidecars",
    ),
    optional(
        "SEI_SIDECAR_CLIENT_NAMESPACE",
        "the namespace of that ServiceAccount, where it is not the operator's own",
    ),
];

/// The page of the documentation with every setting.
pub fn page() -> String {
    let mut page = String::from(
        "# The settings of a platform\n\n\
         Generated from the table the operator itself reads (`make generate`). What the settings are for\n\
         as a whole is told in [platform.md](platform.md).\n\n\
         | Variable | Key of the file | Without it | What it is |\n|---|---|---|---|\n",
    );
    for row in SETTINGS {
        let key = row.key().map_or(String::new(), |key| format!("`{key}`"));
        let without = match row.need {
            Need::Required => "the operator does not start".to_owned(),
            Need::Default(value) => format!("`{value}`"),
            Need::Optional => "nothing".to_owned(),
        };
        page += &format!(
            "| `{}` | {key} | {without} | {} |\n",
            row.variable, row.what
        );
    }
    page
}
