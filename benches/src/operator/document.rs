//! The measured part of `docs/operator-performance.md`: tables and verdicts. What stands around them is
//! written by hand.

use crate::results::{Converged, Results, Scale};
use crate::verdict::verdicts;
use keelson_bench::page::{self, header, line, megabytes};
use std::fmt::Write;

/// The document with what stands between its marks replaced.
pub(crate) fn renewed(document: &str, results: &Results) -> anyhow::Result<String> {
    page::renewed(document, &measured(results))
}

fn measured(results: &Results) -> String {
    let mut out = results.run.introduction();
    converged(&mut out, results);
    calls(&mut out, results);
    scales(&mut out, results);
    hanging(&mut out, results);
    out.push_str("## Promises\n\n");
    for verdict in verdicts(results) {
        let _ = writeln!(out, "- {verdict}");
    }
    out.push('\n');
    out
}

fn converged(out: &mut String, results: &Results) {
    out.push_str("## Nodes that are made, and given another image\n\nAll at once. The lines of the original are of the same kind of machine, measured before.\n\n");
    header(
        out,
        "",
        [
            "Running",
            "done",
            "processor time",
            "resident",
            "requests for each",
            "writes for each",
            "calls of its sidecar",
        ],
    );
    let (created, edited) = (&results.created, &results.edited);
    row(out, &format!("{} nodes made", created.nodes), created);
    original(
        out,
        "the original, 1000 made",
        ["69–83 s", "118–135 s", "25–28 s", "160–169 MB", "16", "14"],
    );
    row(
        out,
        &format!("{} given another image", edited.nodes),
        edited,
    );
    original(
        out,
        "the original, 1000 given another image",
        ["–", "133–148 s", "–", "–", "12", "8"],
    );
    if let Some(added) = &results.added {
        row(out, &format!("{} made beside them", added.nodes), added);
    }
    out.push('\n');
}

fn row(out: &mut String, title: &str, it: &Converged) {
    let cells = [
        page::or_dash(it.running_s.map(|seconds| format!("{seconds:.1} s"))),
        format!("{:.1} s", it.done_s),
        format!("{:.1} s", it.cpu_s),
        format!("{:.1} MB", megabytes(it.resident_bytes)),
        format!("{:.2}", it.each(it.calls.requests())),
        format!("{:.2}", it.each(it.calls.writes())),
        format!("{:.1}", it.each(it.sidecar_requests)),
    ];
    line(out, title, cells);
}

fn original(out: &mut String, title: &str, cells: [&str; 6]) {
    let [running, done, cpu, resident, requests, writes] = cells.map(str::to_owned);
    let cells = [
        running,
        done,
        cpu,
        resident,
        requests,
        writes,
        "–".to_owned(),
    ];
    line(out, title, cells);
}

fn calls(out: &mut String, results: &Results) {
    out.push_str("Requests to the API server for each node, by verb and resource; in brackets how many were refused, because someone else was faster.\n\n");
    header(out, "", ["made", "another image"]);
    let (created, edited) = (&results.created, &results.edited);
    let kinds = created.calls.kinds.iter().chain(&edited.calls.kinds);
    let mut kinds: Vec<(&str, &str)> = kinds
        .map(|it| (it.resource.as_str(), it.verb.as_str()))
        .collect();
    kinds.sort_unstable();
    kinds.dedup();
    for (resource, verb) in kinds {
        let cell = |of: &Converged| {
            let mut kinds = of.calls.kinds.iter();
            let found =
                kinds.find(|it| (it.resource.as_str(), it.verb.as_str()) == (resource, verb));
            page::or_dash(found.map(|it| match it.refused {
                0 => format!("{:.3}", of.each(it.count)),
                refused => format!("{:.3} ({refused})", of.each(it.count)),
            }))
        };
        line(
            out,
            &format!("{verb} {resource}"),
            [cell(created), cell(edited)],
        );
    }
    out.push('\n');
}

fn scales(out: &mut String, results: &Results) {
    out.push_str("## Nodes that are settled\n\nA minute of them; the time from an edit of one to the first write for it; the time from the start of the operator to its first write for nodes that were edited while it was down. The original makes 2000 health requests a minute for a thousand nodes, each on a new connection, and takes 3.1–3.5 s of processor time for it.\n\n");
    header(
        out,
        "nodes",
        [
            "writes",
            "reads",
            "processor time a minute",
            "calls of sidecars a minute",
            "new connections a minute",
            "resident",
            "for each thousand",
            "edit p50",
            "edit p99",
            "edit longest",
            "restart, first",
            "restart, last",
            "resident after it",
        ],
    );
    for it in &results.scales {
        line(out, &it.nodes.to_string(), scale(it));
    }
    out.push('\n');
}

fn scale(it: &Scale) -> [String; 13] {
    let (settled, edits, restart) = (&it.settled, &it.edits, &it.restart);
    let minute = |count: u64| format!("{:.0}", settled.each_minute(count as f64));
    let resident = megabytes(settled.resident_bytes);
    [
        format!("{} in {:.1} min", settled.writes, settled.minutes),
        settled.reads.to_string(),
        format!("{:.2} s", settled.each_minute(settled.cpu_s)),
        minute(settled.sidecar_requests),
        minute(settled.sidecar_connections),
        format!("{resident:.1} MB"),
        format!("{:.1} MB", it.per_thousand(resident)),
        format!("{:.0} ms", edits.p50_ms),
        format!("{:.0} ms", edits.p99_ms),
        format!("{:.0} ms", edits.longest_ms),
        format!("{:.1} s", restart.first_s),
        format!("{:.1} s", restart.last_s),
        format!("{:.1} MB", megabytes(restart.resident_bytes)),
    ]
}

fn hanging(out: &mut String, results: &Results) {
    let it = &results.hanging;
    let _ = write!(
        out,
        "## Beside a sidecar that hangs\n\n{} nodes are Running and done after {:.1} s; beside one that was made first and whose sidecar takes requests and answers none, after {:.1} s. Of the original's none was Running after 300 s.\n\n",
        it.nodes, it.alone_s, it.beside_s
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::results;
    use keelson_bench::checkout::{file, read, write};

    #[test]
    fn a_page_has_ours_beside_the_original_and_every_kind_of_call() {
        let mut results = results();
        results.created.calls.kinds[0].refused = 3;
        let text = measured(&results);
        for expected in [
            "| 1000 nodes made | 40.0 s | 50.0 s | 9.0 s | 30.0 MB | 9.00 | 9.00 | 20.0 |",
            "| the original, 1000 made | 69–83 s | 118–135 s | 25–28 s | 160–169 MB | 16 | 14 | – |",
            "| patch seinodes/status | 9.000 (3) | 4.000 |",
            "| delete pods | 0.000 | 1.000 |",
            "| 10000 | 0 in 10.0 min | 0 | 5.00 s | 10000 | 1000 | 250.0 MB | 25.0 MB | 10 ms | 100 ms | 200 ms | 10.0 s | 10.0 s | 250.0 MB |",
            "- met: 1000 nodes are done after 50.0 s, where 60 are allowed",
        ] {
            assert!(text.contains(expected), "{expected:?} is missing in {text}");
        }
    }

    #[test]
    fn nodes_that_were_added_have_a_line_of_their_own() {
        let mut results = results();
        assert!(!measured(&results).contains("made beside them"));
        results.added = Some(results.created.clone());
        assert!(measured(&results).contains("| 1000 made beside them | 40.0 s |"));
    }

    #[test]
    fn the_committed_document_is_what_the_committed_results_say() {
        let document = read(&file(crate::DOCUMENT)).expect("a file");
        // Before the first run there are no results, and the page has none.
        let results = file(crate::RESULTS);
        let renewed = match results.exists() {
            false => page::renewed(&document, ""),
            true => {
                let results = read(&results).expect("a file");
                let results: Results =
                    serde_json::from_str(&results).expect("results as they are kept");
                renewed(&document, &results)
            }
        };
        let renewed = renewed.expect("a document with marks");
        if std::env::var_os("KEELSON_WRITE_DOCS").is_some() {
            return write(&file(crate::DOCUMENT), &renewed).expect("a written page");
        }
        assert!(
            renewed == document,
            "docs/operator-performance.md is not what benches/results/operator.json says: KEELSON_WRITE_DOCS=1 writes it, `make bench-operator` measures anew"
        );
    }
}
