//! What is asked before and after a change, to know whether the host is still reachable.
//!
//! Asking is for others; here is what the answers mean. A change that came from the API server may not
//! cost the connection to it, so that probe has to pass before and after. Any other counts after a
//! change only if it passed before: a host without a gateway is not asked for one.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Probe {
    /// Whether the default gateway answers.
    Gateway,
    /// Whether a name server answers.
    Dns,
    /// Whether the API server answers on a fresh connection.
    ApiServer,
    /// Whether the node is Ready.
    NodeReady,
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gateway => "the default gateway",
            Self::Dns => "the name servers",
            Self::ApiServer => "the API server",
            Self::NodeReady => "the node's readiness",
        })
    }
}

/// Where a policy came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// From the API server, now.
    ApiServer,
    /// From the host: what was enacted before, or what it starts with.
    Host,
}

impl Origin {
    /// Probes that have to pass, whatever they said before.
    fn mandatory(self) -> BTreeSet<Probe> {
        match self {
            Self::ApiServer => [Probe::ApiServer].into(),
            Self::Host => [].into(),
        }
    }
}

/// What passed before a change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Baseline {
    /// Where the policy came from.
    pub origin: Origin,
    /// The probes that passed.
    pub passed: BTreeSet<Probe>,
}

/// Probes that should have passed and did not.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{} did not answer", listed(.0))]
pub struct Unanswered(pub BTreeSet<Probe>);

fn listed(probes: &BTreeSet<Probe>) -> String {
    let names: Vec<String> = probes.iter().map(ToString::to_string).collect();
    names.join(" and ")
}

impl Baseline {
    /// Whether a change may begin: what has to pass after it passes before it.
    pub fn may_begin(&self) -> Result<(), Unanswered> {
        unanswered(self.origin.mandatory(), &self.passed)
    }

    /// The probes that have to pass after the change.
    pub fn required(&self) -> BTreeSet<Probe> {
        let mut required = self.origin.mandatory();
        required.extend(&self.passed);
        required
    }

    /// Whether the host is as reachable as it was, by the probes that pass now.
    pub fn judge(&self, passed: &BTreeSet<Probe>) -> Result<(), Unanswered> {
        unanswered(self.required(), passed)
    }
}

fn unanswered(required: BTreeSet<Probe>, passed: &BTreeSet<Probe>) -> Result<(), Unanswered> {
    let missing: BTreeSet<Probe> = required.difference(passed).copied().collect();
    match missing.is_empty() {
        true => Ok(()),
        false => Err(Unanswered(missing)),
    }
}
