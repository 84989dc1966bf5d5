//! What a platform says once for all of its nodes: the `SEI_*` variables, or one file in their place.
//!
//! [`read`] is a pure function of the variables and the file's text. It says everything that is
//! missing or wrong at once; the program prints that and ends before it touches anything. What the
//! values do to a pod is for `render`. [`SETTINGS`] is the table of names, and what the documentation
//! is generated from.

use std::collections::BTreeMap;

use keelson_api::sidecar::IssuerKind;
use keelson_render::platform::{
    Access, Bucket, Class, ObjectStore, Platform, Program, Proxy, Right, Size, Source,
    follows_files,
};

mod problems;
mod process;
mod reader;
mod table;

pub use problems::Problems;
pub use process::Told;
use reader::Reader;
pub use table::{Need, SETTINGS, Setting, page};

/// The settings of a platform.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// What the objects of nodes are made from.
    pub render: Platform,
    /// Issuers nodes may order certificates from; with none, any.
    pub issuers: Vec<AllowedIssuer>,
    /// Whether a pod that is outdated by a new operator alone is replaced.
    pub rolls_outdated: bool,
    /// The operator's own namespace.
    pub namespace: String,
    /// The operator's own pod.
    pub pod: String,
    /// The ServiceAccount whose tokens go to sidecars.
    pub sidecar_client: Account,
    /// Where routes to fleets are attached.
    pub gateway: Gateway,
    /// Where results would be exported to.
    pub results: Results,
}

/// What the operator is told of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Own {
    /// Its pod.
    pub pod: String,
    /// Its namespace, and what NetworkPolicies know its pods by.
    pub source: Source,
}

/// An issuer certificates may be ordered from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedIssuer {
    /// Its kind; an `Issuer` is meant in every namespace.
    pub kind: IssuerKind,
    /// Its name.
    pub name: String,
}

/// A ServiceAccount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Where routes to fleets are attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gateway {
    /// Name of the Gateway.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Domain of the host names.
    pub domain: String,
    /// A second one.
    pub public_domain: Option<String>,
}

/// Where results would be exported to. Kept because sei-k8s-controller requires it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Results {
    /// The bucket.
    pub bucket: Bucket,
    /// The prefix in it.
    pub prefix: String,
}

impl Settings {
    /// What the operator is told of itself.
    pub fn own(&self) -> Own {
        own(&self.pod, &self.namespace, self.render.access.as_ref())
    }

    /// Whether a node may order its certificate from this issuer.
    pub fn allows(&self, kind: IssuerKind, name: &str) -> bool {
        let named = |issuer: &AllowedIssuer| issuer.kind == kind && issuer.name == name;
        self.issuers.is_empty() || self.issuers.iter().any(named)
    }
}

/// Reads the settings from variables and, where they say nothing, from the text of the platform file.
pub fn read(
    environment: &BTreeMap<String, String>,
    file: Option<&str>,
) -> Result<Settings, Problems> {
    let mut reader = Reader::new(environment, file);
    let settings = settings(&mut reader);
    match reader.problems.is_empty() {
        true => Ok(settings),
        false => Err(reader.problems),
    }
}

/// Reads what the operator is told of itself, and leaves what is said of nodes alone.
pub fn read_own(
    environment: &BTreeMap<String, String>,
    file: Option<&str>,
) -> Result<Own, Problems> {
    let mut reader = Reader::new(environment, file);
    let (pod, namespace) = (reader.word("POD_NAME"), reader.word("POD_NAMESPACE"));
    let access = access(&mut reader, &namespace);
    match reader.problems.is_empty() {
        true => Ok(own(&pod, &namespace, access.as_ref())),
        false => Err(reader.problems),
    }
}

/// Without NetworkPolicies nobody has said what the operator's pods are labelled with.
fn own(pod: &str, namespace: &str, access: Option<&Access>) -> Own {
    let anything_here = || Source {
        namespace: namespace.to_owned(),
        labels: BTreeMap::new(),
    };
    Own {
        pod: pod.to_owned(),
        source: access.map_or_else(anything_here, |it| it.operator.clone()),
    }
}

fn settings(reader: &mut Reader<'_>) -> Settings {
    // A class that no volume has; the original does not start without it.
    reader.word("SEI_STORAGE_CLASS_DEFAULT");
    let namespace = reader.word("POD_NAMESPACE");
    Settings {
        render: platform(reader, &namespace),
        issuers: reader.list("SEI_ISSUERS", "Issuer/name or ClusterIssuer/name", issuer),
        rolls_outdated: reader.choice("SEI_TEMPLATE_UPGRADE", ["report", "roll"]),
        pod: reader.word("POD_NAME"),
        sidecar_client: Account {
            namespace: reader
                .optional_word("SEI_SIDECAR_CLIENT_NAMESPACE")
                .unwrap_or_else(|| namespace.clone()),
            name: reader.word("SEI_SIDECAR_CLIENT_ACCOUNT"),
        },
        namespace,
        gateway: Gateway {
            name: reader.word("SEI_GATEWAY_NAME"),
            namespace: reader.word("SEI_GATEWAY_NAMESPACE"),
            domain: reader.word("SEI_GATEWAY_DOMAIN"),
            public_domain: reader.optional_word("SEI_GATEWAY_PUBLIC_DOMAIN"),
        },
        results: Results {
            bucket: bucket(
                reader,
                "SEI_RESULT_EXPORT_BUCKET",
                "SEI_RESULT_EXPORT_REGION",
            ),
            prefix: reader.word("SEI_RESULT_EXPORT_PREFIX"),
        },
    }
}

fn platform(reader: &mut Reader<'_>, namespace: &str) -> Platform {
    Platform {
        service_account: reader.word("SEI_SERVICE_ACCOUNT"),
        toleration_key: reader.word("SEI_TOLERATION_KEY"),
        genesis: bucket(reader, "SEI_GENESIS_BUCKET", "SEI_GENESIS_REGION"),
        snapshots: bucket(reader, "SEI_SNAPSHOT_BUCKET", "SEI_SNAPSHOT_REGION"),
        object_store: ObjectStore {
            endpoint: reader.optional_word("SEI_OBJECT_STORE_ENDPOINT"),
            secret: reader.optional_word("SEI_OBJECT_STORE_SECRET"),
        },
        default: Class {
            pool: reader.word("SEI_NODEPOOL_NAME"),
            storage_class: reader.word("SEI_STORAGE_CLASS_PERF"),
            storage: reader.quantity("SEI_STORAGE_SIZE_DEFAULT"),
            size: size(
                reader,
                "SEI_RESOURCE_CPU_DEFAULT",
                "SEI_RESOURCE_MEM_DEFAULT",
            ),
        },
        archive: Class {
            pool: reader.word("SEI_NODEPOOL_ARCHIVE"),
            storage_class: reader.word("SEI_STORAGE_CLASS_ARCHIVE"),
            storage: reader.quantity("SEI_STORAGE_SIZE_ARCHIVE"),
            size: size(
                reader,
                "SEI_RESOURCE_CPU_ARCHIVE",
                "SEI_RESOURCE_MEM_ARCHIVE",
            ),
        },
        sidecar: Program {
            image: reader.word("SEI_SIDECAR_IMAGE"),
            size: size(
                reader,
                "SEI_RESOURCE_CPU_SIDECAR",
                "SEI_RESOURCE_MEM_SIDECAR",
            ),
        },
        exporter: Program {
            image: reader.word("SEI_COSMOS_EXPORTER_IMAGE"),
            size: size(
                reader,
                "SEI_RESOURCE_CPU_EXPORTER",
                "SEI_RESOURCE_MEM_EXPORTER",
            ),
        },
        proxy: proxy(reader),
        termination_grace_seconds: reader.seconds("SEI_TERMINATION_GRACE_SECONDS"),
        access: access(reader, namespace),
    }
}

fn bucket(reader: &mut Reader<'_>, name: &'static str, region: &'static str) -> Bucket {
    Bucket {
        name: reader.word(name),
        region: reader.word(region),
    }
}

fn size(reader: &mut Reader<'_>, cpu: &'static str, memory: &'static str) -> Size {
    Size {
        cpu: reader.quantity(cpu),
        memory: reader.quantity(memory),
    }
}

fn proxy(reader: &mut Reader<'_>) -> Proxy {
    let image = reader.word("SEI_KUBE_RBAC_PROXY_IMAGE");
    let wanted = reader.switch("SEI_PROXY_RELOADS");
    let reloads = follows_files(&image, wanted).unwrap_or_else(|contradiction| {
        let sentence = format!("contradicts SEI_KUBE_RBAC_PROXY_IMAGE: {contradiction}");
        reader.problems.add("SEI_PROXY_RELOADS", sentence);
        false
    });
    Proxy {
        program: Program {
            image,
            size: size(reader, "SEI_RESOURCE_CPU_PROXY", "SEI_RESOURCE_MEM_PROXY"),
        },
        reloads,
        audiences: reader.list(
            "SEI_AUDIENCES",
            "an audience: write it without spaces",
            audience,
        ),
        open_metrics: reader.switch("SEI_OPEN_METRICS").unwrap_or_default(),
        right: right(reader),
    }
}

/// What callers of a sidecar must have a right to.
fn right(reader: &mut Reader<'_>) -> Right {
    let said = reader.word("SEI_SIDECAR_RIGHT");
    let (resource, subresource) = match said.split_once('/') {
        Some((resource, subresource)) => (resource, Some(subresource.to_owned())),
        None => (said.as_str(), None),
    };
    let whole = |part: &str| !part.is_empty() && !part.contains('/');
    let fits = whole(resource) && subresource.as_deref().is_none_or(whole);
    // What is missing is told already.
    if !fits && !said.is_empty() {
        let sentence = format!("is {said:?}, which is no resource or resource/subresource");
        reader.problems.add("SEI_SIDECAR_RIGHT", sentence);
    }
    Right {
        resource: resource.to_owned(),
        subresource,
    }
}

/// Everything is read, so that everything wrong is told, also where no policy is wanted.
fn access(reader: &mut Reader<'_>, namespace: &str) -> Option<Access> {
    let labels = reader.list("SEI_OPERATOR_LABELS", "a label as key=value", label);
    let scrapers = "a namespace, or a namespace with labels as namespace/key=value;key=value";
    let scrapers = reader.list("SEI_SCRAPERS", scrapers, source);
    let wanted = reader.switch("SEI_NETWORK_POLICY").unwrap_or_default();
    wanted.then(|| Access {
        operator: Source {
            namespace: namespace.to_owned(),
            labels: labels.into_iter().collect(),
        },
        scrapers,
    })
}

fn issuer(entry: &str) -> Option<AllowedIssuer> {
    let (kind, name) = entry.split_once('/')?;
    Some(AllowedIssuer {
        kind: kind.parse().ok()?,
        name: word(name)?,
    })
}

/// The proxy takes audiences separated by commas.
fn audience(entry: &str) -> Option<String> {
    word(entry).filter(|entry| !entry.contains(','))
}

fn label(entry: &str) -> Option<(String, String)> {
    let (key, value) = entry.split_once('=')?;
    let value = match value {
        "" => String::new(),
        value => word(value).filter(|value| !value.contains('='))?,
    };
    Some((word(key)?, value))
}

fn source(entry: &str) -> Option<Source> {
    let (namespace, labels) = match entry.split_once('/') {
        None => (entry, BTreeMap::new()),
        Some((namespace, labels)) => {
            let labels: Option<_> = labels.split(';').map(label).collect();
            (namespace, labels?)
        }
    };
    Some(Source {
        namespace: word(namespace)?,
        labels,
    })
}

fn word(text: &str) -> Option<String> {
    let fits = !text.is_empty() && !text.contains(|c: char| c.is_whitespace() || c.is_control());
    fits.then(|| text.to_owned())
}
