//! Who is who: a node by its namespace and name, and the addresses that lead to it.

use std::fmt;

use k8s_openapi::api::core::v1::Pod;
use keelson_api::names::{Label, Port};
use keelson_render::names;
use kube::ResourceExt;

/// An object by namespace and name; most often a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

impl Place {
    pub(crate) fn new(namespace: &str, name: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// Where an object is.
    pub(crate) fn of(object: &impl ResourceExt) -> Self {
        Self::new(&object.namespace().unwrap_or_default(), &object.name_any())
    }

    /// The node a pod belongs to.
    pub(crate) fn node_of(pod: &Pod) -> Option<Self> {
        let name = pod.labels().get(Label::Node.as_str())?;
        Some(Self::new(&pod.namespace()?, name))
    }

    /// Another object of the same namespace.
    pub(crate) fn beside(&self, name: &str) -> Self {
        Self::new(&self.namespace, name)
    }
}

/// What an authority of the form `host[:port]` leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) node: Place,
    /// Whether it is the proxy's own port, which is always plaintext.
    pub(crate) health: bool,
}

impl Target {
    /// Reads the name of a node's Service or of its pod, with or without a port.
    pub(crate) fn read(authority: &str) -> Option<Self> {
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) => (host, port.parse::<u16>().ok()),
            None => (authority, None),
        };
        let inside = host.strip_suffix(".svc.cluster.local")?;
        let (service, namespace) = inside.rsplit_once('.')?;
        let node = service.rsplit_once('.').map_or(service, |(_, node)| node);
        // Only the two names its certificate is for lead to it.
        names::dns(node, namespace)
            .iter()
            .any(|known| known == host)
            .then(|| Self {
                node: Place::new(namespace, node),
                health: port == Some(Port::ProxyHealth.number()),
            })
    }
}
