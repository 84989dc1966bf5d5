//! What a run of the bench found, as it is kept in `benches/results/operator.json`. What is not in here
//! was not measured.

use crate::tally::Tally;
use keelson_bench::machine::Run;
use serde::{Deserialize, Serialize};

/// Everything one run found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) run: Run,
    pub(crate) hanging: Hanging,
    pub(crate) created: Converged,
    pub(crate) edited: Converged,
    /// The nodes that were added to the first ones.
    pub(crate) added: Option<Converged>,
    /// What it takes to have so many nodes, the fewest first.
    pub(crate) scales: Vec<Scale>,
}

/// Nodes that were all asked for at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Converged {
    pub(crate) nodes: usize,
    /// Seconds until all were Running, from the first request on; nothing where they were before.
    pub(crate) running_s: Option<f64>,
    /// Seconds until none had anything left to do.
    pub(crate) done_s: f64,
    /// Seconds of processor time of the operator.
    pub(crate) cpu_s: f64,
    /// What the operator had resident at the end.
    pub(crate) resident_bytes: u64,
    pub(crate) calls: Tally,
    pub(crate) sidecar_requests: u64,
    pub(crate) sidecar_connections: u64,
}

impl Converged {
    /// All of it in a line, for the person who waits.
    pub(crate) fn line(&self) -> String {
        let kinds = self.calls.kinds.iter();
        let kinds: Vec<_> = kinds
            .map(|it| format!("{} {} {:.2}", it.verb, it.resource, self.each(it.count)))
            .collect();
        let running = self
            .running_s
            .map(|it| format!("Running after {it:.1} s, "));
        format!(
            "{} nodes: {}done after {:.1} s, {:.1} s of processor time, {:.1} calls of each sidecar; for each node {}",
            self.nodes,
            running.unwrap_or_default(),
            self.done_s,
            self.cpu_s,
            self.each(self.sidecar_requests),
            kinds.join(", ")
        )
    }

    /// So many for each node.
    pub(crate) fn each(&self, count: u64) -> f64 {
        count as f64 / self.nodes as f64
    }
}

/// What it takes to have so many nodes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Scale {
    pub(crate) nodes: usize,
    pub(crate) settled: Settled,
    pub(crate) edits: Edits,
    pub(crate) restart: Restart,
}

impl Scale {
    /// So much for each thousand nodes.
    pub(crate) fn per_thousand(&self, amount: f64) -> f64 {
        amount * 1000.0 / self.nodes as f64
    }
}

/// Nodes nobody asks anything of.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Settled {
    pub(crate) minutes: f64,
    pub(crate) writes: u64,
    pub(crate) reads: u64,
    pub(crate) cpu_s: f64,
    pub(crate) resident_bytes: u64,
    pub(crate) sidecar_requests: u64,
    pub(crate) sidecar_connections: u64,
}

impl Settled {
    /// So much in each minute.
    pub(crate) fn each_minute(&self, amount: f64) -> f64 {
        amount / self.minutes
    }
}

/// From an edit of one node, among many that are settled, to the first write for it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Edits {
    pub(crate) count: usize,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) longest_ms: f64,
}

/// From the start of the operator to its first write for nodes that were edited while it was down.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Restart {
    pub(crate) edited: usize,
    pub(crate) first_s: f64,
    pub(crate) last_s: f64,
    /// What it had resident once it had looked at all nodes.
    pub(crate) resident_bytes: u64,
}

/// Nodes beside one whose sidecar takes requests and answers none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Hanging {
    pub(crate) nodes: usize,
    /// Seconds until all were Running and done, with no such node.
    pub(crate) alone_s: f64,
    /// The same, with one that was there first.
    pub(crate) beside_s: f64,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::tally::Kind;

    pub(crate) fn converged(writes: u64, deletions: u64) -> Converged {
        let kind = |verb: &str, resource: &str, count| Kind {
            verb: verb.to_owned(),
            resource: resource.to_owned(),
            writes: true,
            count,
            refused: 0,
        };
        Converged {
            nodes: 1000,
            running_s: Some(40.0),
            done_s: 50.0,
            cpu_s: 9.0,
            resident_bytes: 30_000_000,
            calls: Tally {
                kinds: vec![
                    kind("patch", "seinodes/status", writes - deletions),
                    kind("delete", "pods", deletions),
                ],
            },
            sidecar_requests: 20_000,
            sidecar_connections: 2000,
        }
    }

    pub(crate) fn scale(nodes: usize) -> Scale {
        let times = nodes as f64 / 1000.0;
        Scale {
            nodes,
            settled: Settled {
                minutes: 10.0,
                writes: 0,
                reads: 0,
                cpu_s: 5.0 * times,
                resident_bytes: 25_000 * nodes as u64,
                sidecar_requests: 10 * nodes as u64,
                sidecar_connections: nodes as u64,
            },
            edits: Edits {
                count: 200,
                p50_ms: 10.0,
                p99_ms: 100.0,
                longest_ms: 200.0,
            },
            restart: Restart {
                edited: 5,
                first_s: times,
                last_s: times,
                resident_bytes: 25_000 * nodes as u64,
            },
        }
    }

    /// A run that keeps every promise.
    pub(crate) fn results() -> Results {
        Results {
            run: Run {
                quick: false,
                rounds: 1,
                seconds: None,
                day: "2026-11-16".to_owned(),
                processor: "a processor".to_owned(),
                processors: 2,
                load: [0.1, 1.0],
                versions: vec!["keelson-operator 1".to_owned()],
            },
            hanging: Hanging {
                nodes: 100,
                alone_s: 10.0,
                beside_s: 10.0,
            },
            created: converged(9000, 0),
            edited: Converged {
                running_s: None,
                ..converged(5000, 1000)
            },
            added: None,
            scales: vec![scale(1000), scale(10_000)],
        }
    }
}
