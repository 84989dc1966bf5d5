//! The pages that others read: metrics, and whether we live and are ready.
//!
//! What stands on them is computed when it is asked for: metrics by their collectors, readiness by
//! its checks, so neither can go stale. What there is to say is the controllers'; here are the pages
//! and a small server with limits.

mod server;

pub use server::serve;

use http::{Method, StatusCode};
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use std::sync::{Arc, Mutex, PoisonError};

type Check = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// What must hold for us to be ready. Clones share it.
#[derive(Clone, Default)]
pub struct Readiness {
    checks: Arc<Mutex<Vec<(String, Check)>>>,
}

impl Readiness {
    /// Nothing must hold.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more thing that must hold; where it does not, the check says so in a sentence.
    pub fn add(
        &self,
        name: impl Into<String>,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        checks.push((name.into(), Box::new(check)));
    }

    /// What does not hold, one line for each.
    pub fn missing(&self) -> Vec<String> {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |(name, check): &(String, Check)| {
            let why = check().err()?;
            Some(format!("{name}: {why}"))
        };
        checks.iter().filter_map(failed).collect()
    }
}

/// The pages a server has. Clones share what stands on them.
#[derive(Clone, Default)]
pub struct Pages {
    metrics: Option<Arc<Mutex<Registry>>>,
    readiness: Option<Readiness>,
}

/// A page, or why there is none.
#[derive(Debug, PartialEq, Eq)]
struct Page {
    status: StatusCode,
    kind: &'static str,
    text: String,
}

impl Pages {
    /// No pages.
    pub fn new() -> Self {
        Self::default()
    }

    /// With `/metrics`, of everything that is registered when it is asked for.
    pub fn with_metrics(mut self, registry: Arc<Mutex<Registry>>) -> Self {
        self.metrics = Some(registry);
        self
    }

    /// With `/healthz`, `/livez` and `/readyz`.
    pub fn with_probes(mut self, readiness: Readiness) -> Self {
        self.readiness = Some(readiness);
        self
    }

    /// The page at a path.
    fn page(&self, method: &Method, path: &str) -> Page {
        let known = match path {
            "/metrics" => self.metrics.as_ref().map(metrics),
            "/readyz" => self.readiness.as_ref().map(readyz),
            "/healthz" | "/livez" => self
                .readiness
                .as_ref()
                .map(|_| plain(StatusCode::OK, "ok\n")),
            _ => None,
        };
        match known {
            None => plain(StatusCode::NOT_FOUND, "there is no such page\n"),
            Some(_) if method != Method::GET && method != Method::HEAD => plain(
                StatusCode::METHOD_NOT_ALLOWED,
                "this page can only be read\n",
            ),
            Some(page) => page,
        }
    }
}

fn plain(status: StatusCode, text: impl Into<String>) -> Page {
    Page {
        status,
        kind: "text/plain; charset=utf-8",
        text: text.into(),
    }
}

fn readyz(readiness: &Readiness) -> Page {
    let missing = readiness.missing();
    match missing.is_empty() {
        true => plain(StatusCode::OK, "ok\n"),
        false => plain(StatusCode::SERVICE_UNAVAILABLE, missing.join("\n") + "\n"),
    }
}

fn metrics(registry: &Arc<Mutex<Registry>>) -> Page {
    let registry = registry.lock().unwrap_or_else(PoisonError::into_inner);
    let mut text = String::new();
    match encode(&mut text, &registry) {
        Ok(()) => Page {
            status: StatusCode::OK,
            kind: "application/openmetrics-text; version=1.0.0; charset=utf-8",
            text,
        },
        Err(_) => plain(
            StatusCode::INTERNAL_SERVER_ERROR,
            "a collector did not write its metrics\n",
        ),
    }
}
