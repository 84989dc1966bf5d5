//! The chart: bars of processor time for one request, a group for each row.

use crate::cases::Column;
use crate::results::{Results, Row};
use std::fmt::Write;

const WIDTH: f64 = 900.0;
const LEFT: f64 = 250.0;
const RIGHT: f64 = 80.0;
const TOP: f64 = 70.0;
const BAR: f64 = 12.0;
const GAP: f64 = 14.0;

/// The rows as bars. What was not measured has no bar.
pub(crate) fn chart(results: &Results) -> String {
    let longest = results
        .steady
        .iter()
        .flat_map(|row| row.cells.iter().map(|cell| cell.cpu.median))
        .fold(1.0, f64::max);
    let mut bars = String::new();
    let mut y = TOP;
    for row in &results.steady {
        group(&mut bars, row, y, longest);
        y += BAR * row.cells.len() as f64 + GAP;
    }
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {y:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"10\" y=\"22\" font-size=\"15\" font-weight=\"bold\">Processor time for one request, in microseconds: less is better</text>\n"
    );
    legend(&mut out);
    out.push_str(&bars);
    out.push_str("</svg>\n");
    out
}

fn legend(out: &mut String) {
    let mut x = 10.0;
    for column in Column::ALL {
        let _ = writeln!(
            out,
            "<rect x=\"{x:.0}\" y=\"36\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{:.0}\" y=\"46\">{}</text>",
            colour(column),
            x + 17.0,
            column.title()
        );
        x += 40.0 + 6.5 * column.title().len() as f64;
    }
}

fn group(out: &mut String, row: &Row, top: f64, longest: f64) {
    let middle = top + BAR * row.cells.len() as f64 / 2.0 + 4.0;
    let _ = writeln!(
        out,
        "<text x=\"{:.0}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>",
        LEFT - 10.0,
        row.title
    );
    for (place, cell) in row.cells.iter().enumerate() {
        let y = top + BAR * place as f64;
        let width = (WIDTH - LEFT - RIGHT) * cell.cpu.median / longest;
        let _ = writeln!(
            out,
            "<rect x=\"{LEFT:.0}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.0}\" fill=\"{}\"/><text x=\"{:.1}\" y=\"{:.1}\">{:.1}</text>",
            BAR - 2.0,
            colour(cell.column),
            LEFT + width + 5.0,
            y + BAR - 3.0,
            cell.cpu.median
        );
    }
}

fn colour(column: Column) -> &'static str {
    match column {
        Column::Direct => "#c7c7c7",
        Column::Nginx => "#4c9a2a",
        Column::RawHyper => "#e8a33d",
        Column::Ours => "#1f5fa8",
        Column::ReferenceOne => "#b03a48",
        Column::ReferenceTwo => "#d98a94",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::tests::{cell, results};

    #[test]
    fn a_bar_is_as_long_as_its_number_and_the_longest_fills_the_width() {
        let cells = vec![
            cell(Column::Ours, &[25.0]),
            cell(Column::ReferenceOne, &[100.0]),
        ];
        let chart = chart(&results(cells));
        let full = WIDTH - LEFT - RIGHT;
        for (width, number) in [(full / 4.0, "25.0"), (full, "100.0")] {
            assert!(chart.contains(&format!("width=\"{width:.1}\"")), "{chart}");
            assert!(chart.contains(&format!(">{number}</text>")), "{chart}");
        }
    }

    #[test]
    fn what_was_not_measured_has_no_bar() {
        let bars = |cells| {
            let chart = chart(&results(cells));
            chart
                .matches(&format!("height=\"{:.0}\"", BAR - 2.0))
                .count()
        };
        assert_eq!(bars(vec![cell(Column::Ours, &[25.0])]), 1);
        assert_eq!(bars(Vec::new()), 0);
    }
}
