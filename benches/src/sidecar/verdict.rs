//! What the numbers mean: every promise, kept or missed, in a sentence with the number.

use crate::results::{Column, Footprint, Kept, Restore, Results};
use keelson_bench::page::megabytes;
use keelson_bench::verdict::{Verdict, promise};

/// How fast it is at least, beside each pipeline.
const BESIDE: [(Column, f64); 3] = [
    (Column::Gzip, 1.0),
    (Column::Pigz, 0.9),
    (Column::Zstd, 0.9),
];
/// The most that may be resident, whatever the archive's size.
const PEAK_MB: f64 = 64.0;
const START_MS: f64 = 30.0;
const IDLE_MB: f64 = 12.0;

/// Every verdict the numbers allow; what was not measured has none.
pub(crate) fn verdicts(results: &Results) -> Vec<Verdict> {
    let rows = results.restore.iter();
    rows.flat_map(row_verdicts)
        .chain([kept_verdict(&results.kept)])
        .chain(footprint_verdicts(&results.footprint))
        .collect()
}

fn row_verdicts(row: &Restore) -> Vec<Verdict> {
    let title = row.title();
    let Some(ours) = row.cell(Column::Ours) else {
        return Vec::new();
    };
    let seconds = ours.wall_s.median;
    let beside = BESIDE.iter().filter_map(|(column, least)| {
        let other = row.cell(*column)?.wall_s.median;
        let times = other / seconds;
        let said = format!(
            "{title}: {times:.2} × as fast as curl, {} and tar ({seconds:.2} s, {other:.2} s), where at least {least} × is promised",
            column.title()
        );
        Some(promise(times >= *least, said))
    });
    let mut found: Vec<Verdict> = beside.collect();
    let peak = megabytes(ours.peak_bytes);
    let said =
        format!("{title}: {peak:.1} MB resident at most, where less than {PEAK_MB} are allowed");
    found.push(promise(peak < PEAK_MB, said));
    found
}

fn kept_verdict(kept: &Kept) -> Verdict {
    let said = format!(
        "of {} tasks answered with 201, {} before a kill -9 and the others after it, {} are lost, where none may be",
        kept.answered, kept.known_at_kill, kept.lost
    );
    promise(kept.lost == 0, said)
}

fn footprint_verdicts(it: &Footprint) -> [Verdict; 2] {
    let (start, idle) = (it.start_ms.median, megabytes(it.idle_bytes));
    [
        promise(
            start <= START_MS,
            format!(
                "from start to serving {start:.1} ms with {} stored tasks, where {START_MS} are allowed",
                it.stored
            ),
        ),
        promise(
            idle <= IDLE_MB,
            format!("{idle:.1} MB resident when idle, where {IDLE_MB} are allowed"),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archives::Form;
    use crate::results::tests::{cell, results, row};
    use keelson_bench::verdict::Judgement::{self, Met, Missed};

    fn judged(form: Form, ours: f64, peak: u64, others: &[(Column, f64)]) -> Vec<Judgement> {
        let mut cells = vec![cell(Column::Ours, &[ours], peak)];
        cells.extend(others.iter().map(|(it, seconds)| cell(*it, &[*seconds], 0)));
        let verdicts = row_verdicts(&row(form, cells));
        verdicts.iter().map(|it| it.judgement).collect()
    }

    #[test]
    fn beside_gzip_nothing_is_allowed_and_beside_pigz_a_tenth() {
        let beside = |gzip, pigz| {
            let others = [(Column::Gzip, gzip), (Column::Pigz, pigz)];
            judged(Form::Gzip, 10.0, 0, &others)
        };
        assert_eq!(beside(10.0, 9.0), [Met, Met, Met]);
        assert_eq!(beside(9.9, 8.9), [Missed, Missed, Met]);
    }

    #[test]
    fn beside_zstd_a_tenth_is_allowed_and_memory_has_a_limit() {
        let beside = |peak, zstd| judged(Form::Zstandard, 10.0, peak, &[(Column::Zstd, zstd)]);
        assert_eq!(beside(63_900_000, 9.0), [Met, Met]);
        assert_eq!(beside(64_000_000, 8.9), [Missed, Missed]);
    }

    #[test]
    fn a_lost_task_a_late_start_and_a_large_idle_sidecar_are_each_told() {
        let mut results = results(Vec::new());
        let judged = |results: &Results| -> Vec<Judgement> {
            verdicts(results).iter().map(|it| it.judgement).collect()
        };
        assert_eq!(judged(&results), [Met, Met, Met]);
        results.kept.lost = 1;
        results.footprint.start_ms.median = 30.1;
        results.footprint.idle_bytes = 12_100_000;
        assert_eq!(judged(&results), [Missed, Missed, Missed]);
    }
}
