//! Calls to the API server in numbers: how many, what came back, how long it took.

use super::{Answer, NotAnswered};
use crate::metrics::times;
use crate::review::{ACCESS_REVIEWS, TOKEN_REVIEWS};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;
use std::time::Duration;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Called {
    api: &'static str,
    code: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Api {
    api: &'static str,
}

/// What has been called so far.
#[derive(Debug)]
pub struct Traffic {
    calls: Family<Called, Counter>,
    times: Family<Api, Histogram>,
}

impl Default for Traffic {
    fn default() -> Self {
        Self {
            calls: Family::default(),
            times: Family::new_with_constructor(times),
        }
    }
}

impl Traffic {
    /// Adds its series to what a scrape is told.
    pub fn register(&self, registry: &mut Registry) {
        let calls = self.calls.clone();
        registry.register("apiserver_requests", "Calls to the API server", calls);
        let name = "apiserver_request_duration_seconds";
        registry.register(name, "Time of one call", self.times.clone());
    }

    pub(super) fn note(&self, path: &str, answered: &Result<Answer, NotAnswered>, took: Duration) {
        let api = match path {
            TOKEN_REVIEWS => "authn",
            ACCESS_REVIEWS => "authz",
            _ => "other",
        };
        let code = match answered {
            Ok(answer) => answer.status.as_str().to_owned(),
            Err(error) => word(error).to_owned(),
        };
        self.calls.get_or_create_owned(&Called { api, code }).inc();
        let times = self.times.get_or_create_owned(&Api { api });
        times.observe(took.as_secs_f64());
    }
}

fn word(error: &NotAnswered) -> &'static str {
    match error {
        NotAnswered::Refused { .. } => "refused",
        NotAnswered::NotConnected { .. } => "not_connected",
        NotAnswered::Broken(_) | NotAnswered::NotWhole => "broken",
        NotAnswered::TooSlow { .. } => "timeout",
        NotAnswered::TooLarge
        | NotAnswered::PathNotUsable { .. }
        | NotAnswered::NotTrusted(_)
        | NotAnswered::NotAuthenticated(_) => "error",
    }
}
