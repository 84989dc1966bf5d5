//! What the numbers mean: every promise, kept or missed, in a sentence with the number.

use crate::results::{Converged, Hanging, Results, Scale};
use keelson_bench::page::megabytes;
use keelson_bench::verdict::{Verdict, promise};
use keelson_testbed::faults::Verb;

/// A thousand nodes are done within so many seconds.
const DONE_S: f64 = 60.0;
const WRITES_CREATED: f64 = 10.0;
const WRITES_EDITED: f64 = 5.0;
/// A read for every hundredth node is no polling; one that lost a race may look.
const READS: f64 = 0.01;
/// The original needs 3.1 seconds of processor time a minute for a thousand nodes, at best.
const SETTLED_CPU_S: f64 = 3.1 / 5.0;
/// A handshake on a connection of its own, every ten minutes, beside a request every minute.
const NEW_CONNECTIONS: f64 = 0.2;
const MEMORY_MB: f64 = 30.0;
const EDIT_MS: f64 = 1000.0;
const RESTART_S: f64 = 15.0;
/// Two runs of the same differ by so much on a machine of two processors.
const NOISE: f64 = 1.25;
/// Linear, as far as a measurement can tell.
const LINEAR: f64 = 1.1;

/// Every verdict the numbers allow; what was not measured has none.
pub(crate) fn verdicts(results: &Results) -> Vec<Verdict> {
    let mut all = vec![
        done_verdict(&results.created),
        writes_verdict("created", &results.created, WRITES_CREATED),
        writes_verdict("given another image", &results.edited, WRITES_EDITED),
        deletions_verdict(&results.edited),
        reads_verdict(&results.created),
        hanging_verdict(&results.hanging),
    ];
    all.extend(results.scales.iter().flat_map(settled_verdicts));
    if let Some(largest) = results.scales.last() {
        all.extend(scale_verdicts(largest));
    }
    if let [fewer, .., more] = results.scales.as_slice() {
        all.extend(growth_verdicts(fewer, more));
    }
    all
}

fn done_verdict(it: &Converged) -> Verdict {
    let allowed = DONE_S * it.nodes as f64 / 1000.0;
    let said = format!(
        "{} nodes are done after {:.1} s, where {allowed:.0} are allowed",
        it.nodes, it.done_s
    );
    promise(it.done_s <= allowed, said)
}

fn writes_verdict(how: &str, it: &Converged, most: f64) -> Verdict {
    // The binding lets the proxies of all nodes ask who calls; another node does not write it again.
    let once = it.calls.count(Verb::Create, "clusterrolebindings");
    let writes = it.each(it.calls.writes() - once);
    let beside = match once {
        0 => String::new(),
        once => format!(", and {once} for all of them"),
    };
    let said = format!(
        "{writes:.2} writes to the API server for each node that is {how}{beside}, where {most} are allowed"
    );
    promise(writes <= most && once <= 1, said)
}

fn deletions_verdict(it: &Converged) -> Verdict {
    let deletions = it.calls.count(Verb::Delete, "pods");
    let said = format!(
        "{deletions} pods deleted for another image of {} nodes, where it is one for each",
        it.nodes
    );
    promise(deletions == it.nodes as u64, said)
}

fn reads_verdict(it: &Converged) -> Verdict {
    let reads = it.each(it.calls.requests() - it.calls.writes());
    let said = format!(
        "{reads:.3} reads for each node that is created, where the API server is not polled"
    );
    promise(reads <= READS, said)
}

fn hanging_verdict(it: &Hanging) -> Verdict {
    let said = format!(
        "{} nodes are Running and done after {:.1} s beside a sidecar that hangs, after {:.1} s without it",
        it.nodes, it.beside_s, it.alone_s
    );
    promise(it.beside_s <= it.alone_s * NOISE + 1.0, said)
}

fn settled_verdicts(it: &Scale) -> [Verdict; 3] {
    let (nodes, settled) = (it.nodes, &it.settled);
    let cpu = it.per_thousand(settled.each_minute(settled.cpu_s));
    let new = settled.sidecar_connections as f64 / (settled.sidecar_requests as f64).max(1.0);
    [
        promise(
            settled.writes == 0,
            format!(
                "{nodes} nodes that are settled: {} writes in {:.1} minutes, where there is none",
                settled.writes, settled.minutes
            ),
        ),
        promise(
            cpu <= SETTLED_CPU_S,
            format!(
                "{nodes} nodes that are settled: {cpu:.2} s of processor time a minute for each thousand, where {SETTLED_CPU_S} are allowed"
            ),
        ),
        promise(
            new <= NEW_CONNECTIONS,
            format!(
                "{nodes} nodes that are settled: a new connection for {:.0} % of the requests to sidecars, where connections are kept",
                new * 100.0
            ),
        ),
    ]
}

fn scale_verdicts(it: &Scale) -> [Verdict; 3] {
    let nodes = it.nodes;
    let memory = it.per_thousand(megabytes(it.settled.resident_bytes));
    let (edit, restart) = (it.edits.p99_ms, it.restart.last_s);
    [
        promise(
            memory <= MEMORY_MB,
            format!(
                "{nodes} nodes: {memory:.1} MB resident for each thousand, where {MEMORY_MB} are allowed"
            ),
        ),
        promise(
            edit <= EDIT_MS,
            format!(
                "{nodes} nodes: {edit:.0} ms from an edit to its first effect (p99), where {EDIT_MS} are allowed"
            ),
        ),
        promise(
            restart <= RESTART_S,
            format!(
                "{nodes} nodes: {restart:.1} s from a restart to the first effect of the last of {} edits, where {RESTART_S} are allowed",
                it.restart.edited
            ),
        ),
    ]
}

/// What grows with the nodes grows no faster than they do.
fn growth_verdicts(fewer: &Scale, more: &Scale) -> Vec<Verdict> {
    let times = more.nodes as f64 / fewer.nodes as f64;
    let cpu = |it: &Scale| it.settled.each_minute(it.settled.cpu_s);
    let rows = [
        (
            "memory",
            megabytes(fewer.settled.resident_bytes),
            megabytes(more.settled.resident_bytes),
        ),
        ("processor time when settled", cpu(fewer), cpu(more)),
        (
            "time of a restart",
            fewer.restart.last_s,
            more.restart.last_s,
        ),
    ];
    let verdict = |(what, few, many): (&str, f64, f64)| {
        let grown = many / few;
        let said = format!(
            "{times:.0} × the nodes take {grown:.1} × the {what}, where no more than in proportion is allowed"
        );
        promise(grown <= times * LINEAR, said)
    };
    rows.into_iter().map(verdict).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::{converged, results};
    use crate::tally::Kind;
    use keelson_bench::verdict::Judgement;

    /// The sentences of promises that are missed.
    fn missed(results: &Results) -> Vec<String> {
        let all = verdicts(results).into_iter();
        let missed = all.filter(|it| it.judgement == Judgement::Missed);
        missed.map(|it| it.to_string()).collect()
    }

    #[track_caller]
    fn only(results: &Results, expected: &[&str]) {
        let missed = missed(results);
        assert_eq!(missed.len(), expected.len(), "{missed:#?}");
        for (said, expected) in missed.iter().zip(expected) {
            assert!(said.contains(expected), "{expected:?} is not in {said:?}");
        }
    }

    #[test]
    fn a_run_within_all_limits_keeps_every_promise() {
        only(&results(), &[]);
    }

    #[test]
    fn late_nodes_and_writes_beyond_the_limit_are_told() {
        let mut results = results();
        results.created = converged(10_001, 0);
        results.created.done_s = 60.1;
        results.edited = converged(5001, 1000);
        only(
            &results,
            &["done after 60.1 s", "10.00 writes", "5.00 writes"],
        );
    }

    #[test]
    fn a_binding_for_all_nodes_is_counted_apart_and_a_second_one_is_told() {
        let with = |count| {
            let mut results = results();
            results.created.calls.kinds.push(Kind {
                verb: Verb::Create.to_string(),
                resource: "clusterrolebindings".to_owned(),
                writes: true,
                count,
                refused: 0,
            });
            results
        };
        only(&with(1), &[]);
        only(&with(2), &["and 2 for all of them"]);
    }

    #[test]
    fn a_second_deletion_of_one_pod_is_told_and_so_is_one_that_did_not_happen() {
        for deletions in [999, 1001] {
            let mut results = results();
            results.edited = converged(5000, deletions);
            only(&results, &["pods deleted"]);
        }
    }

    #[test]
    fn polling_is_told() {
        let mut results = results();
        results.created.calls.kinds[0].writes = false;
        only(&results, &["reads for each node"]);
    }

    #[test]
    fn a_delay_by_a_sidecar_that_hangs_is_told() {
        let mut results = results();
        results.hanging.beside_s = 13.6;
        only(&results, &["beside a sidecar that hangs"]);
    }

    #[test]
    fn settled_nodes_that_write_work_or_connect_are_told_at_every_size() {
        for place in [0, 1] {
            let mut results = results();
            let settled = &mut results.scales[place].settled;
            settled.writes = 1;
            settled.sidecar_connections = settled.sidecar_requests;
            only(&results, &["1 writes", "100 % of the requests"]);
        }
        let mut results = results();
        for scale in &mut results.scales {
            scale.settled.cpu_s *= 1.3;
        }
        only(&results, &["0.65 s", "0.65 s"]);
    }

    #[test]
    fn memory_edits_and_restarts_are_judged_at_the_largest_size() {
        let mut results = results();
        for scale in &mut results.scales {
            scale.settled.resident_bytes = 30_100 * scale.nodes as u64;
            scale.edits.p99_ms = 1001.0;
        }
        results.scales[0].restart.last_s = 15.1;
        results.scales[1].restart.last_s = 15.1;
        only(&results, &["30.1 MB", "1001 ms", "15.1 s from a restart"]);
    }

    #[test]
    fn what_grows_faster_than_the_nodes_is_told() {
        let mut results = results();
        let fewer = &mut results.scales[0];
        fewer.settled.resident_bytes /= 2;
        fewer.settled.cpu_s /= 2.0;
        fewer.restart.last_s /= 2.0;
        only(
            &results,
            &[
                "20.0 × the memory",
                "20.0 × the processor",
                "20.0 × the time",
            ],
        );
    }
}
