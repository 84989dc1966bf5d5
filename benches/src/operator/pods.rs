//! Pods that run because their status says so, and claims nobody looks for a volume for.
//!
//! One watch of pods and one write for each, and the same for claims. A pod is bound to no machine:
//! one that is deleted is gone at once. A claim is told the name of a volume that is never there:
//! the controller manager then waits in silence, where it would write an event every few seconds.

use crate::sidecars::Sidecars;
use futures::StreamExt;
use futures::channel::mpsc::{self, UnboundedReceiver, UnboundedSender};
use k8s_openapi::api::core::v1::{Container, PersistentVolumeClaim, Pod};
use keelson_api::names::Label;
use keelson_bench::tell;
use keelson_cluster::{Key, Mirror};
use kube::api::{Patch, PatchParams};
use kube::runtime::watcher;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinSet;

/// How many statuses are written at once.
const AT_ONCE: usize = 16;
/// What tells a sidecar from which start its pod comes.
const FINGERPRINT: &str = "KEELSON_START_FINGERPRINT";

/// One write that makes an object what a kubelet or a binder makes it.
#[derive(Debug)]
enum Deed {
    Run { pod: Key, status: Value },
    Bind { claim: Key },
}

/// Plays all pods and claims of nodes, until what is returned is dropped.
pub(crate) fn play(client: &Client, sidecars: &Sidecars) -> JoinSet<()> {
    let (deeds, todo) = mpsc::unbounded();
    let mut tasks = JoinSet::new();
    tasks.spawn(watch_pods(client.clone(), sidecars.clone(), deeds.clone()));
    tasks.spawn(watch_claims(client.clone(), deeds));
    tasks.spawn(write(client.clone(), todo));
    tasks
}

fn labelled() -> watcher::Config {
    watcher::Config::default().labels(Label::Node.as_str())
}

async fn watch_pods(client: Client, sidecars: Sidecars, deeds: UnboundedSender<Deed>) {
    let new = |pod: Pod| Some(new_pod(&pod));
    let follow = Mirror::new("played pods").follow(
        Api::<Pod>::all(client),
        labelled(),
        new,
        move |key, _, after: Option<&Option<NewPod>>| {
            let Some(Some(pod)) = after else { return };
            sidecars.came_up(&key.namespace, &pod.node, &pod.fingerprint);
            let run = Deed::Run {
                pod: key.clone(),
                status: pod.status.clone(),
            };
            let _ = deeds.unbounded_send(run);
        },
    );
    follow.await;
}

async fn watch_claims(client: Client, deeds: UnboundedSender<Deed>) {
    let unbound = |claim: PersistentVolumeClaim| {
        Some(claim.spec.is_some_and(|spec| spec.volume_name.is_none()))
    };
    let follow = Mirror::new("played claims").follow(
        Api::<PersistentVolumeClaim>::all(client),
        labelled(),
        unbound,
        move |key, before: Option<&bool>, after: Option<&bool>| {
            if (before, after) == (None, Some(&true)) {
                let claim = key.clone();
                let _ = deeds.unbounded_send(Deed::Bind { claim });
            }
        },
    );
    follow.await;
}

async fn write(client: Client, todo: UnboundedReceiver<Deed>) {
    let written = todo.map(|deed| carry_out(client.clone(), deed));
    let mut written = written.buffer_unordered(AT_ONCE);
    while let Some(outcome) = written.next().await {
        match outcome {
            Ok(()) => {}
            // It was deleted meanwhile.
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            Err(error) => tell(&format!("a pod or claim was not played: {error}")),
        }
    }
}

async fn carry_out(client: Client, deed: Deed) -> kube::Result<()> {
    let how = PatchParams::default();
    match deed {
        Deed::Run { pod, status } => {
            let patch = Patch::Strategic(json!({ "status": status }));
            let pods: Api<Pod> = Api::namespaced(client, &pod.namespace);
            pods.patch_status(&pod.name, &how, &patch).await.map(drop)
        }
        Deed::Bind { claim } => {
            let volume = format!("played-{}", claim.name);
            let patch = Patch::Merge(json!({ "spec": { "volumeName": volume } }));
            let claims: Api<PersistentVolumeClaim> = Api::namespaced(client, &claim.namespace);
            claims.patch(&claim.name, &how, &patch).await.map(drop)
        }
    }
}

/// A pod that does not run yet.
#[derive(Debug)]
struct NewPod {
    node: String,
    fingerprint: String,
    status: Value,
}

/// What is to be done about a pod; nothing where it runs or goes.
fn new_pod(pod: &Pod) -> Option<NewPod> {
    let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref());
    if phase == Some("Running") || pod.metadata.deletion_timestamp.is_some() {
        return None;
    }
    Some(NewPod {
        node: pod.labels().get(Label::Node.as_str())?.clone(),
        fingerprint: fingerprint(pod).unwrap_or_default(),
        status: status(pod, &jiff::Timestamp::now().to_string()),
    })
}

fn fingerprint(pod: &Pod) -> Option<String> {
    let spec = pod.spec.as_ref()?;
    let all = spec
        .init_containers
        .iter()
        .flatten()
        .chain(&spec.containers);
    let mut variables = all.flat_map(|it| it.env.iter().flatten());
    variables.find(|it| it.name == FINGERPRINT)?.value.clone()
}

/// The status of a pod all of which runs.
fn status(pod: &Pod, now: &str) -> Value {
    let uid = pod.uid().unwrap_or_default();
    let spec = pod.spec.as_ref();
    let statuses = |containers: &[Container], init: bool| -> Vec<Value> {
        let one = |it: &Container| container(it, init && it.restart_policy.is_none(), &uid, now);
        containers.iter().map(one).collect()
    };
    let init = spec.and_then(|it| it.init_containers.as_deref());
    let condition =
        |name: &str| json!({ "type": name, "status": "True", "lastTransitionTime": now });
    let conditions = ["PodScheduled", "Initialized", "ContainersReady", "Ready"].map(condition);
    let ip = address(&uid);
    json!({
        "phase": "Running",
        "startTime": now,
        "podIP": ip,
        "podIPs": [{ "ip": ip }],
        "conditions": conditions,
        "initContainerStatuses": statuses(init.unwrap_or_default(), true),
        "containerStatuses": statuses(spec.map(|it| it.containers.as_slice()).unwrap_or_default(), false),
    })
}

/// A container that runs; one that runs once, before the others, has ended.
fn container(container: &Container, once: bool, pod: &str, now: &str) -> Value {
    let id = format!("containerd://{pod}-{}", container.name);
    let image = container.image.as_deref().unwrap_or_default();
    let state = match once {
        true => json!({ "terminated": {
            "exitCode": 0, "containerID": id, "startedAt": now, "finishedAt": now,
        }}),
        false => json!({ "running": { "startedAt": now } }),
    };
    json!({
        "name": container.name,
        "image": image,
        "imageID": format!("{image}@sha256:{:064}", 0),
        "containerID": id,
        "restartCount": 0,
        "started": !once,
        "ready": true,
        "state": state,
    })
}

/// An address that is a pod's own, by its uid. It is of the family the Services are not of: the
/// endpoints of a pod on no machine are refused by the API server, and tried again and again.
fn address(uid: &str) -> String {
    let digits: String = uid
        .chars()
        .filter(char::is_ascii_hexdigit)
        .take(8)
        .collect();
    let number = u32::from_str_radix(&digits, 16).unwrap_or_default();
    format!("fd00::{:x}:{:x}", number >> 16, number & 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pod(status: Value) -> Pod {
        let pod = json!({
            "metadata": { "name": "n-0", "uid": "0aff0100-1", "labels": { "sei.io/node": "n" } },
            "spec": {
                "initContainers": [
                    { "name": "once", "image": "a" },
                    {
                        "name": "stays", "image": "b", "restartPolicy": "Always",
                        "env": [{ "name": FINGERPRINT, "value": "f" }],
                    },
                ],
                "containers": [{ "name": "main", "image": "c" }],
            },
            "status": status,
        });
        serde_json::from_value(pod).expect("a pod")
    }

    #[test]
    fn a_new_pod_runs_at_once_with_all_its_containers() {
        let new = new_pod(&pod(json!({ "phase": "Pending" }))).expect("something to do");
        assert_eq!((new.node.as_str(), new.fingerprint.as_str()), ("n", "f"));
        let status = &new.status;
        assert_eq!(status["phase"], "Running");
        assert_eq!(status["podIP"], "fd00::aff:100");
        let [once, stays] = [0, 1].map(|place| &status["initContainerStatuses"][place]["state"]);
        assert!(once.get("terminated").is_some(), "{once}");
        assert!(stays.get("running").is_some(), "{stays}");
        let main = &status["containerStatuses"][0];
        assert!(main["state"].get("running").is_some(), "{main}");
        assert_eq!(main["image"], "c");
        let ready = status["conditions"].as_array().expect("conditions");
        let holds = |it: &&Value| it["type"] == "Ready" && it["status"] == "True";
        assert_eq!(ready.iter().filter(holds).count(), 1);
    }

    #[test]
    fn a_pod_that_runs_is_left_alone() {
        assert!(new_pod(&pod(json!({ "phase": "Running" }))).is_none());
    }

    #[test]
    fn a_pod_that_goes_is_left_alone() {
        let mut going = pod(json!({ "phase": "Pending" }));
        let now = jiff::Timestamp::now();
        going.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now));
        assert!(new_pod(&going).is_none());
    }
}
