//! Who a node's peers are: the sources of its spec, with labels resolved to the nodes that carry them.
//!
//! A label that finds nobody is no error: the first node of a chain has no peers yet, and gets them
//! when they come. Finding out a peer's identity is the sidecar's, which asks the peer's process: so
//! of nodes that are all set up at once one starts alone, and the others find it. Would each wait for
//! another to serve, none ever would.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use keelson_api::SeiNode;
use keelson_api::node_condition::NodeCondition;
use keelson_api::node_status::NodePhase;
use keelson_api::peers::{LabelPeers, PeerSource};
use keelson_render::names;
use keelson_wire::params::PeerSource as Asked;

/// Hosts of the nodes that carry the labels, sorted, this one not among them. The node that starts
/// alone finds nobody.
pub fn resolve<'a>(node: &SeiNode, others: impl Iterator<Item = &'a SeiNode>) -> Vec<String> {
    let wanted: Vec<&LabelPeers> = labels(node).collect();
    if wanted.is_empty() {
        return Vec::new();
    }
    let found: Vec<&SeiNode> = others
        .filter(|other| other.metadata.uid != node.metadata.uid)
        .filter(|other| wanted.iter().any(|labels| matches(labels, node, other)))
        .collect();
    if starts_alone(node, &found) {
        return Vec::new();
    }
    let hosts: BTreeSet<String> = found.into_iter().filter_map(host).collect();
    hosts.into_iter().collect()
}

/// Whether none of these nodes has been set up, and this one is the oldest of those that can be.
fn starts_alone(node: &SeiNode, found: &[&SeiNode]) -> bool {
    let all = || found.iter().copied().chain([node]);
    let set_up = |node: &SeiNode| phase(node) == Some(NodePhase::Running);
    if all().any(set_up) {
        return false;
    }
    let age = |node: &SeiNode| {
        let metadata = &node.metadata;
        let created = metadata.creation_timestamp.as_ref().map(|it| it.0);
        (created, metadata.namespace.clone(), metadata.name.clone())
    };
    let hopeful = all().filter(|it| !is_stuck(it)).map(age).min();
    let oldest = hopeful.or_else(|| all().map(age).min());
    oldest == Some(age(node))
}

fn phase(node: &SeiNode) -> Option<NodePhase> {
    node.status.as_ref()?.phase
}

/// A node that somebody has to mend is not waited for.
fn is_stuck(node: &SeiNode) -> bool {
    let conditions = node.status.iter().flat_map(|it| &it.conditions);
    let stalled =
        |it: &Condition| it.type_ == NodeCondition::Stalled.as_str() && it.status == "True";
    phase(node) == Some(NodePhase::Failed) || conditions.into_iter().any(stalled)
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn node(name: &str, created: &str, phase: &str) -> SeiNode {
        let node = json!({
            "apiVersion": "sei.io/v1alpha1",
            "kind": "SeiNode",
            "metadata": {
                "name": name,
                "namespace": "chain",
                "uid": name,
                "creationTimestamp": format!("2026-01-01T00:00:{created}Z"),
                "labels": { "chain": "pacific" },
            },
            "spec": {
                "chainId": "pacific-1",
                "image": "seid:1",
                "peers": [{ "label": { "selector": { "chain": "pacific" } } }],
                "fullNode": {},
            },
            "status": { "phase": phase },
        });
        serde_json::from_value(node).expect("a node")
    }

    fn stalled(mut node: SeiNode) -> SeiNode {
        let condition = json!({
            "type": "Stalled", "status": "True", "reason": "Waiting", "message": "it waits",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        let condition = serde_json::from_value(condition).expect("a condition");
        node.status.get_or_insert_default().conditions = vec![condition];
        node
    }

    /// How many peers each of these nodes finds.
    fn found(nodes: &[SeiNode]) -> Vec<usize> {
        let resolved = nodes.iter().map(|node| resolve(node, nodes.iter()).len());
        resolved.collect()
    }

    #[test]
    fn of_nodes_that_are_set_up_at_once_the_oldest_starts_alone_and_the_others_find_it() {
        let fresh = |name, created| node(name, created, "Initializing");
        assert_eq!(found(&[fresh("a", "01"), fresh("b", "00")]), [1, 0]);
        // Of the same second, by name.
        assert_eq!(
            found(&[fresh("b", "00"), fresh("a", "00"), fresh("c", "00")]),
            [2, 0, 2]
        );
    }

    #[test]
    fn where_a_node_runs_nobody_starts_alone() {
        let runs = node("b", "01", "Running");
        assert_eq!(
            found(&[node("a", "00", "Initializing"), runs.clone()]),
            [1, 1]
        );
        assert_eq!(found(&[node("a", "00", "Running"), runs]), [1, 1]);
    }

    #[test]
    fn a_node_that_cannot_be_set_up_holds_up_nobody() {
        let fresh = |name, created| node(name, created, "Initializing");
        let stuck = [stalled(fresh("a", "00")), node("b", "01", "Failed")];
        let nodes = [&stuck[..], &[fresh("c", "02"), fresh("d", "03")]].concat();
        assert_eq!(found(&nodes), [3, 3, 0, 3]);
        // Where all of them are stuck, it may be because each waits for another.
        assert_eq!(found(&stuck), [0, 1]);
    }
}
