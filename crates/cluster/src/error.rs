//! What can go wrong between a controller and the API server, as whole sentences.
//!
//! Every error says what was being done and why it did not work, so that a caller can put it into
//! a condition or a log as it is. What follows from an error is the caller's to decide; the
//! questions it asks for that are the methods here.

use std::error::Error as _;
use std::fmt::Display;
use std::time::Duration;

/// A call that did not do what it was made for.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No answer came in time. A write may have happened all the same.
    #[error("{doing}: the API server gave no answer within {after:?}")]
    Deadline {
        /// What was being done.
        doing: String,
        /// How long was waited.
        after: Duration,
    },
    /// Somebody else wrote first, or the object is not the one that was meant.
    #[error("{doing}: {reason}")]
    Conflict {
        /// What was being done.
        doing: String,
        /// What the server says.
        reason: String,
    },
    /// The server understood and says no; asking again does not help.
    #[error("{doing} was refused: {reason}")]
    Refused {
        /// What was being done.
        doing: String,
        /// The status: 400, 403, 422 and their like.
        code: u16,
        /// What the server says.
        reason: String,
    },
    /// The object, its namespace or its type is not there.
    #[error("{doing}: {reason}")]
    Absent {
        /// What was being done.
        doing: String,
        /// What the server says.
        reason: String,
    },
    /// What was to be sent, or what came back, lacks something it cannot be without.
    #[error("{doing}: {reason}")]
    Malformed {
        /// What was being done.
        doing: String,
        /// What is missing.
        reason: String,
    },
    /// Anything else: the server failed, or was not reached. It may pass.
    #[error("{doing} failed: {}", said(cause))]
    Api {
        /// What was being done.
        doing: String,
        /// What the client says.
        cause: Box<kube::Error>,
    },
}

impl Error {
    /// An answer of the client, sorted by what a caller can do about it.
    pub(crate) fn of(doing: impl Display, cause: kube::Error) -> Self {
        let doing = doing.to_string();
        let kube::Error::Api(status) = &cause else {
            return Self::Api {
                doing,
                cause: Box::new(cause),
            };
        };
        let (code, reason) = (status.code, said(&cause));
        match code {
            404 => Self::Absent { doing, reason },
            409 => Self::Conflict { doing, reason },
            400 | 403 | 405 | 406 | 413 | 415 | 422 => Self::Refused {
                doing,
                code,
                reason,
            },
            _ => Self::Api {
                doing,
                cause: Box::new(cause),
            },
        }
    }

    /// Whether somebody else wrote first: look again, then decide again.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Conflict { .. })
    }

    /// Whether this does not pass by itself: somebody has to change the object or a permission.
    pub fn is_refused(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }

    /// Whether the object, its namespace or its type is not there.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Absent { .. })
    }
}

/// What an error of the client says, in one line and without its frame.
pub(crate) fn said(cause: &kube::Error) -> String {
    if let kube::Error::Api(status) = cause {
        return match (status.message.trim(), status.code) {
            ("", code) => format!("the API server answered {code}"),
            (message, code) if code >= 500 || code == 429 => {
                format!("the API server answered {code}: {message}")
            }
            (message, _) => message.to_owned(),
        };
    }
    let mut text = cause.to_string();
    let mut inner = cause.source();
    while let Some(next) = inner {
        let next_text = next.to_string();
        // Many errors of the client repeat their source; once is enough.
        if !text.ends_with(&next_text) {
            text = format!("{text}: {next_text}");
        }
        inner = next.source();
    }
    text
}
