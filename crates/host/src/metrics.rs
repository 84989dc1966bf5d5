//! The metrics: what policies, enactments and hosts are in, counted from watches.
//!
//! [`sources`] follows the API server and keeps of each object the few words that are counted
//! ([`seen`], read leniently by [`lenient`]); [`series`] makes series of them when somebody asks.
//! [`door`] knows who may. Without an API server what was last known is served, and its age with it.

pub mod door;
pub mod lenient;
pub mod seen;
pub mod series;
pub mod slim;
pub mod sources;

pub use series::families_as_json;

use crate::answer::{Answer, nothing_here, only};
use crate::cli::Cli;
use crate::health;
use crate::serving::Base;
use door::Door;
use http::{Method, Request, Response};
use hyper::body::{Bytes, Incoming};
use keelson_api::host::METRICS_PATH;
use keelson_api::nmstate::MetricsAuth;
use keelson_proxy::serve::{Origin, Respond};
use prometheus_client::registry::Registry;
use series::Series;
use sources::Sources;
use std::convert::Infallible;
use std::sync::Arc;

/// Serves `/metrics` and nothing else.
#[derive(Debug)]
pub struct Exporter {
    /// What is counted.
    pub sources: Sources,
    door: Option<Door>,
    registry: Registry,
}

impl Exporter {
    /// An exporter that knows nothing yet and is connected to nobody.
    pub fn new(cli: &Cli, base: &Base) -> Result<Self, String> {
        let sources = Sources::default();
        let mut registry = Registry::default();
        base.files.register(&mut registry);
        registry.register_collector(Box::new(Series(sources.clone())));
        let door = match cli.metrics_auth {
            MetricsAuth::TokenReview => Some(Door::new(cli.kubeconfig.as_deref())?),
            MetricsAuth::None => {
                tracing::warn!("metrics are served to everyone: readers are not checked");
                None
            }
        };
        Ok(Self {
            sources,
            door,
            registry,
        })
    }

    async fn answer(&self, origin: &Origin, request: &Request<Incoming>) -> Answer {
        if request.uri().path() != METRICS_PATH {
            return nothing_here();
        }
        if let Some(door) = &self.door
            && let Err(outcome) = door
                .admit(origin, request.method(), request.headers())
                .await
        {
            return told(outcome.reply(request.method()));
        }
        match *request.method() {
            Method::GET | Method::HEAD => health::metrics(&self.registry),
            _ => only("GET, HEAD"),
        }
    }
}

fn told(reply: keelson_proxy::outcome::Reply) -> Answer {
    let mut answer = Response::new(Bytes::from(reply.body).into());
    *answer.status_mut() = reply.status;
    answer.headers_mut().extend(reply.headers);
    answer
}

impl Respond for Exporter {
    type Body = http_body_util::Full<Bytes>;
    type Unanswered = Infallible;

    async fn respond(
        self: Arc<Self>,
        origin: Arc<Origin>,
        request: Request<Incoming>,
    ) -> Result<Answer, Infallible> {
        Ok(self.answer(&origin, &request).await)
    }
}
