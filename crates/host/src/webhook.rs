//! The webhook: asked by the API server about every policy that is written, it changes three small
//! things in it ([`mutation`]) and objects to nothing.
//!
//! It needs no API server and no token. What it says is a patch, so whatever else stands in an
//! object, known or not, stays as it was written, byte for byte. Reading the question and writing
//! the answer is [`review`]; here is what happens over HTTP.

pub mod mutation;
pub mod review;

use crate::answer::{Answer, nothing_here, only, text, typed};
use crate::health::Health;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Bytes, Incoming};
use jiff::Timestamp;
use keelson_proxy::serve::{Origin, Respond};
use mutation::Mutation;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// A question holds an object twice, as it was and as it is to be, and the API server takes objects
/// of up to 3 MiB.
const LARGEST: usize = 8 << 20;

/// How long a question may take to arrive; the API server waits ten seconds for the answer.
const ARRIVAL: Duration = Duration::from_secs(10);

/// Answers the API server.
#[derive(Debug)]
pub struct Webhook {
    health: Arc<Health>,
}

impl Webhook {
    /// A webhook; whether it is ready is for health to say.
    pub fn new(health: Arc<Health>) -> Self {
        Self { health }
    }

    async fn answer(&self, request: Request<Incoming>) -> Answer {
        let path = request.uri().path();
        if let Some(page) = self.health.probe(path) {
            return page;
        }
        let Some(mutation) = Mutation::at(path) else {
            return nothing_here();
        };
        if request.method() != Method::POST {
            return only("POST");
        }
        match arrived(request.into_body()).await {
            Ok(question) => match review::answer(&question, mutation, Timestamp::now()) {
                Ok(answer) => typed(StatusCode::OK, "application/json", answer),
                Err(error) => refused(StatusCode::BAD_REQUEST, &error.to_string()),
            },
            Err((status, why)) => refused(status, why),
        }
    }
}

async fn arrived(body: Incoming) -> Result<Bytes, (StatusCode, &'static str)> {
    match timeout(ARRIVAL, Limited::new(body, LARGEST).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err((
            StatusCode::PAYLOAD_TOO_LARGE,
            "the AdmissionReview is larger than 8 MiB",
        )),
        Ok(Err(_)) => Err((
            StatusCode::BAD_REQUEST,
            "the AdmissionReview did not arrive whole",
        )),
        Err(_) => Err((
            StatusCode::REQUEST_TIMEOUT,
            "the AdmissionReview did not arrive within 10 s",
        )),
    }
}

fn refused(status: StatusCode, why: &str) -> Answer {
    tracing::warn!(why, "a question was not answered");
    text(status, format!("{why}\n"))
}

impl Respond for Webhook {
    type Body = http_body_util::Full<Bytes>;
    type Unanswered = Infallible;

    async fn respond(
        self: Arc<Self>,
        _: Arc<Origin>,
        request: Request<Incoming>,
    ) -> Result<Answer, Infallible> {
        Ok(self.answer(request).await)
    }
}
