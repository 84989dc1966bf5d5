//! Answers: a status, and JSON that ends with a line.

use http::header::{ALLOW, CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use keelson_wire::ErrorResponse;
use prometheus_client::registry::Registry;
use serde::Serialize;

/// An answer, whole.
pub type Answer = Response<Full<Bytes>>;

pub(super) fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = status;
    answer
}

fn typed(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let kind = HeaderValue::from_static(kind);
    answer.headers_mut().insert(CONTENT_TYPE, kind);
    answer
}

pub(super) fn json(status: StatusCode, value: &impl Serialize) -> Answer {
    match serde_json::to_vec(value) {
        Ok(mut body) => {
            body.push(b'\n');
            typed(status, "application/json", body)
        }
        // None of our answers has a form that JSON has not.
        Err(_) => empty(StatusCode::INTERNAL_SERVER_ERROR),
    }
}

pub(super) fn error(status: StatusCode, sentence: &str) -> Answer {
    let error = sentence.to_owned();
    json(status, &ErrorResponse { error })
}

/// Something that may be asked again in a moment.
pub(super) fn unavailable(sentence: &str) -> Answer {
    let mut answer = error(StatusCode::SERVICE_UNAVAILABLE, sentence);
    let soon = HeaderValue::from_static("1");
    answer.headers_mut().insert(RETRY_AFTER, soon);
    answer
}

pub(super) fn not_found() -> Answer {
    let text = "404 page not found\n";
    typed(StatusCode::NOT_FOUND, "text/plain; charset=utf-8", text)
}

pub(super) fn method_not_allowed(allowed: &'static str) -> Answer {
    let text = "Method Not Allowed\n";
    let status = StatusCode::METHOD_NOT_ALLOWED;
    let mut answer = typed(status, "text/plain; charset=utf-8", text);
    let allowed = HeaderValue::from_static(allowed);
    answer.headers_mut().insert(ALLOW, allowed);
    answer
}

pub(super) fn metrics(registry: &Registry) -> Answer {
    let mut told = String::new();
    match prometheus_client::encoding::text::encode(&mut told, registry) {
        Ok(()) => typed(
            StatusCode::OK,
            "application/openmetrics-text; version=1.0.0; charset=utf-8",
            told,
        ),
        Err(_) => empty(StatusCode::INTERNAL_SERVER_ERROR),
    }
}
