//! What is counted, in Prometheus' words. No user, path or token is ever a label.
//!
//! `docs/proxy-metrics.md` lists every name. What a request counts itself is in [`Counts`], kept so
//! that the usual request meets no lock but a histogram's own; the rest is read when a scrape asks.

mod collected;
mod tally;

use crate::pipeline::Pipeline;
use crate::unit::Loaded;
use collected::Collected;
use http::Method;
use keelson_tls::Reloader;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tally::{Label, Tally};
use tokio::sync::watch;

/// Labels of a request: few and bounded.
#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Answered {
    code: u16,
    method: &'static str,
    outcome: &'static str,
}

/// What a caller shows to be known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credential {
    /// Nothing.
    None,
    /// A token in `Authorization`.
    Bearer,
    /// A token among the websocket's subprotocols.
    Websocket,
    /// A client certificate.
    Certificate,
}

/// What came of a credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login {
    /// Known.
    Accepted,
    /// Not known.
    Refused,
    /// It could not be found out.
    Failed,
}

/// Where the answer to a permission check came from. The later ones are the dearer ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Source {
    /// Nobody was asked: the request was answered before.
    #[default]
    None,
    /// Nobody was asked: the path is open to anyone.
    Exempt,
    /// A static rule.
    Static,
    /// Memory.
    Cache,
    /// Memory past its time, in an outage.
    Stale,
    /// The API server.
    Review,
}

const SOURCES: &[&str] = &["none", "exempt", "static", "cache", "stale", "sar"];

impl Source {
    /// Its label in metrics and logs.
    pub fn as_str(self) -> &'static str {
        SOURCES.get(self as usize).copied().unwrap_or_default()
    }
}

/// The answer to a permission check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// Yes.
    Allowed,
    /// No.
    Denied,
    /// It could not be found out.
    Failed,
}

/// What the pipeline counts.
#[derive(Debug)]
pub struct Counts {
    requests: Family<Answered, Counter>,
    /// The counters of what is usual, found once: 200 from the upstream, by method.
    usual: [OnceLock<Counter>; METHODS.len()],
    authn: Tally<12>,
    authz: Tally<18>,
    request_time: Histogram,
    auth_time: Histogram,
    upstream_time: Histogram,
    in_flight: Gauge,
    tunnels: Gauge,
}

const METHODS: [&str; 8] = [
    "other", "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS",
];

impl Default for Counts {
    fn default() -> Self {
        let credential = Label {
            name: "method",
            values: &["none", "bearer", "websocket", "x509"],
        };
        let result = Label {
            name: "result",
            values: &["accepted", "refused", "error"],
        };
        let source = Label {
            name: "source",
            values: SOURCES,
        };
        let decision = Label {
            name: "decision",
            values: &["allowed", "denied", "error"],
        };
        Self {
            requests: Family::default(),
            usual: Default::default(),
            authn: Tally::new([credential, result]),
            authz: Tally::new([source, decision]),
            request_time: times(),
            auth_time: times(),
            upstream_time: times(),
            in_flight: Gauge::default(),
            tunnels: Gauge::default(),
        }
    }
}

/// From what memory answers to what nobody waits for.
pub(crate) fn times() -> Histogram {
    Histogram::new([0.0001, 0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0])
}

impl Counts {
    /// Counts one answer and the time it took.
    pub fn answered(&self, code: u16, method: &Method, outcome: &'static str, took: Duration) {
        self.request_time.observe(took.as_secs_f64());
        let known = known(method);
        let find = || {
            let method = METHODS[known];
            self.requests.get_or_create_owned(&Answered {
                code,
                method,
                outcome,
            })
        };
        match (code, outcome) {
            (200, PROXIED) => self.usual[known].get_or_init(find).inc(),
            _ => find().inc(),
        };
    }

    /// Counts what came of a credential.
    pub fn authenticated(&self, credential: Credential, login: Login) {
        self.authn.add(credential as usize, login as usize);
    }

    /// Counts the answer to one permission check.
    pub fn ruled(&self, source: Source, ruling: Ruling) {
        self.authz.add(source as usize, ruling as usize);
    }

    /// Counts the time both questions took together.
    pub fn decided(&self, took: Duration) {
        self.auth_time.observe(took.as_secs_f64());
    }

    /// Counts the time until the head of the upstream's answer.
    pub fn forwarded(&self, took: Duration) {
        self.upstream_time.observe(took.as_secs_f64());
    }

    /// A request that is not answered yet, as long as this is there.
    pub fn in_flight(&self) -> Present {
        Present::new(&self.in_flight)
    }

    /// A tunnel, as long as this is there.
    pub fn tunnel(&self) -> Present {
        Present::new(&self.tunnels)
    }
}

/// The outcome of a request that reached the upstream.
pub const PROXIED: &str = "proxied";

/// One more, as long as it is there.
#[derive(Debug)]
pub struct Present(Gauge);

impl Present {
    fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Present {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// A client may invent methods, and must not invent series.
fn known(method: &Method) -> usize {
    let place = METHODS.iter().position(|known| method == known);
    place.unwrap_or_default()
}

/// What files say, now and later.
#[derive(Debug)]
pub struct Files {
    /// The configuration and its certificate.
    pub loaded: watch::Receiver<Loaded>,
    /// The certificate of the listener that is always TLS, once there is one.
    pub secure: Arc<OnceLock<Arc<Reloader>>>,
}

/// Everything a scrape is told.
pub fn registry(pipeline: &Arc<Pipeline>, files: Files) -> Registry {
    let mut registry = Registry::with_prefix("keelson_proxy");
    let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
    registry.register("build", "The build that runs", version);
    let counts = &pipeline.counts;
    registry.register(
        "http_requests",
        "Requests answered",
        counts.requests.clone(),
    );
    for (name, help, times) in [
        (
            "http_request_duration_seconds",
            "Time until the head of the answer",
            &counts.request_time,
        ),
        (
            "auth_duration_seconds",
            "Time of both questions together",
            &counts.auth_time,
        ),
        (
            "upstream_duration_seconds",
            "Time until the head of the upstream's answer",
            &counts.upstream_time,
        ),
    ] {
        registry.register(name, help, times.clone());
    }
    for (name, help, gauge) in [
        (
            "http_requests_in_flight",
            "Requests not answered yet",
            &counts.in_flight,
        ),
        (
            "tunnels",
            "Connections that became tunnels",
            &counts.tunnels,
        ),
    ] {
        registry.register(name, help, gauge.clone());
    }
    let (tokens, _) = pipeline.doorkeeper.engines();
    tokens.reviewer().server.traffic().register(&mut registry);
    registry.register_collector(Box::new(Collected {
        pipeline: Arc::clone(pipeline),
        files,
    }));
    registry
}
