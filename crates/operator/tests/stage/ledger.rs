//! What was seen: pods that came and went, containers and processes that started, tasks that were
//! submitted, tokens that were shown, and everything that must never happen.

use std::collections::{BTreeMap, BTreeSet};

use keelson_wire::{Object, TaskType};

use super::place::Place;

/// A task as it was submitted.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Submitted {
    pub(crate) id: String,
    pub(crate) type_: TaskType,
    pub(crate) params: Object,
    /// The pod whose sidecar took it.
    pub(crate) pod: String,
}

/// A request that carried a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) token: String,
    /// Whether the connection was plaintext.
    pub(crate) plaintext: bool,
    pub(crate) pod: String,
}

/// What was seen of one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// Pods that came into being, by uid.
    pub(crate) created: BTreeSet<String>,
    /// Pods that are gone, by uid.
    pub(crate) deleted: BTreeSet<String>,
    /// How often a container was started again, by its name.
    pub(crate) restarts: BTreeMap<String, u32>,
    /// How often the status of one of its pods was written.
    pub(crate) status_writes: u32,
    /// How often the node's process started, in any pod.
    pub(crate) process_starts: u32,
    /// The configuration the process was last started with, as the volume had it then.
    pub(crate) started_with: String,
    /// Submissions that were accepted, in order; the same one again is here again.
    pub(crate) submitted: Vec<Submitted>,
    /// How often each task was begun, by id. One that a new sidecar took up is not begun again.
    pub(crate) runs: BTreeMap<String, u32>,
    /// Tokens, in order of their first use over this kind of connection to this pod.
    pub(crate) shown: Vec<Shown>,
    /// Requests with a token.
    pub(crate) with_token: u64,
    /// Requests without one, to open paths or refused.
    pub(crate) without_token: u64,
    /// Requests of whatever kind.
    pub(crate) requests: u64,
}

impl Seen {
    /// Types of the tasks that were submitted, in order.
    pub(crate) fn types(&self) -> Vec<TaskType> {
        self.submitted.iter().map(|it| it.type_).collect()
    }

    /// Types of the tasks that were submitted after the first so many, in order. What was asked for
    /// twice in a row and begun once, as after a status write that met an edit, is one task.
    pub(crate) fn begun_after(&self, first: usize) -> Vec<TaskType> {
        let mut tasks: Vec<_> = self.submitted.iter().skip(first).collect();
        tasks.dedup_by(|one, other| one.id == other.id && self.runs.get(&one.id) == Some(&1));
        tasks.into_iter().map(|it| it.type_).collect()
    }

    /// How often tasks of a type were begun.
    pub(crate) fn begun(&self, type_: TaskType) -> u32 {
        let of_type = self.submitted.iter().filter(|it| it.type_ == type_);
        let ids: BTreeSet<_> = of_type.map(|it| &it.id).collect();
        ids.into_iter().filter_map(|id| self.runs.get(id)).sum()
    }

    /// How often a container was started again.
    pub(crate) fn restarted(&self, container: &str) -> u32 {
        self.restarts.get(container).copied().unwrap_or_default()
    }
}

/// Everything that was seen.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    nodes: BTreeMap<Place, Seen>,
    violations: Vec<(Place, String)>,
}

impl Ledger {
    pub(crate) fn node(&mut self, node: &Place) -> &mut Seen {
        self.nodes.entry(node.clone()).or_default()
    }

    /// What was seen of a node.
    pub(crate) fn of(&self, node: &Place) -> Seen {
        self.nodes.get(node).cloned().unwrap_or_default()
    }

    /// Something that must never happen.
    pub(crate) fn violated(&mut self, node: &Place, what: String) {
        self.violations.push((node.clone(), what));
    }

    /// What must never happen and did, of the nodes of a namespace.
    pub(crate) fn violations(&self, namespace: &str) -> Vec<String> {
        let here = |(node, _): &&(Place, String)| node.namespace == namespace;
        let told = |(node, what): &(Place, String)| format!("{node}: {what}");
        self.violations.iter().filter(here).map(told).collect()
    }
}
