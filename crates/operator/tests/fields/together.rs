//! Several edits at once, edits in the middle of another, and edits that are taken back.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use keelson_api::SeiNode;
use keelson_api::node_condition::{NodeCondition, NodeReason};
use keelson_operator::node::points::{Point, Points};
use keelson_plan::{Stage as Part, Step, Task};
use keelson_wire::TaskType::{ConfigPatch, ConfigValidate, MarkReady, RestartSeid};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::mark::{Change, Mark, look_again, pod_of, running};
use crate::operator::{Operator, settings};
use crate::stage::waiting::Kstatus;
use crate::stage::{Scene, Stage, platform};

fn image(version: &str) -> String {
    format!("registry.example/seid:{version}")
}

fn connections(number: &str) -> Value {
    json!({ "network.p2p.max_connections": number })
}

/// The image a node's pod was made with.
async fn runs(scene: &Scene, node: &str) -> String {
    let pod = pod_of(scene, node).await;
    let spec = pod.spec.expect("a spec");
    spec.containers[0].image.clone().expect("an image")
}

#[tokio::test(flavor = "multi_thread")]
async fn image_labels_and_overrides_edited_together_are_one_cycle_and_one_start() {
    let (scene, _operator) = running("together", json!({})).await;
    let mark = Mark::of(&scene, "node").await;
    let edit = json!({
        "image": image("v6.1.0"), "podLabels": { "team": "a" }, "overrides": connections("200"),
    });
    let change = mark.edit(&scene, edit).await;
    let tasks = [ConfigPatch, ConfigValidate, MarkReady];
    assert_eq!(change, Change::rolled(&tasks));
    assert!(scene.runs_as_configured("node"));
    look_again(&scene, "node").await;
    assert_eq!(mark.since(&scene).await, Change::rolled(&tasks));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pod_that_starts_its_process_by_itself_has_it_started_again_for_new_overrides() {
    let (scene, _operator) = running("labels-overrides", json!({})).await;
    let mark = Mark::of(&scene, "node").await;
    let edit = json!({ "podLabels": { "team": "a" }, "overrides": connections("200") });
    scene.edit("node", edit).await;
    scene.settled("node").await;
    look_again(&scene, "node").await;
    scene.settled("node").await;
    let change = mark.since(&scene).await;
    assert!(scene.runs_as_configured("node"), "{change:?}");
    assert_eq!((change.cycles, change.process_starts), (1, 2), "{change:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_that_cannot_be_pulled_is_corrected_with_one_more_cycle() {
    let (scene, _operator) = running("broken", json!({})).await;
    let mark = Mark::of(&scene, "node").await;
    scene
        .edit("node", json!({ "image": image("broken") }))
        .await;
    let stuck = |it: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
        it.type_ == "Reconciling" && it.message.contains("ImagePullBackOff")
    };
    scene
        .until_status("naming the image", "node", |_, status| {
            status.conditions.iter().any(stuck)
        })
        .await;
    let reason = NodeReason::ImageNotStarting;
    let node = scene
        .until_condition("node", NodeCondition::Stalled, true, reason)
        .await;
    assert_eq!(Kstatus::of(&node), Kstatus::Failed);
    let conditions = node.status.expect("a status").conditions;
    let mut stalled = conditions.iter().filter(|it| it.type_ == "Stalled");
    assert!(stalled.all(|it| it.message.contains("cannot start: ImagePullBackOff")));
    let change = mark.edit(&scene, json!({ "image": image("v6.2.0") })).await;
    assert_eq!((change.cycles, change.process_starts), (2, 1));
    assert_eq!(runs(&scene, "node").await, image("v6.2.0"));
    let (ready, reason) = (NodeCondition::Ready, NodeReason::NodeReady);
    let node = scene.until_condition("node", ready, true, reason).await;
    assert_eq!(Kstatus::of(&node), Kstatus::Current);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_while_a_pod_is_slow_to_go_costs_no_other_cycle() {
    let (scene, _operator) = running("slow-stop", json!({})).await;
    let mark = Mark::of(&scene, "node").await;
    scene.pause("node");
    scene
        .edit("node", json!({ "image": image("v6.1.0") }))
        .await;
    scene
        .until_pod("its deletion", "node-0", |pod| {
            pod.metadata.deletion_timestamp.is_some()
        })
        .await;
    let edited = scene
        .edit("node", json!({ "image": image("v6.2.0") }))
        .await;
    scene
        .until_status("planning anew", "node", |_, status| {
            let plan = status.plan.as_ref();
            plan.is_some_and(|plan| plan.generation == edited.metadata.generation)
        })
        .await;
    let node = scene.api::<SeiNode>().get("node").await.expect("the node");
    assert_eq!(Kstatus::of(&node), Kstatus::InProgress);
    let dropped = scene.events("node", "PlanSuperseded").await;
    let told = "the update is dropped, because the spec asks for something else";
    assert_eq!(dropped, [told]);
    // The template is of the newest spec before the pod is gone.
    scene
        .until_object(
            "the newest template",
            "node",
            |set: Option<&k8s_openapi::api::apps::v1::StatefulSet>| {
                let pod = set.and_then(|it| it.spec.as_ref()?.template.spec.as_ref());
                pod.is_some_and(|pod| pod.containers[0].image == Some(image("v6.2.0")))
            },
        )
        .await;
    scene.resume("node");
    scene.settled("node").await;
    assert_eq!(mark.since(&scene).await, Change::rolled(&[MarkReady]));
    assert_eq!(runs(&scene, "node").await, image("v6.2.0"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_hangs_is_called_off_when_the_spec_is_edited() {
    let (scene, _operator) = running("hangs", json!({})).await;
    let mark = Mark::of(&scene, "node").await;
    scene.script("node", |script| {
        script.hangs(ConfigPatch, true);
    });
    scene
        .edit("node", json!({ "overrides": connections("200") }))
        .await;
    scene
        .until_seen("the task", "node", |seen| {
            seen.types().contains(&ConfigPatch)
        })
        .await;
    scene.script("node", |script| {
        script.hangs(ConfigPatch, false);
    });
    let change = mark
        .edit(&scene, json!({ "overrides": connections("300") }))
        .await;
    let tasks = [
        ConfigPatch,
        ConfigPatch,
        ConfigValidate,
        RestartSeid,
        MarkReady,
    ];
    assert_eq!(change, Change::restarted(&tasks));
    assert!(scene.runs_as_configured("node"));
    let left = scene.tasks("node");
    let running = left
        .iter()
        .filter(|it| it.status == keelson_wire::TaskStatus::Running);
    assert_eq!(running.count(), 0);
}

/// Holds each node at one point, from when it is told to until it is let go.
#[derive(Clone, Default)]
struct Guards(Arc<Mutex<HashMap<String, Guard>>>);

struct Guard {
    point: Point,
    /// 0: nobody is stopped. 1: whoever comes is. 2: somebody stands here. 3: go on, all of you.
    state: watch::Sender<u8>,
}

impl Guards {
    fn points(&self) -> Points {
        let guards = self.clone();
        Points::guarded(move |key, point| {
            let all = guards.0.lock().expect("the guards");
            let state = match all.get(&key.name) {
                Some(guard) if guard.point == point && *guard.state.borrow() == 1 => {
                    guard.state.clone()
                }
                _ => return async {}.boxed(),
            };
            async move {
                state.send_replace(2);
                let mut told = state.subscribe();
                let _ = told.wait_for(|state| *state == 3).await;
            }
            .boxed()
        })
    }

    fn set(&self, node: &str, point: Point) {
        let state = watch::Sender::new(1);
        let guard = Guard { point, state };
        self.0
            .lock()
            .expect("the guards")
            .insert(node.to_owned(), guard);
    }

    fn state(&self, node: &str) -> watch::Sender<u8> {
        self.0.lock().expect("the guards")[node].state.clone()
    }

    async fn reached(&self, node: &str) {
        let mut told = self.state(node).subscribe();
        let reached = told.wait_for(|state| *state == 2);
        let limit = std::time::Duration::from_secs(60);
        let reached = tokio::time::timeout(limit, reached).await;
        reached
            .unwrap_or_else(|_| panic!("{node} did not come to its point"))
            .expect("a guard");
    }

    fn release(&self, node: &str) {
        self.state(node).send_replace(3);
    }
}

async fn guarded(name: &str, guards: &Guards) -> (Scene, Operator) {
    let scene = Stage::shared().await.scene(name).await;
    let settings = settings(platform(), scene.namespace());
    let client = scene.operator_client();
    let operator = Operator::with(&scene, client, settings, guards.points()).await;
    (scene, operator)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_in_the_middle_of_any_task_of_a_roll_wins_and_costs_one_more_cycle_at_most() {
    let guards = Guards::default();
    let (scene, _operator) = guarded("middle", &guards).await;
    let prepare = [Task::ApplyProxyConfig];
    let node = [
        Task::ApplyStatefulSet,
        Task::ApplyService,
        Task::ReplacePod,
        Task::ObserveImage,
        Task::ConfigPatch,
        Task::ConfigValidate,
        Task::MarkReady,
    ];
    let prepare = prepare.into_iter().map(|task| (Part::Prepare, task));
    let steps = prepare.chain(node.into_iter().map(|task| (Part::Node, task)));
    let steps = steps.map(|(stage, task)| Step { stage, task });
    let cases: Vec<(String, Point)> = steps
        .flat_map(|step| {
            let named = |when: &str| format!("{when}-{}", step.task.type_());
            [
                (named("before"), Point::BeforeStep(step)),
                (named("after"), Point::AfterStep(step)),
            ]
        })
        .collect();
    let each = cases.iter().map(async |(node, point)| {
        scene.full_node(node, json!({})).await;
        scene.settled(node).await;
        let mark = Mark::of(&scene, node).await;
        guards.set(node, *point);
        let edit = json!({ "image": image("v6.1.0"), "overrides": connections("200") });
        scene.edit(node, edit).await;
        guards.reached(node).await;
        let edit = json!({ "image": image("v6.2.0"), "overrides": connections("300") });
        scene.edit(node, edit).await;
        guards.release(node);
        scene.settled(node).await;
        let change = mark.since(&scene).await;
        assert_eq!(runs(&scene, node).await, image("v6.2.0"), "{node}");
        assert!((1..=2).contains(&change.cycles), "{node}: {change:?}");
        assert!(change.process_starts <= 2, "{node}: {change:?}");
        assert_eq!(change.restarts.get("seid"), None, "{node}: {change:?}");
        assert!(scene.runs_as_configured(node), "{node}: {change:?}");
        let submitted = scene.seen(node).submitted;
        let last = submitted.iter().rev().find(|it| it.type_ == ConfigPatch);
        let given = serde_json::to_string(&last.expect("a task").params).expect("JSON");
        assert!(given.contains("\"max-connections\":300"), "{node}");
    });
    futures::future::join_all(each).await;
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_that_is_taken_back_before_anything_happened_costs_nothing() {
    let guards = Guards::default();
    let (scene, _operator) = guarded("taken-back", &guards).await;
    scene.full_node("node", json!({})).await;
    scene.settled("node").await;
    look_again(&scene, "node").await;
    let mark = Mark::of(&scene, "node").await;
    guards.set("node", Point::BeforeWrite);
    scene
        .edit("node", json!({ "image": image("v6.1.0") }))
        .await;
    guards.reached("node").await;
    scene
        .edit("node", json!({ "image": image("v6.0.0") }))
        .await;
    guards.release("node");
    scene.settled("node").await;
    look_again(&scene, "node").await;
    assert_eq!(mark.since(&scene).await, Change::hot(&[]));
}
