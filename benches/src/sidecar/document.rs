//! The measured part of `docs/sidecar-performance.md`: tables and verdicts. What stands around them is
//! written by hand.

use crate::results::{Cell, Column, Latency, Restore, Results};
use crate::verdict::verdicts;
use keelson_bench::page::{self, header, line, megabytes, or_dash};
use keelson_bench::statistics::Summary;
use std::fmt::Write;

/// The document with what stands between its marks replaced.
pub(crate) fn renewed(document: &str, results: &Results) -> anyhow::Result<String> {
    page::renewed(document, &measured(results))
}

fn measured(results: &Results) -> String {
    let mut out = results.run.introduction();
    restore(&mut out, results);
    submitted(&mut out, results);
    footprint(&mut out, results);
    out.push_str("## Promises\n\n");
    for verdict in verdicts(results) {
        let _ = writeln!(out, "- {verdict}");
    }
    out.push('\n');
    out
}

fn restore(out: &mut String, results: &Results) {
    out.push_str("## snapshot-restore\n\nSeconds until the data is on disk, the median of all rounds ± the spread (first to third quartile).\n\n");
    let titles = Column::ALL.map(Column::title);
    let table = |what: fn(&Restore, &Cell) -> String| {
        let mut rows = String::new();
        header(&mut rows, "", titles);
        for row in &results.restore {
            let cells = Column::ALL.map(|it| or_dash(row.cell(it).map(|cell| what(row, cell))));
            line(&mut rows, &row.title(), cells);
        }
        rows.push('\n');
        rows
    };
    let wall = table(|_, cell| spread(&cell.wall_s));
    let rate =
        table(|row, cell| format!("{:.0}", megabytes(row.archive_bytes) / cell.wall_s.median));
    let cpu = table(|_, cell| spread(&cell.cpu_s));
    let peak = table(|_, cell| format!("{:.1}", megabytes(cell.peak_bytes)));
    let _ = write!(
        out,
        "{wall}Megabytes of archive in a second, for the same runs.\n\n{rate}Seconds of processor time, of all processes of a column.\n\n{cpu}Megabytes resident at most, in any round; of a pipeline, of its processes added up.\n\n{peak}"
    );
    for row in &results.restore {
        let _ = writeln!(
            out,
            "- {}: {:.0} MB of archive, {:.0} MB of files",
            row.title(),
            megabytes(row.archive_bytes),
            megabytes(row.plain_bytes)
        );
    }
    out.push('\n');
}

fn spread(it: &Summary) -> String {
    format!("{:.2} ± {:.2}", it.median, it.spread)
}

fn submitted(out: &mut String, results: &Results) {
    let kept = &results.kept;
    let _ = write!(
        out,
        "## Tasks submitted\n\n{} tasks, a kill -9 after {} answers, and {:.0} ms from the start after it to the first answer. Milliseconds from a request to its 201, beside one small row made durable by SQLite alone.\n\n",
        kept.submitted, kept.known_at_kill, kept.restart_ms
    );
    header(
        out,
        "callers",
        [
            "p50",
            "SQLite p50",
            "×",
            "p99",
            "SQLite p99",
            "×",
            "submissions",
            "commits",
        ],
    );
    for it in &results.submitted {
        let (ours, sqlite): (&Latency, &Latency) = (&it.ours, &it.sqlite);
        let cells = [
            format!("{:.2}", ours.p50_ms),
            format!("{:.2}", sqlite.p50_ms),
            format!("{:.1}", ours.p50_ms / sqlite.p50_ms),
            format!("{:.2}", ours.p99_ms),
            format!("{:.2}", sqlite.p99_ms),
            format!("{:.1}", ours.p99_ms / sqlite.p99_ms),
            ours.count.to_string(),
            sqlite.count.to_string(),
        ];
        line(out, &it.callers.to_string(), cells);
    }
    out.push('\n');
}

fn footprint(out: &mut String, results: &Results) {
    let it = &results.footprint;
    out.push_str("## What it takes to be there\n\n");
    header(out, "tasks stored", ["start to serving", "idle", "program"]);
    let cells = [
        format!("{:.1} ± {:.1} ms", it.start_ms.median, it.start_ms.spread),
        format!("{:.1} MB", megabytes(it.idle_bytes)),
        format!("{:.1} MB", megabytes(it.file_bytes)),
    ];
    line(out, &it.stored.to_string(), cells);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archives::Form;
    use crate::results::tests::{cell, results, row};
    use keelson_bench::checkout::{file, read};

    #[test]
    fn a_row_tells_time_rate_and_memory_and_what_was_not_measured_is_a_dash() {
        let cells = vec![
            cell(Column::Ours, &[2.0, 2.0, 4.0], 31_000_000),
            cell(Column::Zstd, &[4.0], 9_000_000),
        ];
        let text = measured(&results(vec![row(Form::Zstandard, cells)]));
        for expected in [
            "| .tar.zst from S3 | 2.00 ± 1.00 | – | – | 4.00 ± 0.00 |",
            "| .tar.zst from S3 | 50 | – | – | 25 |",
            "| .tar.zst from S3 | 31.0 | – | – | 9.0 |",
            "| 8 | 3.00 | 2.00 | 1.5 | 6.00 | 4.00 | 1.5 | 10 | 10 |",
            "- met: .tar.zst from S3: 2.00 × as fast as curl, zstd and tar (2.00 s, 4.00 s)",
        ] {
            assert!(text.contains(expected), "{expected:?} is missing in {text}");
        }
    }

    #[test]
    fn a_quick_run_says_that_it_decides_nothing() {
        let mut results = results(Vec::new());
        assert!(!measured(&results).contains("decides nothing"));
        results.run.quick = true;
        assert!(measured(&results).contains("decides nothing"));
    }

    #[test]
    fn the_committed_document_is_what_the_committed_results_say() {
        let read = |path: &str| read(&file(path)).expect("a file");
        let results: Results =
            serde_json::from_str(&read(crate::RESULTS)).expect("results as they are kept");
        let document = read(crate::DOCUMENT);
        let renewed = renewed(&document, &results).expect("a document with marks");
        assert!(
            renewed == document,
            "docs/sidecar-performance.md is not what benches/results/sidecar.json says: run `make bench-sidecar`, or undo the edit"
        );
    }
}
