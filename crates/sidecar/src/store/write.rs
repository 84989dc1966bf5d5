//! What changes the store. Each function is one transaction.

use super::row::{self, Incoming, time_text};
use crate::engine::decide::{self, Verdict};
use crate::fault::{Point, point};
use jiff::Timestamp;
use keelson_wire::TaskResult;
use rusqlite::{Connection, TransactionBehavior, params};
use serde_json::Value;

/// How many ended tasks are kept, beside the newest of each type.
pub const KEEP: usize = 1000;
/// How many more there may be before they are looked through again.
const SLACK: usize = 100;

/// Looks, decides and writes, with nobody in between.
pub(super) fn submit(
    connection: &mut Connection,
    incoming: &Incoming,
    at_work: bool,
) -> rusqlite::Result<Verdict> {
    point(Point::SubmitBefore);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let existing = row::get(&transaction, &incoming.id)?;
    let verdict = decide::submit(existing.as_ref(), incoming, at_work);
    if let Verdict::Start { run } = verdict {
        let params = Value::Object(incoming.params.clone()).to_string();
        transaction.execute(
            "INSERT INTO task_results (id, type, status, params, error, submitted_at, run) \
             VALUES (?1, ?2, 'running', ?3, '', ?4, ?5) \
             ON CONFLICT (id) DO UPDATE SET \
                 status = 'running', params = ?3, error = '', submitted_at = ?4, run = ?5, \
                 completed_at = NULL, result = NULL",
            params![
                incoming.id,
                incoming.type_.as_str(),
                params,
                time_text(incoming.at),
                run
            ],
        )?;
        transaction.execute(
            "INSERT OR REPLACE INTO keelson_submissions (id, run, submitted_by) VALUES (?1, ?2, ?3)",
            params![incoming.id, run, incoming.by],
        )?;
        transaction.commit()?;
        point(Point::SubmitAfter);
    }
    Ok(verdict)
}

/// Writes what came of a run, unless the task is gone or begun anew.
pub(super) fn finish(connection: &mut Connection, task: &TaskResult) -> rusqlite::Result<bool> {
    point(Point::FinishBefore);
    let changed = connection.execute(
        "UPDATE task_results SET status = ?3, result = ?4, error = ?5, completed_at = ?6 \
         WHERE id = ?1 AND run = ?2 AND status = 'running'",
        params![
            task.id,
            task.run,
            task.status.as_str(),
            task.result.as_ref().map(Value::to_string),
            task.error,
            task.completed_at.map(time_text)
        ],
    )?;
    point(Point::FinishAfter);
    let ended: i64 = connection.query_row(
        "SELECT count(*) FROM task_results WHERE status <> 'running'",
        [],
        |row| row.get(0),
    )?;
    if usize::try_from(ended).unwrap_or_default() > KEEP + SLACK
        && let Err(error) = prune(connection)
    {
        tracing::warn!(%error, "old tasks could not be forgotten");
    }
    Ok(changed > 0)
}

pub(super) fn delete(connection: &mut Connection, id: &str) -> rusqlite::Result<bool> {
    point(Point::DeleteBefore);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let deleted = transaction.execute("DELETE FROM task_results WHERE id = ?1", [id])?;
    transaction.execute("DELETE FROM keelson_submissions WHERE id = ?1", [id])?;
    transaction.commit()?;
    point(Point::DeleteAfter);
    Ok(deleted > 0)
}

/// Forgets every task of a type.
pub(super) fn purge(connection: &mut Connection, type_: &str) -> rusqlite::Result<usize> {
    point(Point::PurgeBefore);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    transaction.execute(
        "DELETE FROM keelson_submissions \
         WHERE id IN (SELECT id FROM task_results WHERE type = ?1)",
        [type_],
    )?;
    let purged = transaction.execute("DELETE FROM task_results WHERE type = ?1", [type_])?;
    transaction.commit()?;
    point(Point::PurgeAfter);
    Ok(purged)
}

/// Forgets old tasks that have ended. The newest of each type stays, however old it is: the newest
/// hold decides whether a release still counts. One that runs stays, of course.
pub(super) fn prune(connection: &mut Connection) -> rusqlite::Result<usize> {
    point(Point::PruneBefore);
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let pruned = transaction.execute(
        "DELETE FROM task_results WHERE id IN (
            SELECT id FROM (
                SELECT id, status,
                    row_number() OVER (
                        PARTITION BY type ORDER BY submitted_at DESC, rowid DESC) AS of_type,
                    row_number() OVER (
                        PARTITION BY status = 'running'
                        ORDER BY submitted_at DESC, rowid DESC) AS of_all
                FROM task_results)
            WHERE status <> 'running' AND of_type > 1 AND of_all > ?1)",
        [i64::try_from(KEEP).unwrap_or(i64::MAX)],
    )?;
    transaction.execute(
        "DELETE FROM keelson_submissions WHERE id NOT IN (SELECT id FROM task_results)",
        [],
    )?;
    transaction.commit()?;
    point(Point::PruneAfter);
    Ok(pruned)
}

pub(super) fn beat(connection: &mut Connection) -> rusqlite::Result<()> {
    point(Point::BeatBefore);
    connection.execute(
        "INSERT OR REPLACE INTO keelson_beat (id, at) VALUES (1, ?1)",
        [time_text(Timestamp::now())],
    )?;
    point(Point::BeatAfter);
    Ok(())
}
