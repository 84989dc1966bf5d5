//! What is counted, in Prometheus' words. No user, path or token is ever a label.

use crate::decision::{Counters, Digest, Engine, Reviewer};
use crate::pipeline::Pipeline;
use http::Method;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::sync::Arc;

/// Labels of a request: few and bounded.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Answered {
    code: u16,
    method: &'static str,
    outcome: &'static str,
}

/// What the pipeline counts.
#[derive(Clone, Debug, Default)]
pub struct Counts {
    requests: Family<Answered, Counter>,
}

impl Counts {
    /// Counts one answer.
    pub fn answered(&self, code: u16, method: &Method, outcome: &'static str) {
        let labels = Answered {
            code,
            method: known(method),
            outcome,
        };
        self.requests.get_or_create(&labels).inc();
    }
}

/// A client may invent methods, and must not invent series.
fn known(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}

/// Everything a scrape is told.
pub fn registry(pipeline: &Arc<Pipeline>) -> Registry {
    let mut registry = Registry::with_prefix("keelson_proxy");
    let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("build", "The build that runs", version);
    let requests = pipeline.counts.requests.clone();
    registry.register("http_requests", "Requests answered", requests);
    registry.register_collector(Box::new(Reviews(Arc::clone(pipeline))));
    registry
}

/// The counters of both engines, read when asked for.
#[derive(Debug)]
struct Reviews(Arc<Pipeline>);

impl Collector for Reviews {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let (tokens, access) = self.0.doorkeeper.engines();
        let engines = [("authn", facts(tokens)), ("authz", facts(access))];
        for (index, (name, help, _)) in facts(tokens).iter().enumerate() {
            let kind = prometheus_client::metrics::MetricType::Counter;
            let mut family = encoder.encode_descriptor(name, help, None, kind)?;
            for (api, facts) in &engines {
                let labels = [("api", *api)];
                let metric = family.encode_family(&labels)?;
                ConstCounter::new(facts[index].2).encode(metric)?;
            }
        }
        Ok(())
    }
}

type Fact = (&'static str, &'static str, u64);

fn facts<R: Reviewer>(engine: &Engine<Digest, R>) -> [Fact; 9] {
    let Counters {
        hits,
        misses,
        coalesced,
        evictions,
        refreshes,
        stale,
        calls,
        failures,
        opened,
        ..
    } = engine.counters();
    [
        ("cache_hits", "Answers from memory", hits.get()),
        (
            "cache_misses",
            "Questions memory could not answer",
            misses.get(),
        ),
        (
            "cache_coalesced",
            "Questions that waited for another's answer",
            coalesced.get(),
        ),
        (
            "cache_evictions",
            "Answers forgotten for want of room",
            evictions.get(),
        ),
        (
            "cache_refreshes",
            "Answers renewed before their end",
            refreshes.get(),
        ),
        (
            "cache_stale",
            "Answers used past their time in an outage",
            stale.get(),
        ),
        ("apiserver_requests", "Calls to the API server", calls.get()),
        (
            "apiserver_failures",
            "Calls that brought no answer",
            failures.get(),
        ),
        (
            "breaker_opened",
            "Times the API server was found to be down",
            opened.get(),
        ),
    ]
}
