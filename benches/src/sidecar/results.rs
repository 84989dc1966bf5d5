//! What a run of the bench found, as it is kept in `benches/results/sidecar.json`. What is not in here
//! was not measured.

use crate::archives::Form;
use keelson_bench::machine::Run;
use keelson_bench::statistics::Summary;
use serde::{Deserialize, Serialize};

/// Everything one run found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Results {
    pub(crate) run: Run,
    pub(crate) restore: Vec<Restore>,
    pub(crate) submitted: Vec<Submitted>,
    pub(crate) kept: Kept,
    pub(crate) footprint: Footprint,
}

/// Where an archive comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Source {
    S3,
    Folder,
}

impl Source {
    pub(crate) const ALL: [Self; 2] = [Self::S3, Self::Folder];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::S3 => "S3",
            Self::Folder => "folder",
        }
    }
}

/// Who unpacks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Column {
    Ours,
    Gzip,
    Pigz,
    Zstd,
}

impl Column {
    pub(crate) const ALL: [Self; 4] = [Self::Ours, Self::Gzip, Self::Pigz, Self::Zstd];

    /// Its name; of a pipeline, that of the decoder.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Ours => "keelson-sidecar",
            Self::Gzip => "gzip",
            Self::Pigz => "pigz",
            Self::Zstd => "zstd",
        }
    }
}

/// One archive from one place.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Restore {
    pub(crate) source: Source,
    pub(crate) form: Form,
    pub(crate) archive_bytes: u64,
    pub(crate) plain_bytes: u64,
    pub(crate) cells: Vec<Cell>,
}

impl Restore {
    pub(crate) fn title(&self) -> String {
        format!("{} from {}", self.form.suffix(), self.source.title())
    }

    pub(crate) fn cell(&self, column: Column) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.column == column)
    }
}

/// One column of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Cell {
    pub(crate) column: Column,
    pub(crate) wall_s: Summary,
    pub(crate) cpu_s: Summary,
    /// The most that was resident in any round; of a pipeline, of its processes added up.
    pub(crate) peak_bytes: u64,
}

/// Submissions by so many callers at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Submitted {
    pub(crate) callers: usize,
    pub(crate) ours: Latency,
    /// One small row made durable by SQLite alone.
    pub(crate) sqlite: Latency,
}

/// How long something took that was done many times.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) count: usize,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

/// What a kill left.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) submitted: usize,
    /// Answered with 201, before the kill or after it.
    pub(crate) answered: usize,
    /// Answered before it.
    pub(crate) known_at_kill: usize,
    /// From the start after the kill to the first answer.
    pub(crate) restart_ms: f64,
    /// Answered and not there at the end.
    pub(crate) lost: usize,
}

/// What it takes to be there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Footprint {
    /// Tasks in the store.
    pub(crate) stored: usize,
    /// Milliseconds from its start to its first answer.
    pub(crate) start_ms: Summary,
    pub(crate) idle_bytes: u64,
    /// The program's file, as it is shipped.
    pub(crate) file_bytes: u64,
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn cell(column: Column, seconds: &[f64], peak_bytes: u64) -> Cell {
        Cell {
            column,
            wall_s: Summary::of(seconds).expect("a round"),
            cpu_s: Summary::of(seconds).expect("a round"),
            peak_bytes,
        }
    }

    pub(crate) fn row(form: Form, cells: Vec<Cell>) -> Restore {
        Restore {
            source: Source::S3,
            form,
            archive_bytes: 100_000_000,
            plain_bytes: 200_000_000,
            cells,
        }
    }

    /// A small run.
    pub(crate) fn results(restore: Vec<Restore>) -> Results {
        let latency = |ms: f64| Latency {
            count: 10,
            p50_ms: ms,
            p99_ms: 2.0 * ms,
        };
        Results {
            run: Run {
                quick: false,
                rounds: 3,
                seconds: None,
                day: "2026-11-16".to_owned(),
                processor: "a processor".to_owned(),
                processors: 2,
                load: [0.1, 1.0],
                versions: vec!["gzip 1".to_owned()],
            },
            restore,
            submitted: vec![Submitted {
                callers: 8,
                ours: latency(3.0),
                sqlite: latency(2.0),
            }],
            kept: Kept {
                submitted: 10,
                answered: 10,
                known_at_kill: 5,
                restart_ms: 20.0,
                lost: 0,
            },
            footprint: Footprint {
                stored: 1000,
                start_ms: Summary::of(&[20.0]).expect("a start"),
                idle_bytes: 10_000_000,
                file_bytes: 9_000_000,
            },
        }
    }
}
