//! The proxy's own endpoints, on a port of their own and always in plaintext: nothing here depends
//! on the mode, the certificate, the upstream or the API server.

use crate::serve::{Origin, Respond};
use crate::unit::Loaded;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use prometheus_client::registry::Registry;
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// Answers for the proxy itself.
#[derive(Debug)]
pub struct Health {
    /// What is in force.
    pub loaded: watch::Receiver<Loaded>,
    /// What is counted.
    pub registry: Registry,
    /// Whether the proxy is about to end.
    pub leaving: CancellationToken,
}

impl Health {
    fn answer(&self, path: &str) -> Response<Full<Bytes>> {
        match path {
            "/healthz" | "/livez" => text(StatusCode::OK, "ok".into()),
            "/readyz" if self.leaving.is_cancelled() => text(
                StatusCode::SERVICE_UNAVAILABLE,
                "the proxy is about to end\n".into(),
            ),
            "/readyz" => match self.loaded.borrow().tls_mode {
                "shut" => text(
                    StatusCode::SERVICE_UNAVAILABLE,
                    "TLS is required and there is no usable certificate\n".into(),
                ),
                _ => text(StatusCode::OK, "ok".into()),
            },
            "/loaded" => {
                let told = serde_json::to_string(&*self.loaded.borrow()).unwrap_or_default();
                typed(StatusCode::OK, "application/json", told)
            }
            "/metrics" => {
                let mut told = String::new();
                match prometheus_client::encoding::text::encode(&mut told, &self.registry) {
                    Ok(()) => typed(
                        StatusCode::OK,
                        "application/openmetrics-text; version=1.0.0; charset=utf-8",
                        told,
                    ),
                    Err(_) => text(
                        StatusCode::INTERNAL_SERVER_ERROR,
                        "metrics cannot be written\n".into(),
                    ),
                }
            }
            _ => text(StatusCode::NOT_FOUND, "404 page not found\n".into()),
        }
    }
}

impl Respond for Health {
    type Body = Full<Bytes>;
    type Unanswered = Infallible;

    async fn respond(
        self: Arc<Self>,
        _: Arc<Origin>,
        request: Request<Incoming>,
    ) -> Result<Response<Full<Bytes>>, Infallible> {
        Ok(self.answer(request.uri().path()))
    }
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    typed(status, "text/plain; charset=utf-8", body)
}

fn typed(status: StatusCode, kind: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}
