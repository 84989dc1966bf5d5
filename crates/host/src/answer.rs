//! Answers as HTTP has them.

use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;

/// An answer with its whole body.
pub type Answer = Response<Full<Bytes>>;

/// Plain text.
pub fn text(status: StatusCode, body: impl Into<Bytes>) -> Answer {
    typed(status, "text/plain; charset=utf-8", body)
}

/// Content of this type.
pub fn typed(status: StatusCode, kind: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Full::new(body.into()));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// There is nothing at this path.
pub fn nothing_here() -> Answer {
    text(StatusCode::NOT_FOUND, "there is no such page\n")
}

/// The path is right and the method is not.
pub fn only(methods: &'static str) -> Answer {
    let mut answer = text(
        StatusCode::METHOD_NOT_ALLOWED,
        format!("use {methods} here\n"),
    );
    let headers = answer.headers_mut();
    headers.insert(ALLOW, HeaderValue::from_static(methods));
    answer
}
