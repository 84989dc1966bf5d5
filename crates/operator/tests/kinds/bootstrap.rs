//! Nodes whose data a Job prepares: the Job is over and gone before the node's own pod comes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use keelson_api::node_condition::{NodeCondition, NodeReason};
use keelson_api::node_status::NodePhase;
use keelson_api::task::PlanKind;
use keelson_operator::node::points::{Point, Points};
use keelson_plan::{Stage as In, Step, Task};
use keelson_wire::TaskType;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use serde_json::{Value, json};

use crate::diary::{Diary, configured, runs_by};
use crate::operator::{Operator, settings};
use crate::stage::{Scene, Stage, platform};

const JOB: &str = "node-bootstrap";

/// Objects of the bootstrap that are there when a step of the node's own is about to be done.
type Left = Arc<Mutex<Vec<String>>>;

/// An operator that writes down what of the bootstrap is there when the StatefulSet is applied.
async fn watched(scene: &Scene) -> (Operator, Left) {
    let left = Left::default();
    let (client, namespace, told) = (
        scene.client(),
        scene.namespace().to_owned(),
        Arc::clone(&left),
    );
    let points = Points::guarded(move |_, point| {
        let own = Step {
            stage: In::Node,
            task: Task::ApplyStatefulSet,
        };
        let (client, namespace, told) = (client.clone(), namespace.clone(), Arc::clone(&told));
        async move {
            if point == Point::BeforeStep(own) {
                let found = leftover(client, &namespace).await;
                let mut told = told.lock().unwrap_or_else(PoisonError::into_inner);
                told.push(format!("{found:?}"));
            }
        }
        .boxed()
    });
    let settings = settings(platform(), scene.namespace());
    let operator = Operator::with(scene, scene.operator_client(), settings, points).await;
    (operator, left)
}

async fn leftover(client: kube::Client, namespace: &str) -> Vec<String> {
    let of_bootstrap = ListParams::default().labels("sei.io/component=bootstrap");
    let mut found = Vec::new();
    macro_rules! look {
        ($kind:ty) => {
            let api = Api::<$kind>::namespaced(client.clone(), namespace);
            let list = api.list(&of_bootstrap).await.expect("a list");
            let name = |it: $kind| it.metadata.name.unwrap_or_default();
            found.extend(list.into_iter().map(name));
        };
    }
    look!(Job);
    look!(Pod);
    look!(Service);
    found
}

fn plan(prepare: &str) -> String {
    format!(
        "{prepare} bootstrap/deploy-bootstrap-service bootstrap/deploy-bootstrap-job \
         bootstrap/snapshot-restore bootstrap/configure-genesis bootstrap/config-apply \
         bootstrap/configure-state-sync bootstrap/config-validate bootstrap/mark-ready \
         bootstrap/await-bootstrap-complete bootstrap/teardown-bootstrap apply-statefulset \
         apply-service observe-image configure-genesis config-apply config-validate mark-ready"
    )
}

/// What a bootstrap pod and then the node's own are asked for.
fn asked(mode: &str, height: i64) -> Vec<(&'static str, Value)> {
    let mut first = configured(mode);
    first.insert(0, ("snapshot-restore", json!({ "targetHeight": height })));
    first.insert(
        3,
        ("configure-state-sync", json!({ "useLocalSnapshot": true })),
    );
    first.extend(configured(mode));
    first
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_replays_and_is_gone_before_the_node_has_a_pod() {
    let scene = Stage::shared().await.scene("job").await;
    scene.script("node", |script| script.stop = Duration::from_secs(1));
    let (_operator, left) = watched(&scene).await;
    let diary = Diary::of(&scene, "node");
    scene.bootstrapped("node", 1000, json!({})).await;
    let prepare = "ensure-data-pvc apply-rbac-proxy-config apply-network-policy";
    let plan = plan(prepare);
    let asked = asked("full", 1000);
    runs_by(&scene, &diary, "node", (PlanKind::Bootstrap, &plan), &asked).await;
    let left = left.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(!left.is_empty(), "nobody looked");
    assert!(left.iter().all(|found| found == "[]"), "{left:?}");
    let seen = scene.seen("node");
    assert_eq!(seen.begun(TaskType::SnapshotRestore), 1);
    assert_eq!((seen.created.len(), seen.process_starts), (2, 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_imported_claim_is_what_the_job_fills_too() {
    let scene = Stage::shared().await.scene("import").await;
    let (_operator, _) = watched(&scene).await;
    scene.claim("old-data", "2000Gi").await;
    scene.script("node", |script| script.replay = Duration::from_secs(600));
    let import = json!({ "dataVolume": { "import": { "pvcName": "old-data" } } });
    scene.bootstrapped("node", 1000, import).await;
    let job = scene
        .until_object("the Job", JOB, |job: Option<&Job>| job.is_some())
        .await
        .expect("a Job");
    let spec = job.spec.and_then(|it| it.template.spec).expect("a pod");
    let claims: Vec<_> = spec
        .volumes
        .iter()
        .flatten()
        .filter_map(|it| Some(it.persistent_volume_claim.as_ref()?.claim_name.clone()))
        .collect();
    assert_eq!(claims, ["old-data"]);
    let claims = scene.api::<PersistentVolumeClaim>();
    let own = claims.get_opt("data-node").await.expect("an answer");
    assert!(own.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_of_a_validator_is_in_the_pod_that_replays() {
    let scene = Stage::shared().await.scene("nokeys").await;
    let (_operator, _) = watched(&scene).await;
    let diary = Diary::of(&scene, "node");
    let snapshot = json!({ "snapshot": {
        "s3": { "targetHeight": 1000 }, "bootstrapImage": "registry.example/seid:v5.9.0",
    }});
    scene.script("node", |script| script.replay = Duration::from_secs(600));
    let made = scene.validator("node", json!({ "paused": true })).await;
    drop(made);
    scene
        .edit("node", json!({ "paused": false, "validator": snapshot }))
        .await;
    let job = scene
        .until_object("the Job", JOB, |job: Option<&Job>| job.is_some())
        .await
        .expect("a Job");
    let text = serde_json::to_string(&job.spec).expect("a text");
    for secret in ["node-signing", "node-node", "signing-key", "node-key"] {
        assert!(
            !text.contains(&format!("\"{secret}\"")),
            "{secret} in {text}"
        );
    }
    scene
        .until_seen("its process", "node", |seen| seen.process_starts == 1)
        .await;
    let pods = scene.api::<Pod>();
    let list = pods.list(&ListParams::default()).await.expect("a list");
    assert_eq!(list.items.len(), 1);
    scene.script("node", |script| script.replay = Duration::ZERO);
    scene.end_replay("node");
    let plan = plan(
        "ensure-data-pvc validate-signing-key validate-node-key apply-rbac-proxy-config \
         apply-network-policy",
    );
    let asked = asked("validator", 1000);
    runs_by(&scene, &diary, "node", (PlanKind::Bootstrap, &plan), &asked).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_fails_is_said_and_tried_again_when_asked_without_another_restore() {
    let scene = Stage::shared().await.scene("jobfails").await;
    let (_operator, left) = watched(&scene).await;
    scene.script("node", |script| script.replay = Duration::from_secs(600));
    scene.bootstrapped("node", 1000, json!({})).await;
    scene
        .until_seen("the replay", "node", |seen| seen.process_starts == 1)
        .await;
    // A drained machine: a Job that is not tried again by itself has failed.
    let pods = scene.api::<Pod>();
    let list = pods.list(&ListParams::default()).await.expect("a list");
    let pod = list.items[0].metadata.name.clone().expect("a name");
    scene.delete::<Pod>(&pod).await;
    let node = scene
        .until_condition("node", NodeCondition::Stalled, true, NodeReason::PlanFailed)
        .await;
    let status = node.status.expect("a status");
    assert_eq!(status.phase, Some(NodePhase::Failed));
    let failed = status.last_failed_plan.expect("the plan that failed");
    let task = failed.task.expect("a task");
    assert_eq!(task.type_, TaskType::AwaitBootstrapComplete);
    assert!(task.error.expect("why").contains("Job failed"));
    let set = scene.api::<StatefulSet>().get_opt("node").await;
    assert!(set.expect("an answer").is_none());

    scene.script("node", |script| script.replay = Duration::ZERO);
    scene.retry("node", "now").await;
    let node = scene.settled("node").await;
    let status = node.status.expect("a status");
    assert_eq!(status.phase, Some(NodePhase::Running));
    assert_eq!(status.last_failed_plan, None);
    let seen = scene.seen("node");
    assert_eq!(seen.begun(TaskType::SnapshotRestore), 1);
    let left = left.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(left.iter().all(|found| found == "[]"), "{left:?}");
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_went_while_nobody_looked_is_made_again_and_nothing_is_restored_twice() {
    let scene = Stage::shared().await.scene("ttl").await;
    let (operator, _) = watched(&scene).await;
    scene.script("node", |script| script.replay = Duration::from_secs(600));
    scene.bootstrapped("node", 1000, json!({})).await;
    scene
        .until_seen("the replay", "node", |seen| seen.process_starts == 1)
        .await;
    drop(operator);
    scene.script("node", |script| script.replay = Duration::ZERO);
    scene.end_replay("node");
    scene
        .until_object("its completion", JOB, |job: Option<&Job>| {
            let status = job.and_then(|job| job.status.as_ref());
            let conditions = status.and_then(|it| it.conditions.as_ref());
            let mut all = conditions.into_iter().flatten();
            all.any(|it| it.type_ == "Complete" && it.status == "True")
        })
        .await;
    let jobs = scene.api::<Job>();
    jobs.delete(JOB, &DeleteParams::foreground())
        .await
        .expect("what the time to live does");
    scene
        .until_object("its end", JOB, |job: Option<&Job>| job.is_none())
        .await;
    let (_operator, left) = watched(&scene).await;
    scene.until_phase("node", NodePhase::Running).await;
    scene.settled("node").await;
    let seen = scene.seen("node");
    assert_eq!(seen.begun(TaskType::SnapshotRestore), 1);
    let left = left.lock().unwrap_or_else(PoisonError::into_inner).clone();
    assert!(left.iter().all(|found| found == "[]"), "{left:?}");
    assert_eq!(scene.violations(), Vec::<String>::new());
}
