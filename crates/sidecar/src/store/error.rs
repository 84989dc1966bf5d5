//! What can be wrong with the store, in sentences.

use rusqlite::ErrorCode;
use std::path::Path;

/// Why something asked of the store was not done. It may be asked again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// SQLite said no.
    #[error("the store failed at {doing}: {problem}")]
    Failed {
        /// What was being done.
        doing: &'static str,
        /// What SQLite says, and what to do where that is known.
        problem: String,
    },
    /// The sidecar is ending.
    #[error("the store is closed: the sidecar is ending")]
    Closed,
    /// No answer in time.
    #[error("the store did not answer within {0} s: is its volume slow or stuck?")]
    Late(u64),
}

impl StoreError {
    pub(super) fn failed(doing: &'static str, error: &rusqlite::Error) -> Self {
        let advice = match error.sqlite_error_code() {
            Some(ErrorCode::DiskFull) => ": make room on the volume",
            Some(ErrorCode::ReadOnly) => ": the volume is read-only, mount it writable",
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                ": another process has the file, end it"
            }
            _ => "",
        };
        Self::Failed {
            doing,
            problem: format!("{error}{advice}"),
        }
    }
}

/// Why a store cannot be opened. The file is left as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store {path} cannot be opened: {problem}")]
pub struct OpenError {
    path: String,
    problem: String,
}

impl OpenError {
    fn new(path: &Path, problem: String) -> Self {
        let path = path.display().to_string();
        Self { path, problem }
    }

    pub(super) fn no_thread(path: &Path, error: &std::io::Error) -> Self {
        Self::new(path, format!("no thread can be started for it: {error}"))
    }

    pub(super) fn damaged(path: &Path, found: &str) -> Self {
        let problem = format!(
            "it is damaged or no store of tasks ({found}). Nothing was changed. Put a copy back, or \
             move it and its -wal and -shm files away to begin with an empty one; tasks that were \
             completed may then be run again"
        );
        Self::new(path, problem)
    }

    pub(super) fn newer(path: &Path, version: i64) -> Self {
        let problem = format!(
            "its version is {version}, and the newest this sidecar knows is {}. Nothing was changed. \
             Use the sidecar that wrote it",
            super::VERSION
        );
        Self::new(path, problem)
    }

    pub(super) fn sqlite(path: &Path, error: &rusqlite::Error) -> Self {
        let advice = match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                return Self::damaged(path, &error.to_string());
            }
            Some(ErrorCode::DiskFull) => "make room on the volume",
            Some(ErrorCode::ReadOnly) => "the volume is read-only, mount it writable",
            Some(ErrorCode::CannotOpen) => "look whether the folder is there and may be written",
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                "another sidecar has it open, end that one"
            }
            _ => "nothing was changed",
        };
        Self::new(path, format!("{error}; {advice}"))
    }
}
