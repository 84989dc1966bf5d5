//! The claims of handlers to change their hosts, as far as the operator reads them.
//!
//! Handlers write them and decide by them whose turn it is; see `maxUnavailable` of a policy. The
//! operator counts them, and takes out those of nodes and policies that are no more. What it does not
//! know of a claim it leaves as it is.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// Field of the object that has the claims in it.
const CLAIMS: &str = "claims";

/// The content of the object that handlers share.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims(Value);

/// What is read of one claim.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Claim {
    /// The node.
    pub node: String,
    /// Uid of the policy.
    pub policy: String,
    /// Generation of the policy.
    pub generation: i64,
}

impl Claims {
    /// Reads what handlers wrote; no text is no claims.
    pub fn read(text: Option<&str>) -> Result<Self, serde_json::Error> {
        match text {
            Some(text) => serde_json::from_str(text).map(Self),
            None => Ok(Self::default()),
        }
    }

    /// As it is written.
    pub fn text(&self) -> String {
        self.0.to_string()
    }

    /// Those that can be read.
    pub fn all(&self) -> impl Iterator<Item = Claim> {
        let all = self.0.get(CLAIMS).and_then(Value::as_array);
        all.into_iter().flatten().filter_map(claim)
    }

    /// How many there are for a policy, by its generation.
    pub fn counts(&self, policy: &str) -> BTreeMap<String, i32> {
        let mut counts = BTreeMap::new();
        for claim in self.all().filter(|it| it.policy == policy) {
            *counts.entry(claim.generation.to_string()).or_default() += 1;
        }
        counts
    }

    /// The rest, without those that are like this.
    pub fn without(&self, gone: impl Fn(&Claim) -> bool) -> Self {
        let mut rest = self.0.clone();
        if let Some(all) = rest.get_mut(CLAIMS).and_then(Value::as_array_mut) {
            all.retain(|it| !claim(it).as_ref().is_some_and(&gone));
        }
        Self(rest)
    }
}

fn claim(value: &Value) -> Option<Claim> {
    Claim::deserialize(value).ok()
}
