//! The health port, in the clear: whether the process lives and serves, and which TLS profile it has
//! loaded. Neither the API server nor the network decides any of that.

use crate::answer::{Answer, nothing_here, only, text, typed};
use crate::files::{Files, Report};
use http::{Method, Request, StatusCode};
use hyper::body::Incoming;
use keelson_api::host::{LIVE_PATH, METRICS_PATH, READY_PATH, TLS_REPORT_PATH};
use keelson_proxy::serve::{Origin, Respond};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde::Serialize;
use std::convert::Infallible;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Answers for the process itself.
#[derive(Debug)]
pub struct Health {
    /// What is loaded.
    pub files: Arc<Files>,
    /// The hash of the profile this pod was made for; empty where nobody said.
    pub stamped: String,
    /// Whether the process is about to end.
    pub leaving: CancellationToken,
    /// What is counted of the listener; nothing of the cluster.
    pub registry: Registry,
}

/// What is said about the TLS profile.
#[derive(Debug, Serialize, PartialEq, Eq)]
struct Told<'a> {
    loaded: &'a str,
    stamped: &'a str,
    error: Option<&'a str>,
}

impl Health {
    /// The page at a path of the health port.
    pub fn page(&self, path: &str) -> Option<Answer> {
        match path {
            METRICS_PATH => Some(metrics(&self.registry)),
            TLS_REPORT_PATH => {
                let told = told(&self.files.report(), &self.stamped);
                Some(typed(StatusCode::OK, "application/json", told))
            }
            _ => self.probe(path),
        }
    }

    /// The page at a path, of those that every port of the process may have.
    pub fn probe(&self, path: &str) -> Option<Answer> {
        match path {
            LIVE_PATH | "/livez" => Some(text(StatusCode::OK, "ok")),
            READY_PATH => Some(match self.unready() {
                None => text(StatusCode::OK, "ok"),
                Some(why) => text(StatusCode::SERVICE_UNAVAILABLE, why + "\n"),
            }),
            _ => None,
        }
    }

    fn unready(&self) -> Option<String> {
        if self.leaving.is_cancelled() {
            return Some("the process is about to end".to_owned());
        }
        let Report { loaded, error } = self.files.report();
        match loaded {
            Some(_) => None,
            None => Some(error.unwrap_or_else(|| "there is no certificate".to_owned())),
        }
    }
}

fn told(report: &Report, stamped: &str) -> String {
    let loaded = report.loaded.as_ref();
    let told = Told {
        loaded: loaded.map_or("", |it| &it.profile_hash),
        stamped,
        error: report.error.as_deref(),
    };
    serde_json::to_string(&told).unwrap_or_default()
}

/// Everything that is registered, as text.
pub fn metrics(registry: &Registry) -> Answer {
    let mut page = String::new();
    match encode(&mut page, registry) {
        Ok(()) => typed(
            StatusCode::OK,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            page,
        ),
        Err(_) => text(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the metrics could not be written\n",
        ),
    }
}

impl Respond for Health {
    type Body = http_body_util::Full<hyper::body::Bytes>;
    type Unanswered = Infallible;

    async fn respond(
        self: Arc<Self>,
        _: Arc<Origin>,
        request: Request<Incoming>,
    ) -> Result<Answer, Infallible> {
        let Some(page) = self.page(request.uri().path()) else {
            return Ok(nothing_here());
        };
        Ok(match *request.method() {
            Method::GET | Method::HEAD => page,
            _ => only("GET, HEAD"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_of_the_profile_is_complete_before_anything_is_loaded() {
        let report = Report {
            loaded: None,
            error: Some("the certificate file is missing".to_owned()),
        };
        assert_eq!(
            told(&report, "ab"),
            r#"{"loaded":"","stamped":"ab","error":"the certificate file is missing"}"#
        );
        assert_eq!(
            told(&Report::default(), ""),
            r#"{"loaded":"","stamped":"","error":null}"#
        );
    }
}
