//! What the numbers mean: every promise, kept or missed, in a sentence with the number.

use crate::cases::Column;
use crate::results::{Results, Row};
use keelson_bench::page::megabytes;
use keelson_bench::verdict::{Verdict, aim, promise};

/// The most a request may cost beside raw hyper, before what the rounds differ by.
const RAW_HYPER: f64 = 1.15;
/// What is aimed for beside nginx.
const NGINX: f64 = 1.25;
/// How much less than kube-rbac-proxy.
const REFERENCE: f64 = 5.0;
const START_MS: f64 = 20.0;
const LOADED_MB: f64 = 12.0;
const IDLE_MB: f64 = 6.0;
const FILE_MB: f64 = 8.0;

/// Every verdict the numbers allow; what was not measured has none.
pub(crate) fn verdicts(results: &Results) -> Vec<Verdict> {
    let rows = results.steady.iter();
    rows.flat_map(row_verdicts)
        .chain(footprint_verdicts(results))
        .collect()
}

fn row_verdicts(row: &Row) -> Vec<Verdict> {
    let cpu = |column| Results::cell(row, column).map(|cell| &cell.cpu);
    let title = &row.title;
    let Some(ours) = cpu(Column::Ours) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    if let Some(raw) = cpu(Column::RawHyper) {
        let spread = ours.spread.max(raw.spread);
        let most = RAW_HYPER * raw.median + spread;
        let said = format!(
            "{title}: {:.1} µs, {:.2} × raw hyper's {:.1}, where at most {RAW_HYPER} × and the spread of {spread:.1} are allowed ({most:.1})",
            ours.median,
            ours.median / raw.median,
            raw.median
        );
        found.push(promise(ours.median <= most, said));
    }
    if let Some(reference) = cpu(Column::ReferenceOne) {
        let times = reference.median / ours.median;
        let said = format!(
            "{title}: {times:.1} × less than kube-rbac-proxy's {:.1} µs on one thread, where {REFERENCE} × is promised",
            reference.median
        );
        found.push(promise(times >= REFERENCE, said));
    }
    if let Some(nginx) = cpu(Column::Nginx) {
        let times = ours.median / nginx.median;
        let said = format!(
            "{title}: {times:.2} × nginx's {:.1} µs, where {NGINX} × is aimed for and then 1",
            nginx.median
        );
        found.push(aim(times <= NGINX, said));
    }
    found
}

fn footprint_verdicts(results: &Results) -> Vec<Verdict> {
    let Some(ours) = results.footprint(Column::Ours) else {
        return Vec::new();
    };
    let beside = |what: fn(&crate::results::Footprint) -> f64| match results
        .footprint(Column::ReferenceOne)
    {
        Some(other) => format!(" (kube-rbac-proxy: {:.1})", what(other)),
        None => String::new(),
    };
    let (start, loaded, idle, file) = (
        ours.start_ms.median,
        megabytes(ours.loaded_bytes),
        megabytes(ours.idle_bytes),
        megabytes(ours.file_bytes),
    );
    vec![
        promise(
            start <= START_MS,
            format!(
                "from start to listening {start:.1} ms{}, where {START_MS} are allowed",
                beside(|it| it.start_ms.median)
            ),
        ),
        promise(
            loaded <= LOADED_MB,
            format!(
                "{loaded:.1} MB resident with 64 connections after {} tokens{}, where {LOADED_MB} are allowed",
                ours.tokens,
                beside(|it| megabytes(it.loaded_bytes))
            ),
        ),
        aim(
            idle <= IDLE_MB,
            format!(
                "{idle:.1} MB resident when idle{}, where {IDLE_MB} are aimed for",
                beside(|it| megabytes(it.idle_bytes))
            ),
        ),
        promise(
            file <= FILE_MB,
            format!(
                "a stripped program of {file:.1} MB{}, where {FILE_MB} are allowed",
                beside(|it| megabytes(it.file_bytes))
            ),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::{cell, row};
    use keelson_bench::verdict::Judgement;

    fn judged(ours: &[f64], others: &[(Column, &[f64])]) -> Vec<Judgement> {
        let mut cells = vec![cell(Column::Ours, ours)];
        cells.extend(others.iter().map(|(column, rounds)| cell(*column, rounds)));
        row_verdicts(&row(cells))
            .iter()
            .map(|verdict| verdict.judgement)
            .collect()
    }

    #[test]
    fn raw_hyper_and_fifteen_hundredths_are_allowed_and_no_more() {
        let raw: (Column, &[f64]) = (Column::RawHyper, &[20.0, 20.0, 20.0]);
        assert_eq!(judged(&[22.9, 22.9, 22.9], &[raw]), [Judgement::Met]);
        assert_eq!(judged(&[23.1, 23.1, 23.1], &[raw]), [Judgement::Missed]);
    }

    #[test]
    fn rounds_that_differ_widen_what_is_allowed() {
        let raw: (Column, &[f64]) = (Column::RawHyper, &[20.0, 20.0, 20.0]);
        assert_eq!(judged(&[23.1, 22.6, 23.6], &[raw]), [Judgement::Met]);
    }

    #[test]
    fn five_times_less_than_the_reference_is_promised_and_nginx_only_aimed_for() {
        let others: [(Column, &[f64]); 2] =
            [(Column::ReferenceOne, &[99.0]), (Column::Nginx, &[10.0])];
        assert_eq!(
            judged(&[20.0], &others),
            [Judgement::Missed, Judgement::AimMissed]
        );
        assert_eq!(
            judged(&[12.5], &others),
            [Judgement::Met, Judgement::AimMet]
        );
    }

    #[test]
    fn what_was_not_measured_has_no_verdict() {
        assert_eq!(judged(&[20.0], &[]), []);
    }
}
