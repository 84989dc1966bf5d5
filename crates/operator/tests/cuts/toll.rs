//! What a change took of a node: pods, processes, containers and tasks.

use std::collections::BTreeMap;

use keelson_wire::TaskType;

use crate::stage::ledger::Seen;

/// What was taken of a node so far, or by one change.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Toll {
    /// Pods that were deleted.
    pub(crate) pods: usize,
    /// Processes that were started.
    pub(crate) processes: u32,
    /// Containers that were replaced in their pod.
    pub(crate) containers: BTreeMap<String, u32>,
    /// Tasks that were begun.
    pub(crate) tasks: BTreeMap<TaskType, u32>,
}

impl Toll {
    /// What was taken so far.
    pub(crate) fn of(seen: &Seen) -> Self {
        let types = seen.submitted.iter().map(|it| it.type_);
        Self {
            pods: seen.deleted.len(),
            processes: seen.process_starts,
            containers: seen.restarts.clone(),
            tasks: types.map(|type_| (type_, seen.begun(type_))).collect(),
        }
    }

    /// What was taken since.
    pub(crate) fn since(self, before: &Self) -> Self {
        fn rest<K: Ord + Clone>(
            now: BTreeMap<K, u32>,
            then: &BTreeMap<K, u32>,
        ) -> BTreeMap<K, u32> {
            let rest = now.into_iter().map(|(what, times)| {
                let before = then.get(&what).copied().unwrap_or_default();
                (what, times - before)
            });
            rest.filter(|(_, times)| *times > 0).collect()
        }
        Self {
            pods: self.pods - before.pods,
            processes: self.processes - before.processes,
            containers: rest(self.containers, &before.containers),
            tasks: rest(self.tasks, &before.tasks),
        }
    }
}
