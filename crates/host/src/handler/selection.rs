//! Which policies are for this host: those whose selector its node's labels satisfy, one by one in the
//! order of their names.

use std::collections::BTreeMap;
use std::fmt;

use keelson_api::NodeNetworkConfigurationPolicy;

/// How a node's labels differ from what a policy selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mismatch {
    /// The node has no such label.
    Missing {
        /// The label.
        key: String,
        /// The value asked for.
        wanted: String,
    },
    /// The node has another value.
    Differs {
        /// The label.
        key: String,
        /// The value asked for.
        wanted: String,
        /// The node's value.
        found: String,
    },
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing { key, wanted } => write!(f, "label {key}={wanted} is missing"),
            Self::Differs { key, wanted, found } => {
                write!(f, "label {key} is {found}, not {wanted}")
            }
        }
    }
}

/// Everything that keeps a policy from a node; nothing means that the policy is for it. An empty
/// selector selects every node.
pub fn mismatches(
    selector: &BTreeMap<String, String>,
    labels: &BTreeMap<String, String>,
) -> Vec<Mismatch> {
    selector
        .iter()
        .filter_map(|(key, wanted)| {
            let (key, wanted) = (key.clone(), wanted.clone());
            match labels.get(&key) {
                None => Some(Mismatch::Missing { key, wanted }),
                Some(found) if *found != wanted => Some(Mismatch::Differs {
                    key,
                    wanted,
                    found: found.clone(),
                }),
                Some(_) => None,
            }
        })
        .collect()
}

/// The policies for a node, sorted by name: the order they are enacted in.
pub fn selected<'a>(
    policies: impl IntoIterator<Item = &'a NodeNetworkConfigurationPolicy>,
    labels: &BTreeMap<String, String>,
) -> Vec<&'a NodeNetworkConfigurationPolicy> {
    let mut selected: Vec<_> = policies
        .into_iter()
        .filter(|policy| mismatches(&policy.spec.node_selector, labels).is_empty())
        .collect();
    selected.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
    selected
}
