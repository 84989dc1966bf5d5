//! The store's file: opening it, and bringing it from the original's older versions to the fifth.
//!
//! The version stays five, the original's last: it opens the file again and sees its own columns.
//! What only we keep is in tables of our own, which the original never looks at.

use super::error::OpenError;
use super::{row, write};
use crate::fault::{Point, point};
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;
use std::time::Duration;

/// The version of the tables.
pub const VERSION: i64 = 5;

/// What brings a store from one version to the next; the first makes it.
const STEPS: [&str; 5] = [
    "CREATE TABLE task_results (
        id TEXT PRIMARY KEY,
        type TEXT NOT NULL,
        status TEXT NOT NULL,
        params TEXT,
        schedule TEXT,
        error TEXT NOT NULL DEFAULT '',
        submitted_at TEXT NOT NULL,
        completed_at TEXT,
        next_run_at TEXT
    );
    CREATE INDEX idx_task_results_submitted_at ON task_results (submitted_at DESC);
    CREATE INDEX idx_task_results_next_run_at ON task_results (next_run_at)
        WHERE next_run_at IS NOT NULL;",
    "ALTER TABLE task_results DROP COLUMN schedule;
    ALTER TABLE task_results DROP COLUMN next_run_at;",
    "ALTER TABLE task_results ADD COLUMN run INTEGER NOT NULL DEFAULT 1;",
    "ALTER TABLE task_results ADD COLUMN result TEXT;",
    "CREATE TABLE tx_markers (
        task_id TEXT PRIMARY KEY NOT NULL,
        tx_hash TEXT NOT NULL,
        tx_bytes BLOB NOT NULL,
        account_number INTEGER NOT NULL,
        sequence INTEGER NOT NULL,
        chain_id TEXT NOT NULL,
        created_at TEXT NOT NULL
    );",
];

/// What only we keep: who submitted which run, and a row to write to see whether that can be done.
const OURS: &str = "
    CREATE TABLE IF NOT EXISTS keelson_submissions (
        id TEXT PRIMARY KEY NOT NULL,
        run INTEGER NOT NULL,
        submitted_by TEXT
    );
    CREATE TABLE IF NOT EXISTS keelson_beat (
        id INTEGER PRIMARY KEY CHECK (id = 1),
        at TEXT NOT NULL
    );
    DELETE FROM keelson_submissions WHERE id NOT IN (SELECT id FROM task_results);";

pub(super) fn open(path: &Path) -> Result<Connection, OpenError> {
    let sqlite = |error: rusqlite::Error| OpenError::sqlite(path, &error);
    let mut connection = Connection::open(path).map_err(sqlite)?;
    connection
        .busy_timeout(Duration::from_secs(5))
        .map_err(sqlite)?;
    let found = version(&connection).map_err(sqlite)?;
    if found > VERSION {
        return Err(OpenError::newer(path, found));
    }
    let health: String = connection
        .query_row("PRAGMA quick_check(1)", [], |row| row.get(0))
        .map_err(sqlite)?;
    if health != "ok" {
        return Err(OpenError::damaged(path, &health));
    }
    // The mode comes back as a row, and is part of the file from then on.
    connection
        .query_row("PRAGMA journal_mode = WAL", [], |row| {
            row.get::<_, String>(0)
        })
        .map_err(sqlite)?;
    connection
        .execute_batch("PRAGMA synchronous = FULL")
        .map_err(sqlite)?;
    migrate(&mut connection).map_err(sqlite)?;
    prepare(&mut connection).map_err(sqlite)?;
    write::prune(&mut connection).map_err(sqlite)?;
    Ok(connection)
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.query_row("PRAGMA user_version", [], |row| row.get(0))
}

fn migrate(connection: &mut Connection) -> rusqlite::Result<()> {
    let found = version(connection)?;
    for (step, to) in STEPS.iter().zip(1..).filter(|(_, to)| *to > found) {
        point(Point::MigrateBefore);
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if to == 2 {
            drop_schedule_indexes(&transaction)?;
        }
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", to)?;
        transaction.commit()?;
        point(Point::MigrateAfter);
    }
    Ok(())
}

/// A column with an index on it cannot be dropped, and what the index is called is nobody's business.
fn drop_schedule_indexes(connection: &Connection) -> rusqlite::Result<()> {
    let mut indexes = connection.prepare(
        "SELECT name FROM sqlite_master \
         WHERE type = 'index' AND tbl_name = 'task_results' \
           AND (sql LIKE '%next_run_at%' OR sql LIKE '%schedule%')",
    )?;
    let names: Vec<String> = indexes
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for name in names {
        let quoted = name.replace('"', "\"\"");
        connection.execute_batch(&format!("DROP INDEX \"{quoted}\""))?;
    }
    Ok(())
}

fn prepare(connection: &mut Connection) -> rusqlite::Result<()> {
    point(Point::PrepareBefore);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute_batch(OURS)?;
    let widened = row::widen(&transaction)?;
    transaction.commit()?;
    point(Point::PrepareAfter);
    if widened > 0 {
        tracing::info!(
            rows = widened,
            "times in the store are written at full width now"
        );
    }
    Ok(())
}
