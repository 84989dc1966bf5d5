//! What defaults take from the machine the node runs on. Who calls looks it up; nothing here does.

/// The machine, as far as defaults depend on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// The host's name: the moniker of a node that sets none. Empty means it could not be had.
    pub name: String,
    /// CPUs that seid may use. The sidecar's own number is another one where resources are limited.
    pub cpus: u16,
}

impl Host {
    /// The moniker of a node that sets none.
    pub(crate) fn moniker(&self) -> &str {
        if self.name.is_empty() {
            "anonymous"
        } else {
            &self.name
        }
    }

    /// Workers that run transactions at once, where the mode has no number of its own.
    pub(crate) fn concurrency_workers(&self) -> i64 {
        (i64::from(self.cpus) * 2).clamp(10, 128)
    }

    /// Workers of the EVM's JSON-RPC.
    pub(crate) fn evm_workers(&self) -> i64 {
        (i64::from(self.cpus) * 2).min(64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_follow_the_cpus_within_limits() {
        for (cpus, workers, evm) in [(1, 10, 2), (8, 16, 16), (32, 64, 64), (96, 128, 64)] {
            let host = Host {
                name: String::new(),
                cpus,
            };
            assert_eq!(host.concurrency_workers(), workers, "{cpus} CPUs");
            assert_eq!(host.evm_workers(), evm, "{cpus} CPUs");
        }
    }

    #[test]
    fn a_host_without_a_name_is_anonymous() {
        let named = |name: &str| Host {
            name: name.into(),
            cpus: 1,
        };
        assert_eq!(named("").moniker(), "anonymous");
        assert_eq!(named("node-0").moniker(), "node-0");
    }
}
