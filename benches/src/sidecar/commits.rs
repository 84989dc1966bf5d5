//! SQLite alone: how long it takes to make one small row durable, on the disk and with the settings of
//! the sidecar's store.

use anyhow::{Context, anyhow};
use rusqlite::{Connection, params};
use std::ops::Range;
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::time::Instant;

type Ask = (String, Sender<rusqlite::Result<usize>>);

/// A database with nothing but rows in it.
#[derive(Debug)]
pub(crate) struct Alone {
    connection: Connection,
    /// How many rows there are.
    rows: usize,
}

impl Alone {
    pub(crate) fn open(file: &Path) -> anyhow::Result<Self> {
        let connection = Connection::open(file)?;
        connection.query_row("PRAGMA journal_mode = WAL", [], |row| {
            row.get::<_, String>(0)
        })?;
        connection.execute_batch(
            "PRAGMA synchronous = FULL; CREATE TABLE rows (id TEXT PRIMARY KEY, text TEXT NOT NULL)",
        )?;
        let rows = 0;
        Ok(Self { connection, rows })
    }

    /// Milliseconds of each of so many commits. Many callers have one writer, which takes them in turn.
    pub(crate) fn commit(&mut self, callers: usize, commits: usize) -> anyhow::Result<Vec<f64>> {
        let share = commits / callers;
        let first = self.rows;
        self.rows += share * callers;
        let connection = &mut self.connection;
        let (sender, receiver) = channel::<Ask>();
        std::thread::scope(|scope| {
            let insert = "INSERT INTO rows (id, text) VALUES (?1, ?2)";
            scope.spawn(move || {
                for (id, answer) in receiver {
                    let _ = answer.send(connection.execute(insert, params![id, "running"]));
                }
            });
            let calls: Vec<_> = (0..callers)
                .map(|caller| {
                    let rows = first + caller * share..first + (caller + 1) * share;
                    let sender = sender.clone();
                    scope.spawn(move || call(rows, &sender))
                })
                .collect();
            // The writer ends when nobody can ask any more.
            drop(sender);
            let mut all = Vec::new();
            for call in calls {
                all.extend(call.join().map_err(|_| anyhow!("a caller panicked"))??);
            }
            Ok(all)
        })
    }
}

fn call(rows: Range<usize>, writer: &Sender<Ask>) -> anyhow::Result<Vec<f64>> {
    let mut times = Vec::with_capacity(rows.len());
    for row in rows {
        let (answer, answered) = channel();
        let started = Instant::now();
        let asked = writer.send((format!("{row:036}"), answer));
        asked.ok().context("the writer ended")?;
        answered.recv()??;
        times.push(started.elapsed().as_secs_f64() * 1000.0);
    }
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_commit_of_every_caller_is_there_and_timed() {
        let file = std::env::temp_dir().join(format!("keelson-commits-{}.db", std::process::id()));
        let mut alone = Alone::open(&file).expect("a database");
        let mut times = alone.commit(2, 10).expect("commits");
        times.extend(alone.commit(1, 5).expect("more of them"));
        let connection = Connection::open(&file).expect("a database");
        let rows = connection.query_row("SELECT count(*) FROM rows", [], |row| row.get(0));
        std::fs::remove_file(&file).expect("removal");
        for beside in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{beside}", file.display()));
        }
        assert_eq!(times.len(), 15);
        assert_eq!(rows, Ok(15));
        assert!(times.iter().all(|it| *it > 0.0));
    }
}
