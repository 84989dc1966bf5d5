//! What is known of a caller beside name and groups.
//!
//! A map by name, kept as one sorted slice: thousands of callers are remembered, most with one or
//! two attributes, and the node of a tree has room for eleven.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::ops::Deref;

/// Pod, node, credential and the like, by name and in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Extra(Box<[(String, Vec<String>)]>);

impl Deref for Extra {
    type Target = [(String, Vec<String>)];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl From<BTreeMap<String, Vec<String>>> for Extra {
    fn from(attributes: BTreeMap<String, Vec<String>>) -> Self {
        let exact = attributes.into_iter().map(|(name, mut values)| {
            values.shrink_to_fit();
            (name, values)
        });
        Self(exact.collect())
    }
}

impl<const N: usize> From<[(String, Vec<String>); N]> for Extra {
    fn from(attributes: [(String, Vec<String>); N]) -> Self {
        BTreeMap::from(attributes).into()
    }
}

impl Serialize for Extra {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(name, values)| (name, values)))
    }
}

impl<'de> Deserialize<'de> for Extra {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(Self::from)
    }
}
