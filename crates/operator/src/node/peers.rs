//! Who a node's peers are: the sources of its spec, with labels resolved to the nodes that carry them.
//!
//! A label that finds nobody is no error: the first node of a chain has no peers yet, and gets them
//! when they come. Finding out a peer's identity is the sidecar's.

use std::collections::BTreeSet;

use keelson_api::SeiNode;
use keelson_api::peers::{LabelPeers, PeerSource};
use keelson_render::names;
use keelson_wire::params::PeerSource as Asked;

/// Hosts of the nodes that carry the labels, sorted, this one not among them.
pub fn resolve<'a>(node: &SeiNode, others: impl Iterator<Item = &'a SeiNode>) -> Vec<String> {
    let wanted: Vec<&LabelPeers> = labels(node).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let found: BTreeSet<String> = others
        .filter(|other| other.metadata.uid != node.metadata.uid)
        .filter(|other| wanted.iter().any(|labels| matches(labels, node, other)))
        .filter_map(host)
        .collect();
    found.into_iter().collect()
}

/// The label sources of a node.
pub fn labels(node: &SeiNode) -> impl Iterator<Item = &LabelPeers> {
    node.spec
        .peers
        .iter()
        .filter_map(|peer| peer.label.as_ref())
}

/// Whether a node is one of those another finds by these labels.
pub fn matches(wanted: &LabelPeers, of: &SeiNode, other: &SeiNode) -> bool {
    let namespace = wanted.namespace.as_ref().or(of.metadata.namespace.as_ref());
    let carried = other.metadata.labels.as_ref();
    let carries = |(name, value): (&String, &String)| {
        carried.is_some_and(|labels| labels.get(name) == Some(value))
    };
    other.metadata.namespace.as_ref() == namespace
        && other.metadata.deletion_timestamp.is_none()
        && wanted.selector.iter().all(carries)
}

fn host(node: &SeiNode) -> Option<String> {
    let name = node.metadata.name.as_deref()?;
    let [_, pod] = names::dns(name, node.metadata.namespace.as_deref()?);
    Some(pod)
}

/// What the sidecar is asked for: one source each, all labels together as one. Sources that name
/// nobody are left out.
pub fn sources(spec: &[PeerSource], resolved: &[String]) -> Vec<Asked> {
    let named = spec.iter().filter_map(|source| {
        let tagged = source.ec2_tags.as_ref().map(|it| Asked::Ec2Tags {
            region: it.region.clone(),
            tags: it.tags.clone(),
        });
        let written = source.fixed.as_ref().map(|it| Asked::Static {
            addresses: it.addresses.clone(),
        });
        tagged.or(written)
    });
    let found = (!resolved.is_empty()).then(|| Asked::DnsEndpoints {
        endpoints: resolved.to_vec(),
    });
    named.chain(found).collect()
}
