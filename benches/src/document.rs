//! The measured part of `docs/proxy-performance.md`: tables and verdicts, between two marks. What
//! stands around them is written by hand.

use crate::cases::Column;
use crate::results::{Results, Row};
use crate::verdict::verdicts;
use keelson_bench::page::{self, header, line, megabytes, or_dash};
use std::fmt::Write;

/// The document with what stands between its marks replaced.
pub(crate) fn renewed(document: &str, results: &Results) -> anyhow::Result<String> {
    page::renewed(document, &measured(results))
}

fn measured(results: &Results) -> String {
    let mut out = results.run.introduction();
    steady(&mut out, results);
    storm(&mut out, results);
    crowd(&mut out, results);
    expiry(&mut out, results);
    footprint(&mut out, results);
    out.push_str("## Promises\n\n");
    for verdict in verdicts(results) {
        let _ = writeln!(out, "- {verdict}");
    }
    out.push('\n');
    out
}

fn steady(out: &mut String, results: &Results) {
    out.push_str("## Processor time for one request\n\nMicroseconds, the median of all rounds ± the spread (first to third quartile).\n\n");
    header(out, "", Column::ALL.map(Column::title));
    for row in &results.steady {
        let cells = Column::ALL.map(|column| cpu(row, column));
        line(out, &row.title, cells);
    }
    out.push_str("\n![Processor time for one request](proxy-performance.svg)\n\n");
    out.push_str("Requests in a second, for the same runs: the tool and the upstream share a processor, so this is no measure of a proxy alone.\n\n");
    header(out, "", Column::ALL.map(Column::title));
    for row in &results.steady {
        let rate =
            |column| Results::cell(row, column).map(|cell| format!("{:.0}", cell.per_second));
        line(
            out,
            &row.title,
            Column::ALL.map(|column| or_dash(rate(column))),
        );
    }
    out.push('\n');
    let void = results.steady.iter().flat_map(|row| {
        let of = |cell: &crate::results::Cell| {
            let column = cell.column.title();
            let say = |why: &String| format!("- void: {}, {column}: {why}\n", row.title);
            cell.void.iter().map(say).collect::<String>()
        };
        row.cells.iter().map(of)
    });
    let void: String = void.collect();
    if !void.is_empty() {
        let _ = writeln!(out, "{void}");
    }
}

fn cpu(row: &Row, column: Column) -> String {
    let cell = Results::cell(row, column);
    or_dash(cell.map(|cell| format!("{:.1} ± {:.1}", cell.cpu.median, cell.cpu.spread)))
}

fn storm(out: &mut String, results: &Results) {
    if results.storm.is_empty() {
        return;
    }
    out.push_str("## Many new tokens at once\n\nEach on a connection of its own, none seen before; reviews are calls to the API server.\n\n");
    header(
        out,
        "",
        [
            "tokens",
            "admitted",
            "others",
            "reviews",
            "all answered after",
            "p99",
            "processor",
        ],
    );
    for storm in &results.storm {
        let others = match storm.others.is_empty() {
            true => "none".to_owned(),
            false => storm.others.join(", "),
        };
        let cells = [
            storm.tokens.to_string(),
            storm.admitted.to_string(),
            others,
            storm.reviews.to_string(),
            format!("{:.2} s", storm.seconds),
            format!("{:.0} ms", storm.p99_ms),
            format!("{:.0} ms", storm.cpu_ms),
        ];
        line(out, storm.column.title(), cells);
    }
    out.push('\n');
}

fn crowd(out: &mut String, results: &Results) {
    if results.crowd.is_empty() {
        return;
    }
    out.push_str("## One new token, many callers\n\n");
    header(out, "", ["callers", "admitted", "reviews", "slowest"]);
    for crowd in &results.crowd {
        let cells = [
            crowd.callers.to_string(),
            crowd.admitted.to_string(),
            crowd.reviews.to_string(),
            format!("{:.0} ms", crowd.slowest_ms),
        ];
        line(out, crowd.column.title(), cells);
    }
    out.push('\n');
}

fn expiry(out: &mut String, results: &Results) {
    if results.expiry.is_empty() {
        return;
    }
    out.push_str("## A hot token at the end of its answer's life\n\nTwo minutes for both, as they are by default; both measured at the same time.\n\n");
    header(
        out,
        "",
        [
            "over",
            "callers",
            "requests",
            "refused",
            "TokenReviews",
            "SubjectAccessReviews",
            "p99",
            "slowest",
        ],
    );
    for expiry in &results.expiry {
        let cells = [
            format!("{} s", expiry.seconds),
            expiry.callers.to_string(),
            expiry.requests.to_string(),
            expiry.refused.to_string(),
            expiry.token_reviews.to_string(),
            expiry.access_reviews.to_string(),
            format!("{:.1} ms", expiry.p99_ms),
            format!("{:.1} ms", expiry.slowest_ms),
        ];
        line(out, expiry.column.title(), cells);
    }
    out.push('\n');
}

fn footprint(out: &mut String, results: &Results) {
    if results.footprint.is_empty() {
        return;
    }
    out.push_str("## What it takes to be there\n\n");
    header(
        out,
        "",
        [
            "start to listening",
            "idle",
            "64 connections",
            "tokens shown",
            "remembered",
            "program",
        ],
    );
    for it in &results.footprint {
        let cells = [
            format!("{:.1} ± {:.1} ms", it.start_ms.median, it.start_ms.spread),
            format!("{:.1} MB", megabytes(it.idle_bytes)),
            format!("{:.1} MB", megabytes(it.loaded_bytes)),
            it.tokens.to_string(),
            or_dash(it.remembered.clone()),
            format!("{:.1} MB", megabytes(it.file_bytes)),
        ];
        line(out, it.column.title(), cells);
    }
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::{cell, results};
    use crate::{chart, place};
    use std::fs;

    #[test]
    fn what_was_not_measured_is_a_dash_and_a_void_round_is_told() {
        let mut ours = cell(Column::Ours, &[20.0]);
        ours.void.push("7 answers were not 2xx".to_owned());
        let text = measured(&results(vec![ours]));
        assert!(
            text.contains("| – | – | – | 20.0 ± 0.0 | – | – |"),
            "{text}"
        );
        let void = "- void: HTTP/1.1, 16 connections, keelson-proxy: 7 answers were not 2xx";
        assert!(text.contains(void), "{text}");
        assert!(!text.contains("tokens"), "{text}");
    }

    #[test]
    fn the_committed_document_and_chart_are_what_the_committed_results_say() {
        let read = |file: std::path::PathBuf| {
            fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
        };
        let results: Results =
            serde_json::from_str(&read(place::results())).expect("results as they are kept");
        let document = read(place::document());
        let renewed = renewed(&document, &results).expect("a document with marks");
        assert!(
            renewed == document,
            "docs/proxy-performance.md is not what benches/results/proxy.json says: run `make bench-proxy`, or undo the edit"
        );
        assert!(
            chart::chart(&results) == read(place::chart()),
            "docs/proxy-performance.svg is not what benches/results/proxy.json says"
        );
    }
}
