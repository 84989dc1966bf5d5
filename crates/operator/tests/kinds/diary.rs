//! Everything the status of a node ever said of plans, and what its sidecar was asked for.

use std::time::Duration;

use futures::StreamExt;
use keelson_api::SeiNode;
use keelson_api::node_condition::NodeCondition;
use keelson_api::node_status::{NodePhase, SeiNodeStatus};
use keelson_api::plan::TaskPlan;
use keelson_api::task::PlanKind;
use kube::ResourceExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{Config, watcher};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::stage::Scene;

/// How long the diary may lag behind what was seen elsewhere.
const LAG: Duration = Duration::from_secs(30);

/// Every version of a node, in order. Begin it before the node is made.
pub(crate) struct Diary {
    versions: watch::Receiver<Vec<SeiNode>>,
    writer: JoinHandle<()>,
}

impl Drop for Diary {
    fn drop(&mut self) {
        self.writer.abort();
    }
}

impl Diary {
    pub(crate) fn of(scene: &Scene, node: &str) -> Self {
        let config = Config::default().fields(&format!("metadata.name={node}"));
        let mut nodes = watcher(scene.api::<SeiNode>(), config)
            .default_backoff()
            .applied_objects()
            .boxed();
        let (sender, versions) = watch::channel(Vec::new());
        let writer = tokio::spawn(async move {
            while let Some(node) = nodes.next().await {
                // A watch that broke begins anew by itself.
                if let Ok(node) = node {
                    sender.send_modify(|all: &mut Vec<SeiNode>| all.push(node));
                }
            }
        });
        Self { versions, writer }
    }

    /// Every plan there ever was, as it was first written, once this version was seen.
    pub(crate) async fn plans(&self, up_to: &SeiNode) -> Vec<TaskPlan> {
        let version = up_to.resource_version();
        let mut versions = self.versions.clone();
        let seen = versions.wait_for(|all| all.iter().any(|it| it.resource_version() == version));
        let all = match timeout(LAG, seen).await {
            Ok(all) => all.expect("a diary that is written").clone(),
            Err(_) => panic!("the watch has not shown version {version:?} within {LAG:?}"),
        };
        let mut plans: Vec<TaskPlan> = Vec::new();
        for plan in all.into_iter().filter_map(|it| it.status?.plan) {
            if plans.iter().all(|it| it.id != plan.id) {
                plans.push(plan);
            }
        }
        plans
    }
}

/// The tasks of a plan, those of the bootstrap pod with their stage.
pub(crate) fn tasks(plan: &TaskPlan) -> Vec<String> {
    let named = |it: &keelson_api::plan::PlannedTask| match &it.stage {
        Some(stage) => format!("{stage}/{}", it.type_),
        None => it.type_.to_string(),
    };
    plan.tasks.iter().map(named).collect()
}

/// What the sidecars of a node were asked for, in order, with parameters.
pub(crate) fn submissions(scene: &Scene, node: &str) -> Vec<(String, Value)> {
    let submitted = scene.seen(node).submitted.into_iter();
    submitted
        .map(|it| (it.type_.to_string(), Value::Object(it.params)))
        .collect()
}

/// A node that came to run by this plan and no other, and was asked for these tasks.
pub(crate) async fn runs_by(
    scene: &Scene,
    diary: &Diary,
    node: &str,
    (kind, plan): (PlanKind, &str),
    asked: &[(&str, Value)],
) -> SeiNodeStatus {
    let settled = scene.settled(node).await;
    let plans = diary.plans(&settled).await;
    let lists: Vec<_> = plans.iter().map(tasks).collect();
    let expected: Vec<_> = plan.split_whitespace().map(str::to_owned).collect();
    assert_eq!(lists, [expected], "one plan and no second");
    assert_eq!(plans[0].kind, Some(kind));
    assert_eq!(plans[0].target_phase, Some(NodePhase::Running));
    assert_eq!(plans[0].failed_phase, Some(NodePhase::Failed));
    let asked = asked.iter();
    let asked = asked.map(|(type_, params)| ((*type_).to_owned(), params.clone()));
    assert_eq!(submissions(scene, node), asked.collect::<Vec<_>>());
    let status = settled.status.clone().expect("a status");
    assert_eq!(status.phase, Some(NodePhase::Running));
    assert_eq!(status.plan, None);
    assert_eq!(status.last_failed_plan, None);
    assert_eq!(
        status.current_image.as_deref(),
        Some("registry.example/seid:v6.0.0")
    );
    assert_eq!(
        status.current_sidecar_image.as_deref(),
        Some("registry.example/keelson-sidecar:1")
    );
    let namespace = scene.namespace();
    assert_eq!(
        status.sidecar_url,
        Some(format!(
            "http://{node}-0.{node}.{namespace}.svc.cluster.local:8443"
        ))
    );
    // Whatever does not apply is said not to.
    for type_ in NodeCondition::ALL {
        let mut all = status.conditions.iter();
        let found = all.find(|it| it.type_ == type_.as_str());
        let of = found.and_then(|it| it.observed_generation);
        assert_eq!(of, settled.metadata.generation, "{type_}");
    }
    assert_eq!(scene.violations(), Vec::<String>::new());
    status
}

/// What configures and approves a node of a mode.
pub(crate) fn configured(mode: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("configure-genesis", json!({})),
        ("config-apply", json!({ "mode": mode })),
        ("config-validate", json!({})),
        ("mark-ready", json!({})),
    ]
}
