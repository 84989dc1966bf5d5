//! Rows of the store as tasks, and reading them.
//!
//! Times are texts. The original trims the zeros of a fraction, so that `…05Z` sorts behind
//! `…05.1Z`; ours always have nine digits, and the original's are widened when a store is opened.

use jiff::Timestamp;
use keelson_wire::{Object, TaskResult, TaskStatus, TaskType};
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::Value;

/// A task that is about to be submitted.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// The id.
    pub id: String,
    /// The type.
    pub type_: TaskType,
    /// What the task is given.
    pub params: Object,
    /// Who submits it, where that is known.
    pub by: Option<String>,
    /// When.
    pub at: Timestamp,
}

/// A time as it stands in the store: texts of this form sort as the times do.
pub fn time_text(time: Timestamp) -> String {
    format!("{time:.9}")
}

/// A time from the store. One that is none is older than all others: it decides nothing.
fn time(text: &str) -> Timestamp {
    text.parse().unwrap_or(Timestamp::UNIX_EPOCH)
}

const COLUMNS: &str = "\
    SELECT t.id, t.type, t.status, t.run, t.params, t.result, t.error, k.submitted_by, \
           t.submitted_at, t.completed_at \
    FROM task_results t \
    LEFT JOIN keelson_submissions k ON k.id = t.id AND k.run = t.run";
const NEWEST_FIRST: &str = "ORDER BY t.submitted_at DESC, t.rowid DESC";

fn task(row: &Row<'_>) -> rusqlite::Result<TaskResult> {
    let status: String = row.get(2)?;
    let params: Option<String> = row.get(4)?;
    let result: Option<String> = row.get(5)?;
    let submitted_at: String = row.get(8)?;
    let completed_at: Option<String> = row.get(9)?;
    Ok(TaskResult {
        id: row.get(0)?,
        type_: row.get(1)?,
        status: match status.as_str() {
            "running" => TaskStatus::Running,
            "completed" => TaskStatus::Completed,
            // A word of another age: whatever it was, it is over and did not complete.
            _ => TaskStatus::Failed,
        },
        run: row.get(3)?,
        params: params
            .and_then(|text| serde_json::from_str::<Option<Object>>(&text).ok().flatten())
            .unwrap_or_default(),
        result: result.map(|text| serde_json::from_str(&text).unwrap_or(Value::String(text))),
        error: row.get(6)?,
        submitted_by: row.get(7)?,
        submitted_at: time(&submitted_at),
        completed_at: completed_at.as_deref().map(time),
    })
}

pub(super) fn get(connection: &Connection, id: &str) -> rusqlite::Result<Option<TaskResult>> {
    let mut statement = connection.prepare_cached(&format!("{COLUMNS} WHERE t.id = ?1"))?;
    statement.query_row([id], task).optional()
}

pub(super) fn list(connection: &Connection, limit: usize) -> rusqlite::Result<Vec<TaskResult>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(&format!("{COLUMNS} {NEWEST_FIRST} LIMIT ?1"))?;
    statement.query_map([limit], task)?.collect()
}

pub(super) fn running(connection: &Connection) -> rusqlite::Result<Vec<TaskResult>> {
    let mut statement = connection.prepare_cached(&format!(
        "{COLUMNS} WHERE t.status = 'running' ORDER BY t.submitted_at, t.rowid"
    ))?;
    statement.query_map([], task)?.collect()
}

pub(super) fn latest(connection: &Connection, type_: &str) -> rusqlite::Result<Option<TaskResult>> {
    let mut statement = connection.prepare_cached(&format!(
        "{COLUMNS} WHERE t.type = ?1 {NEWEST_FIRST} LIMIT 1"
    ))?;
    statement.query_row([type_], task).optional()
}

/// Widens times that are not of our width; says how many rows had some.
pub(super) fn widen(connection: &Connection) -> rusqlite::Result<usize> {
    let mut narrow = connection.prepare(
        "SELECT id, submitted_at, completed_at FROM task_results \
         WHERE length(submitted_at) <> 30 OR length(coalesce(completed_at, submitted_at)) <> 30",
    )?;
    let rows: Vec<(String, String, Option<String>)> = narrow
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    let wide = |text: &str| text.parse().map_or_else(|_| text.to_owned(), time_text);
    for (id, submitted, completed) in &rows {
        connection.execute(
            "UPDATE task_results SET submitted_at = ?2, completed_at = ?3 WHERE id = ?1",
            params![id, wide(submitted), completed.as_deref().map(wide)],
        )?;
    }
    Ok(rows.len())
}
