//! What a run of the bench found, as it is kept in `benches/results/proxy.json`. What is not in here
//! was not measured.

use crate::cases::Column;
use keelson_bench::machine::Run;
use keelson_bench::statistics::Summary;
use serde::{Deserialize, Serialize};

/// Everything one run found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) run: Run,
    pub(crate) steady: Vec<Row>,
    pub(crate) storm: Vec<Storm>,
    pub(crate) crowd: Vec<Crowd>,
    pub(crate) expiry: Vec<Expiry>,
    pub(crate) footprint: Vec<Footprint>,
}

/// One steady row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) cells: Vec<Cell>,
}

/// One column of a steady row.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) column: Column,
    /// Microseconds of processor time for one request.
    pub(crate) cpu: Summary,
    /// Requests in a second; wall time, and so never alone.
    pub(crate) per_second: f64,
    /// Rounds that do not count, and why.
    pub(crate) void: Vec<String>,
}

/// Many tokens nobody has seen, at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Storm {
    pub(crate) column: Column,
    pub(crate) tokens: usize,
    pub(crate) admitted: usize,
    /// Other answers and failures, by what they were.
    pub(crate) others: Vec<String>,
    pub(crate) reviews: usize,
    pub(crate) seconds: f64,
    pub(crate) p99_ms: f64,
    pub(crate) cpu_ms: f64,
}

/// Many callers with the same token that nobody has seen.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Crowd {
    pub(crate) column: Column,
    pub(crate) callers: usize,
    pub(crate) admitted: usize,
    pub(crate) reviews: usize,
    pub(crate) slowest_ms: f64,
}

/// A token in steady use over the end of its answer's life.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Expiry {
    pub(crate) column: Column,
    pub(crate) seconds: u64,
    pub(crate) callers: usize,
    pub(crate) requests: usize,
    pub(crate) refused: usize,
    pub(crate) token_reviews: usize,
    pub(crate) access_reviews: usize,
    pub(crate) p99_ms: f64,
    pub(crate) slowest_ms: f64,
}

/// What it takes to be there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Footprint {
    pub(crate) column: Column,
    /// Milliseconds from its start to the first connection it takes.
    pub(crate) start_ms: Summary,
    pub(crate) idle_bytes: u64,
    /// With 64 connections under load.
    pub(crate) loaded_bytes: u64,
    /// Tokens it had been shown by then.
    pub(crate) tokens: usize,
    /// Answers it remembered by then, where it says.
    pub(crate) remembered: Option<String>,
    /// The program's file, as it is shipped.
    pub(crate) file_bytes: u64,
}

impl Results {
    /// The cell of a row and a column.
    pub(crate) fn cell(row: &Row, column: Column) -> Option<&Cell> {
        row.cells.iter().find(|cell| cell.column == column)
    }

    /// What it takes for this column to be there.
    pub(crate) fn footprint(&self, column: Column) -> Option<&Footprint> {
        self.footprint.iter().find(|it| it.column == column)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn cell(column: Column, rounds: &[f64]) -> Cell {
        Cell {
            column,
            cpu: Summary::of(rounds).expect("a round"),
            per_second: 1000.0,
            void: Vec::new(),
        }
    }

    pub(crate) fn row(cells: Vec<Cell>) -> Row {
        Row {
            id: "h1-16".to_owned(),
            title: "HTTP/1.1, 16 connections".to_owned(),
            cells,
        }
    }

    /// A small run, with one row and nothing else.
    pub(crate) fn results(cells: Vec<Cell>) -> Results {
        Results {
            run: Run {
                quick: false,
                rounds: 7,
                seconds: Some(2),
                day: "2026-11-16".to_owned(),
                processor: "a processor".to_owned(),
                processors: 2,
                load: [0.1, 1.0],
                versions: vec!["nginx/1".to_owned()],
            },
            steady: vec![row(cells)],
            storm: Vec::new(),
            crowd: Vec::new(),
            expiry: Vec::new(),
            footprint: Vec::new(),
        }
    }
}
