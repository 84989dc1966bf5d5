//! What can go wrong with a question: the failures of a review, and the refusals callers get.
//!
//! A failure says how the API server could not be asked; whether it is retried, counted or covered by
//! a stale answer follows from its class. Which HTTP status a refusal becomes is for the pipeline.

use std::{sync::Arc, time::Duration};

/// Why a review brought no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// Nothing listened there.
    #[error("the API server refused the connection")]
    ConnectionRefused,
    /// A connection that had been made was reset or closed before the answer.
    #[error("the connection to the API server was lost before it answered")]
    ConnectionLost,
    /// No connection could be made: name, route, TLS.
    #[error("the API server cannot be reached: {0}")]
    Unreachable(Arc<str>),
    /// No answer came in time.
    #[error("the API server did not answer in time")]
    TimedOut,
    /// An HTTP status that is no answer.
    #[error("the API server answered with status {code}")]
    Status {
        /// The status.
        code: u16,
        /// When to come back, if the server said so.
        retry_after: Option<Duration>,
    },
    /// The server answered what makes no sense.
    #[error("the API server's answer cannot be used: {0}")]
    Unusable(Arc<str>),
}

impl Failure {
    /// Whether the server, or the way to it, is out of order. Only these count for the breaker and
    /// can be covered by a stale answer; anything else is the word of a server that works.
    pub fn infrastructure(&self) -> bool {
        match self {
            Failure::ConnectionRefused
            | Failure::ConnectionLost
            | Failure::Unreachable(_)
            | Failure::TimedOut => true,
            Failure::Status { code, .. } => *code == 429 || *code >= 500,
            Failure::Unusable(_) => false,
        }
    }
}

/// Why a caller got no decision. The door stays shut in every case.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The review failed.
    #[error("the review failed")]
    Failed(#[from] Failure),
    /// The API server is known to be down and was not asked.
    #[error("the API server is down")]
    Unavailable {
        /// Until it is tried again.
        retry_after: Duration,
    },
    /// Too many callers wait already.
    #[error("too many requests wait for the API server")]
    Overloaded,
    /// This source has caused too many reviews.
    #[error("too many unknown credentials from this address")]
    Throttled {
        /// Until it may cause another.
        retry_after: Duration,
    },
    /// The token says itself that it ended long ago.
    #[error("the token has expired")]
    Expired,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_out_of_order_is_an_infrastructure_failure() {
        let status = |code| Failure::Status {
            code,
            retry_after: None,
        };
        for (failure, expected) in [
            (Failure::ConnectionRefused, true),
            (Failure::ConnectionLost, true),
            (Failure::Unreachable("no route".into()), true),
            (Failure::TimedOut, true),
            (status(429), true),
            (status(500), true),
            (status(503), true),
            (status(400), false),
            (status(401), false),
            (status(403), false),
            (status(422), false),
            (Failure::Unusable("allowed and denied".into()), false),
        ] {
            assert_eq!(failure.infrastructure(), expected, "{failure}");
        }
    }
}
