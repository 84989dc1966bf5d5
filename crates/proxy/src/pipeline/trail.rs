//! What became of a request on its way, for the counters and the access log.
//!
//! The line is written when the head of the answer is there. It names the path and never the query,
//! and no part of a credential is ever here.

use crate::headers::{bearer, subprotocol_token};
use crate::logging::ACCESS;
use crate::metrics::{Counts, Credential, Present, Source};
use crate::serve::Origin;
use http::{HeaderMap, Method, StatusCode};
use hyper::body::Incoming;
use std::time::{Duration, Instant};

/// One request from its arrival to the head of its answer.
pub(super) struct Trail {
    began: Instant,
    /// Who it is from; kept only for the access log.
    pub(super) user: Option<String>,
    /// Where the decision came from.
    pub(super) source: Source,
    /// The upstream's part of the time.
    pub(super) upstream: Option<Duration>,
    /// What the access log says of the request; nothing without one.
    asked: Option<String>,
    answered: bool,
    _in_flight: Present,
}

impl Trail {
    pub(super) fn new(counts: &Counts, request: &http::Request<Incoming>, logged: bool) -> Self {
        Self {
            began: Instant::now(),
            user: None,
            source: Source::None,
            upstream: None,
            asked: logged.then(|| request.uri().path().to_owned()),
            answered: false,
            _in_flight: counts.in_flight(),
        }
    }

    /// Whether the access log wants to know.
    pub(super) fn logged(&self) -> bool {
        self.asked.is_some()
    }

    /// Ends it: counts, and writes the line.
    pub(super) fn end(
        mut self,
        counts: &Counts,
        method: &Method,
        status: StatusCode,
        outcome: &'static str,
    ) {
        self.answered = true;
        let took = self.began.elapsed();
        counts.answered(status.as_u16(), method, outcome, took);
        let Some(path) = &self.asked else {
            return;
        };
        tracing::info!(
            target: ACCESS,
            user = self.user.as_deref().unwrap_or_default(),
            method = method.as_str(),
            path = path.as_str(),
            status = status.as_u16(),
            outcome,
            decision = self.source.as_str(),
            upstream_ms = self.upstream.map(millis),
            total_ms = millis(took),
            "request"
        );
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        if !self.answered {
            tracing::debug!("the client went away before its answer");
        }
    }
}

/// Milliseconds, to the microsecond.
fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

/// What a request that was not let in had to show.
pub(super) fn shown(origin: &Origin, headers: &HeaderMap) -> Credential {
    if bearer(headers).is_some() {
        Credential::Bearer
    } else if matches!(subprotocol_token(headers), Ok(Some(_)) | Err(_)) {
        Credential::Websocket
    } else if origin.certificates.is_empty() {
        Credential::None
    } else {
        Credential::Certificate
    }
}
