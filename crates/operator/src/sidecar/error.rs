//! Why a call came to nothing, and what an answer's status says.
//!
//! Every failure is one sentence, for a condition or a log line. Whether to try again is for the
//! plan; here is only whether trying again can help.

use http::StatusCode;
use keelson_wire::ErrorResponse;
use std::error::Error;
use std::time::Duration;

use super::token::NoToken;

/// Why a call came to nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// Nobody answered.
    #[error("the sidecar cannot be reached: {0}")]
    Unreachable(String),
    /// It took too long.
    #[error("{what} was not over after {after:?}")]
    Deadline {
        /// What was being done.
        what: &'static str,
        /// How long it had.
        after: Duration,
    },
    /// 401. The token is not used again.
    #[error(
        "the proxy before the sidecar does not accept the token: the next call asks for a new one"
    )]
    Unauthorized,
    /// 403, with what the proxy said.
    #[error(
        "the proxy before the sidecar does not permit the call: bind the role for seinodetasks to the ServiceAccount {account} ({0})",
        account = super::token::ACCOUNT
    )]
    Forbidden(String),
    /// The request is at fault: the same one is refused again.
    #[error("the sidecar refuses the request with {status}: {error}")]
    Refused {
        /// The status.
        status: u16,
        /// What the sidecar said.
        error: String,
    },
    /// The other side is at fault, for now.
    #[error("the sidecar failed with {status}: {error}")]
    Failed {
        /// The status.
        status: u16,
        /// What the sidecar said.
        error: String,
    },
    /// There is no token to send.
    #[error(transparent)]
    NoToken(#[from] NoToken),
    /// Whoever answers is not the one the pins are for. Nothing was sent.
    #[error("whoever answers in the sidecar's place is not trusted: {0}")]
    Untrusted(String),
    /// An answer that cannot be right.
    #[error("the sidecar's answer makes no sense: {0}")]
    Garbled(String),
}

impl CallError {
    /// Whether the same call may succeed later with nobody having changed anything. A server that is
    /// not trusted may be one that is about to load its new certificate.
    pub fn passes_by_itself(&self) -> bool {
        match self {
            Self::Unreachable(_)
            | Self::Deadline { .. }
            | Self::Unauthorized
            | Self::Failed { .. }
            | Self::NoToken(_)
            | Self::Untrusted(_) => true,
            Self::Forbidden(_) | Self::Refused { .. } | Self::Garbled(_) => false,
        }
    }
}

/// Why there is no telling whether a sidecar is ready.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(transparent)]
pub struct Unanswered(#[from] pub CallError);

/// What a status says, with the body it came with.
pub(super) fn verdict(status: StatusCode, body: &[u8]) -> Result<(), CallError> {
    let error = || said(body);
    match status {
        StatusCode::UNAUTHORIZED => Err(CallError::Unauthorized),
        StatusCode::FORBIDDEN => Err(CallError::Forbidden(error())),
        // Both say: later.
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => Err(CallError::Failed {
            status: status.as_u16(),
            error: error(),
        }),
        _ if status.is_success() => Ok(()),
        _ if status.is_server_error() => Err(CallError::Failed {
            status: status.as_u16(),
            error: error(),
        }),
        _ => Err(CallError::Refused {
            status: status.as_u16(),
            error: error(),
        }),
    }
}

/// How much of an answer is repeated, in characters: it ends up in a status.
const REPEATED: usize = 300;

/// What the other side said: the sidecar in JSON, the proxy in plain text.
fn said(body: &[u8]) -> String {
    let text = match serde_json::from_slice::<ErrorResponse>(body) {
        Ok(answer) => answer.error,
        Err(_) => String::from_utf8_lossy(body).into_owned(),
    };
    let text: String = text
        .trim()
        .chars()
        .map(|it| if it.is_control() { ' ' } else { it })
        .take(REPEATED)
        .collect();
    if text.is_empty() {
        "it gave no reason".to_owned()
    } else {
        text
    }
}

/// An error with everything it came from, in one sentence.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut sentence = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !sentence.ends_with(&cause_text) {
            sentence = format!("{sentence}: {cause_text}");
        }
        source = cause.source();
    }
    sentence
}
