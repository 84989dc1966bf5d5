//! Metrics: what happened is counted when it happens, what is so is read when it is asked for.
//!
//! Names, labels and buckets are the original's. A node that is gone has no series, because there is
//! nothing to read; a plan is active while it stands in a status.

use std::sync::{Arc, Mutex, PoisonError};

use jiff::Timestamp;
use keelson_api::SeiNode;
use keelson_api::condition::{Truth, truth};
use keelson_api::node_condition::NodeCondition;
use keelson_api::node_status::NodePhase;
use keelson_cluster::{Key, Standing};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::node::record::Written;
use crate::node::report::Ended;
use crate::node::world::World;

const CONTROLLER: &str = "seinode";

const PHASE_SECONDS: [f64; 10] = [10., 30., 60., 120., 300., 600., 900., 1200., 1800., 3600.];
const PLAN_SECONDS: [f64; 9] = [1., 5., 10., 30., 60., 120., 300., 600., 1800.];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Transition {
    controller: &'static str,
    namespace: String,
    from_phase: String,
    to_phase: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Stay {
    namespace: String,
    chain_id: String,
    phase: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Probe {
    controller: &'static str,
    namespace: String,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PlanEnd {
    controller: &'static str,
    namespace: String,
    plan_type: &'static str,
    outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Trouble {
    controller: &'static str,
    namespace: String,
}

/// What is counted.
#[derive(Clone)]
pub struct Metrics {
    transitions: Family<Transition, Counter>,
    stays: Family<Stay, Histogram>,
    probes: Family<Probe, Counter>,
    plans: Family<PlanEnd, Histogram>,
    errors: Family<Trouble, Counter>,
    world: World,
    standing: Standing,
}

impl Metrics {
    /// Nothing happened yet.
    pub fn new(world: World, standing: Standing) -> Self {
        Self {
            transitions: Family::default(),
            stays: Family::new_with_constructor(|| Histogram::new(PHASE_SECONDS)),
            probes: Family::default(),
            plans: Family::new_with_constructor(|| Histogram::new(PLAN_SECONDS)),
            errors: Family::default(),
            world,
            standing,
        }
    }

    /// Puts everything on a page.
    pub fn register(&self, registry: &mut Registry) {
        registry.register(
            "sei_controller_seinode_phase_transitions",
            "Changes of phase",
            self.transitions.clone(),
        );
        registry.register(
            "sei_controller_seinode_phase_duration_seconds",
            "How long nodes were in a phase they left",
            self.stays.clone(),
        );
        registry.register(
            "sei_controller_seinode_sidecar_health_probes",
            "Looks at sidecars, by what they found",
            self.probes.clone(),
        );
        registry.register(
            "sei_controller_plan_duration_seconds",
            "How long plans took, by how they ended",
            self.plans.clone(),
        );
        registry.register(
            "sei_controller_reconcile_errors",
            "Looks at nodes that ended in an error",
            self.errors.clone(),
        );
        registry.register_collector(Box::new(Present {
            world: self.world.clone(),
            standing: self.standing.clone(),
            one_scrape: Arc::default(),
        }));
    }

    pub(crate) fn phase_changed(&self, before: &SeiNode, to: NodePhase) {
        let status = before.status.as_ref();
        let from = status.and_then(|it| it.phase);
        let namespace = before.metadata.namespace.clone().unwrap_or_default();
        let transition = Transition {
            controller: CONTROLLER,
            namespace: namespace.clone(),
            from_phase: from.map_or_else(String::new, |it| it.to_string()),
            to_phase: to.as_str(),
        };
        self.transitions.get_or_create(&transition).inc();
        let since = status.and_then(|it| it.phase_transition_time.as_ref());
        if let (Some(from), Some(since)) = (from, since) {
            let stay = Stay {
                namespace,
                chain_id: before.spec.chain_id.clone(),
                phase: from.as_str(),
            };
            self.stays.get_or_create(&stay).observe(seconds(since.0));
        }
    }

    pub(crate) fn probed(&self, key: &Key, approved: Option<bool>) {
        let outcome = match approved {
            Some(true) => "ready",
            Some(false) => "not_ready",
            None => "unreachable",
        };
        let probe = Probe {
            controller: CONTROLLER,
            namespace: key.namespace.clone(),
            outcome,
        };
        self.probes.get_or_create(&probe).inc();
    }

    pub(crate) fn plan_ended(&self, key: &Key, ended: &Ended) {
        let (plan, outcome): (&Written, _) = match ended {
            Ended::Complete(plan) => (plan, "complete"),
            Ended::Failed(plan) => (plan, "failed"),
        };
        let end = PlanEnd {
            controller: CONTROLLER,
            namespace: key.namespace.clone(),
            plan_type: plan.plan.kind.as_str(),
            outcome,
        };
        let took = seconds(plan.started_at);
        self.plans.get_or_create(&end).observe(took);
    }

    pub(crate) fn troubled(&self, key: &Key) {
        let trouble = Trouble {
            controller: CONTROLLER,
            namespace: key.namespace.clone(),
        };
        self.errors.get_or_create(&trouble).inc();
    }
}

fn seconds(since: Timestamp) -> f64 {
    Timestamp::now().duration_since(since).as_secs_f64().max(0.)
}

/// What is so, read when it is asked for.
struct Present {
    world: World,
    standing: Standing,
    /// Held by the one scrape that reads: reading a large fleet twice at once helps nobody.
    one_scrape: Arc<Mutex<()>>,
}

impl std::fmt::Debug for Present {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Present")
    }
}

impl Collector for Present {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let _alone = self
            .one_scrape
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let nodes = self.world.nodes.all();
        let mut phases = vec![];
        let mut ready = vec![];
        let mut active = std::collections::BTreeMap::<&str, i64>::new();
        for (key, node) in &nodes {
            let Some(status) = &node.status else { continue };
            for phase in NodePhase::ALL {
                let is = i64::from(status.phase == Some(*phase));
                let labels = [
                    ("namespace", key.namespace.as_str()),
                    ("name", key.name.as_str()),
                    ("phase", phase.as_str()),
                ];
                phases.push((labels, is));
            }
            if status.phase == Some(NodePhase::Running) {
                let is = truth(&status.conditions, NodeCondition::SidecarReady) == Truth::True;
                let labels = [
                    ("namespace", key.namespace.as_str()),
                    ("name", key.name.as_str()),
                ];
                ready.push((labels, i64::from(is)));
            }
            *active.entry(key.namespace.as_str()).or_default() += i64::from(status.plan.is_some());
        }
        gauges(
            &mut encoder,
            "sei_controller_seinode_phase",
            "Which phase a node is in",
            &phases,
        )?;
        gauges(
            &mut encoder,
            "sei_controller_seinode_sidecar_ready",
            "Whether the sidecar of a running node is ready",
            &ready,
        )?;
        let active: Vec<_> = active
            .into_iter()
            .map(|(namespace, count)| {
                (
                    [("controller", CONTROLLER), ("namespace", namespace)],
                    count,
                )
            })
            .collect();
        gauges(
            &mut encoder,
            "sei_controller_plan_active",
            "Plans that are being carried out",
            &active,
        )?;
        let leading = [([] as [(&str, &str); 0], i64::from(self.standing.leading()))];
        gauges(
            &mut encoder,
            "sei_controller_leading",
            "Whether this process does the work",
            &leading,
        )
    }
}

fn gauges<const N: usize>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    series: &[([(&str, &str); N], i64)],
) -> Result<(), std::fmt::Error> {
    let kind = prometheus_client::metrics::MetricType::Gauge;
    let mut family = encoder.encode_descriptor(name, help, None, kind)?;
    for (labels, value) in series {
        let labels = labels.as_slice();
        let series = family.encode_family(&labels)?;
        ConstGauge::new(*value).encode(series)?;
    }
    Ok(())
}
