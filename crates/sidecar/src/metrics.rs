//! What is counted, under the original's names. The route is open to all: no user, parameter or error
//! is ever a label.

pub mod own;

use crate::authn::Unknown;
use crate::engine::Ledger;
use crate::gate::Gate;
use keelson_wire::{TaskType, UploadOutcome};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use std::sync::Arc;
use std::time::Duration;

const BUCKETS: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfType {
    r#type: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Ended {
    r#type: &'static str,
    status: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Refused {
    reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfChain {
    chain: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Uploaded {
    chain: String,
    outcome: &'static str,
}

/// What is counted.
#[derive(Clone, Debug)]
pub struct Metrics {
    submissions: Family<OfType, Counter>,
    durations: Family<Ended, Histogram, fn() -> Histogram>,
    failures: Family<OfType, Counter>,
    panics: Family<OfType, Counter>,
    rejections: Family<Refused, Counter>,
    upload_success: Family<OfChain, Gauge>,
    upload_time: Family<OfChain, Gauge>,
    upload_height: Family<OfChain, Gauge>,
    upload_outcomes: Family<Uploaded, Counter>,
}

impl Metrics {
    /// Nothing counted yet.
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            durations: Family::new_with_constructor(|| Histogram::new(BUCKETS)),
            submissions: Family::default(),
            failures: Family::default(),
            panics: Family::default(),
            rejections: Family::default(),
            upload_success: Family::default(),
            upload_time: Family::default(),
            upload_height: Family::default(),
            upload_outcomes: Family::default(),
        })
    }

    /// A task is begun because somebody asked.
    pub fn submitted(&self, type_: TaskType) {
        let labels = OfType {
            r#type: type_.as_str(),
        };
        self.submissions.get_or_create(&labels).inc();
    }

    /// A task has ended.
    pub fn executed(&self, type_: TaskType, well: bool, took: Duration) {
        let r#type = type_.as_str();
        let status = if well { "completed" } else { "failed" };
        let durations = self.durations.get_or_create(&Ended { r#type, status });
        durations.observe(took.as_secs_f64());
        if !well {
            self.failures.get_or_create(&OfType { r#type }).inc();
        }
    }

    /// A task has panicked.
    pub fn panicked(&self, type_: TaskType) {
        let labels = OfType {
            r#type: type_.as_str(),
        };
        self.panics.get_or_create(&labels).inc();
        self.failures.get_or_create(&labels).inc();
    }

    /// A caller is refused.
    pub fn refused(&self, why: Unknown) {
        let labels = Refused {
            reason: why.label(),
        };
        self.rejections.get_or_create(&labels).inc();
    }

    /// An upload has ended.
    pub fn upload_ended(&self, chain: &str, outcome: UploadOutcome, unix_seconds: i64) {
        let labels = Uploaded {
            chain: chain.to_owned(),
            outcome: match outcome {
                UploadOutcome::Uploaded => "uploaded",
                UploadOutcome::Noop => "noop",
                UploadOutcome::Error => "error",
            },
        };
        self.upload_outcomes.get_or_create(&labels).inc();
        if outcome != UploadOutcome::Error {
            let of_chain = OfChain {
                chain: labels.chain,
            };
            self.upload_success
                .get_or_create(&of_chain)
                .set(unix_seconds);
        }
    }

    /// This snapshot is the last that was uploaded, now or before the sidecar started.
    pub fn last_upload(&self, chain: &str, height: i64, unix_seconds: i64) {
        let of_chain = OfChain {
            chain: chain.to_owned(),
        };
        self.upload_height.get_or_create(&of_chain).set(height);
        self.upload_time.get_or_create(&of_chain).set(unix_seconds);
    }

    /// Everything a scrape is told.
    pub fn registry(&self, gate: &Arc<Gate>, ledger: &Arc<Ledger>) -> Registry {
        let mut registry = Registry::default();
        for (name, help, counter) in [
            (
                "seictl_task_submissions",
                "Executions accepted",
                &self.submissions,
            ),
            (
                "seictl_task_failures",
                "Executions that failed",
                &self.failures,
            ),
            (
                "seictl_task_panics",
                "Executions that panicked",
                &self.panics,
            ),
        ] {
            registry.register(name, help, counter.clone());
        }
        registry.register(
            "seictl_task_execution_duration_seconds",
            "How long executions took",
            self.durations.clone(),
        );
        registry.register(
            "seictl_sidecar_authn_rejections",
            "Callers refused",
            self.rejections.clone(),
        );
        for (name, help, gauge) in [
            (
                "seictl_snapshot_upload_last_run_success_timestamp_seconds",
                "When an upload last ended well",
                &self.upload_success,
            ),
            (
                "seictl_snapshot_upload_last_uploaded_timestamp_seconds",
                "When a snapshot was last uploaded",
                &self.upload_time,
            ),
            (
                "seictl_snapshot_upload_last_uploaded_height",
                "The height of the last uploaded snapshot",
                &self.upload_height,
            ),
        ] {
            registry.register(name, help, gauge.clone());
        }
        registry.register(
            "seictl_snapshot_upload_outcome",
            "Uploads by what came of them",
            self.upload_outcomes.clone(),
        );
        let version = Info::new([("version", env!("CARGO_PKG_VERSION"))]);
        registry.register("keelson_sidecar_build", "The build that runs", version);
        registry.register_collector(Box::new(Now {
            gate: Arc::clone(gate),
            ledger: Arc::clone(ledger),
        }));
        registry.register_collector(Box::new(own::Own));
        registry
    }
}

/// What is true at the moment of the scrape.
#[derive(Debug)]
struct Now {
    gate: Arc<Gate>,
    ledger: Arc<Ledger>,
}

impl Collector for Now {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let ready = ConstGauge::new(i64::from(self.gate.is_open()));
        let name = "keelson_sidecar_ready";
        let metric =
            encoder.encode_descriptor(name, "Whether the gate is open", None, MetricType::Gauge)?;
        ready.encode(metric)?;
        let running = self.ledger.by_type();
        let count = |(count, _): &(u64, crate::work::Amount)| Some(*count);
        let bytes = |(_, amount): &(u64, crate::work::Amount)| Some(amount.bytes);
        let total = |(_, amount): &(u64, crate::work::Amount)| amount.total;
        type Number = fn(&(u64, crate::work::Amount)) -> Option<u64>;
        let families: [(&str, &str, Number); 3] = [
            (
                "keelson_sidecar_tasks_running",
                "Tasks that run or wait to",
                count,
            ),
            (
                "keelson_sidecar_task_bytes_done",
                "Bytes done by tasks that run",
                bytes,
            ),
            (
                "keelson_sidecar_task_bytes_total",
                "Bytes tasks that run have to do",
                total,
            ),
        ];
        for (name, help, number) in families {
            let mut family = encoder.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (type_, sums) in &running {
                let Some(number) = number(sums) else { continue };
                let labels = [("type", type_.as_str())];
                let metric = family.encode_family(&labels)?;
                ConstGauge::new(i64::try_from(number).unwrap_or(i64::MAX)).encode(metric)?;
            }
        }
        Ok(())
    }
}
