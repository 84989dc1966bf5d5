//! What of a change of status is worth an event, and what is only progress.
//!
//! An event marks a transition. A plan is told of when it is over, with what it was for; one that
//! takes long shows in the conditions meanwhile.

use k8s_openapi::api::core::v1::ObjectReference;
use keelson_api::SeiNode;
use keelson_api::condition::{Truth, truth};
use keelson_api::event::NodeEvent;
use keelson_api::names::SEI_GROUP;
use keelson_api::node_condition::NodeCondition as Type;
use keelson_api::node_status::{NodePhase, SeiNodeStatus};
use keelson_api::task::TaskType;
use keelson_plan::Drift;

use super::record::{called, reasons};
use super::report::Ended;

/// The node, as an event names it.
pub fn about(node: &SeiNode) -> ObjectReference {
    ObjectReference {
        api_version: Some(format!("{SEI_GROUP}/v1alpha1")),
        kind: Some("SeiNode".to_owned()),
        name: node.metadata.name.clone(),
        namespace: node.metadata.namespace.clone(),
        uid: node.metadata.uid.clone(),
        resource_version: node.metadata.resource_version.clone(),
        ..ObjectReference::default()
    }
}

/// What changes by itself while a plan is carried out: its pod goes, comes and is approved. Whether
/// the node is ready is not among it: others count on that.
const BY_THE_WAY: [Type; 3] = [Type::Synced, Type::Reconciling, Type::SidecarReady];

/// Whether two statuses differ by nothing but how far one and the same plan is.
pub fn is_only_progress(old: &SeiNodeStatus, new: &SeiNodeStatus) -> bool {
    let plan = |status: &SeiNodeStatus| status.plan.as_ref().map(|plan| plan.id.clone());
    let rest = |status: &SeiNodeStatus| {
        let mut status = status.clone();
        status.conditions.retain(|condition| {
            let mut by_the_way = BY_THE_WAY.iter();
            !by_the_way.any(|it| it.as_str() == condition.type_)
        });
        for condition in &mut status.conditions {
            condition.message.clear();
        }
        (status.current_image, status.current_sidecar_image) = (None, None);
        (status.current_proxy_image, status.sidecar_url) = (None, None);
        // What was written to the volume is found again under its name.
        (status.plan, status.applied) = (None, None);
        status
    };
    old.plan.is_some() && plan(old) == plan(new) && rest(old) == rest(new)
}

/// What happened, with a sentence each.
pub fn news(
    old: &SeiNodeStatus,
    new: &SeiNodeStatus,
    ended: Option<&Ended>,
) -> Vec<(NodeEvent, String)> {
    let mut news = Vec::new();
    // That a node is being set up is no news: somebody just created it.
    let beginning = [NodePhase::Pending, NodePhase::Initializing];
    if old.phase != new.phase && new.phase.is_some_and(|it| !beginning.contains(&it)) {
        let name = |phase: Option<NodePhase>| phase.map_or("new", NodePhase::as_str);
        let (was, is) = (name(old.phase), name(new.phase));
        let told = format!("the node is {is}, after it was {was}");
        news.push((NodeEvent::PhaseTransition, told));
    }
    if old.plan.is_some() && new.plan.is_none() {
        news.extend(ended.and_then(|ended| end(ended, new)));
    }
    let turned = |type_: Type, to: Truth| {
        truth(&new.conditions, type_) == to && truth(&old.conditions, type_) != to
    };
    let message = |type_: Type| {
        let found = new.conditions.iter().find(|it| it.type_ == type_.as_str());
        found.map(|it| it.message.clone()).unwrap_or_default()
    };
    if turned(Type::SpecValid, Truth::False) {
        news.push((NodeEvent::SpecInvalid, message(Type::SpecValid)));
    }
    if turned(Type::Stalled, Truth::True) && truth(&new.conditions, Type::SpecValid) == Truth::True
    {
        news.push((NodeEvent::Stalled, message(Type::Stalled)));
    }
    let was = truth(&old.conditions, Type::SidecarReady);
    match truth(&new.conditions, Type::SidecarReady) {
        // A plan that takes the sidecar away for a while is told of itself.
        _ if is_restarted(new, ended) => {}
        Truth::False if was == Truth::True => {
            news.push((NodeEvent::SidecarReadinessLost, message(Type::SidecarReady)));
        }
        Truth::True if was == Truth::False && old.phase == Some(NodePhase::Running) => {
            news.push((
                NodeEvent::SidecarReadinessRestored,
                "the sidecar is ready again".to_owned(),
            ));
        }
        _ => {}
    }
    let tls = Type::SidecarTlsSecretReady;
    if turned(tls, Truth::False) && truth(&old.conditions, tls) == Truth::True && wants_tls(new) {
        news.push((NodeEvent::SidecarTlsSecretNotReady, message(tls)));
    }
    news
}

/// Whether a plan starts the sidecar anew, or just did.
fn is_restarted(status: &SeiNodeStatus, ended: Option<&Ended>) -> bool {
    let planned = status.plan.iter().flat_map(|plan| &plan.tasks);
    let (Ended::Complete(ended) | Ended::Failed(ended)) = match ended {
        Some(ended) => ended,
        None => return planned.map(|task| task.type_).any(starts_sidecar),
    };
    let done = ended.plan.entries.iter();
    done.map(|entry| entry.step.task.type_())
        .any(starts_sidecar)
}

fn starts_sidecar(task: TaskType) -> bool {
    matches!(task, TaskType::ReplacePod | TaskType::PatchPodImages)
}

fn wants_tls(status: &SeiNodeStatus) -> bool {
    status.sidecar_tls.is_some()
}

/// How a plan ended. That a node was set up shows in its phase.
fn end(ended: &Ended, new: &SeiNodeStatus) -> Option<(NodeEvent, String)> {
    match ended {
        Ended::Complete(plan) if plan.plan.causes.contains(&Drift::Setup) => None,
        Ended::Complete(plan) => {
            let (what, why) = (called(plan.plan.kind), reasons(&plan.plan));
            Some((
                NodeEvent::PlanComplete,
                format!("{what} is complete ({why})"),
            ))
        }
        Ended::Failed(plan) => {
            let failed = new.last_failed_plan.as_ref();
            let error = failed.and_then(|it| it.task.as_ref()?.error.clone());
            let what = called(plan.plan.kind);
            Some((
                NodeEvent::PlanFailed,
                format!("{what} failed: {}", error.unwrap_or_default()),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn status(plan: Value, ready: &str, sidecar: &str, image: &str) -> SeiNodeStatus {
        let condition = |type_: Type, status: &str| {
            json!({
                "type": type_.as_str(), "status": status, "reason": "A", "message": "",
                "lastTransitionTime": "2026-11-16T09:00:00Z",
            })
        };
        let status = json!({
            "plan": plan,
            "currentImage": image,
            "conditions": [condition(Type::Ready, ready), condition(Type::SidecarReady, sidecar)],
        });
        serde_json::from_value(status).expect("a status")
    }

    fn plan(id: &str, progress: &str) -> Value {
        json!({
            "id": id, "phase": "Active",
            "tasks": [{ "id": "1", "type": "replace-pod", "status": progress }],
        })
    }

    #[test]
    fn what_a_plan_does_to_its_pod_is_progress() {
        let old = status(plan("p", "Pending"), "False", "True", "a");
        let mut new = status(plan("p", "Running"), "False", "False", "b");
        new.sidecar_url = Some("http://n-0.n.here.svc.cluster.local:8443".to_owned());
        assert!(is_only_progress(&old, &new));
        // A sidecar may be gone when it is asked again for what it did.
        new.attempts.insert("mark-ready".to_owned(), 1);
        assert!(!is_only_progress(&old, &new));
    }

    #[test]
    fn another_plan_none_and_whether_the_node_is_ready_are_news() {
        let old = status(plan("p", "Pending"), "False", "True", "a");
        let others = [
            status(plan("q", "Pending"), "False", "True", "a"),
            status(Value::Null, "False", "True", "a"),
            status(plan("p", "Pending"), "True", "True", "a"),
        ];
        for new in others {
            assert!(!is_only_progress(&old, &new), "{new:?}");
        }
        let idle = status(Value::Null, "True", "True", "a");
        let lost = status(Value::Null, "True", "False", "a");
        assert!(!is_only_progress(&idle, &lost), "without a plan");
    }

    #[test]
    fn a_sidecar_that_a_plan_starts_anew_is_no_news_and_one_that_is_lost_is() {
        let lost = |new: SeiNodeStatus| {
            let old = status(Value::Null, "True", "True", "a");
            let news = news(&old, &new, None);
            news.iter()
                .any(|(event, _)| *event == NodeEvent::SidecarReadinessLost)
        };
        assert!(lost(status(Value::Null, "True", "False", "a")));
        assert!(!lost(status(plan("p", "Running"), "True", "False", "a")));
    }
}
