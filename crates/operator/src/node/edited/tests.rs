//! Pods as kubelets report them around an edit of an image, with a runtime that names another one.

use super::*;
use crate::node::seen::SeenPod;
use serde_json::{Value, json};

const NAMED: &str = "registry.example/keelson-sidecar:1";
const ALSO: &str = "registry.example/keelson-sidecar:also-1";
const EDITED: &str = "2026-01-01T10:00:00Z";

fn later(seconds: i64) -> Timestamp {
    let edited: Timestamp = EDITED.parse().expect("a time");
    edited + SignedDuration::from_secs(seconds)
}

/// A pod that asks for an image of its sidecar by another name than the runtime has for it.
fn pod(generation: i64, taken_up: i64, id: &str, since: Timestamp) -> Value {
    json!({
        "metadata": { "name": "node-0", "generation": generation },
        "spec": { "containers": [], "initContainers": [{ "name": "sei-sidecar", "image": ALSO }] },
        "status": {
            "observedGeneration": taken_up,
            "initContainerStatuses": [{
                "name": "sei-sidecar", "image": NAMED, "imageID": "sha256:1", "containerID": id,
                "ready": true, "restartCount": 0,
                "state": { "running": { "startedAt": since.to_string() } },
            }],
        },
    })
}

fn read(pod: &Value) -> SeenPod {
    SeenPod::read(&serde_json::from_value(pod.clone()).expect("a pod"))
}

/// The same pod with what is noted on it when the image of this one is edited.
fn noted(mut pod: Value, before: &SeenPod) -> Value {
    let edited = [("sei-sidecar", &before.sidecar)];
    if let Some(note) = before.edited.next(edited.into_iter()) {
        pod["metadata"]["annotations"] = json!({ Annotation::EditedImages.as_str(): note });
    }
    pod
}

/// A pod after one edit, which was noted while the container `old` ran.
fn edited(taken_up: i64, id: &str, since: Timestamp) -> SeenPod {
    let before = read(&pod(1, 1, "old", later(-1000)));
    read(&noted(pod(2, taken_up, id, since), &before))
}

fn runs(pod: &SeenPod, now: Timestamp) -> bool {
    pod.runs("sei-sidecar", now)
}

#[test]
fn a_pod_nobody_edited_runs_its_images_by_whatever_names() {
    let new = pod(1, 1, "old", later(0));
    assert!(runs(&read(&new), later(0)));
    let mut waiting = new.clone();
    waiting["status"]["initContainerStatuses"][0]["state"] = json!({ "waiting": {} });
    assert!(!runs(&read(&waiting), later(0)), "it runs nothing");
    let mut old_server = new.clone();
    old_server["metadata"]["generation"] = Value::Null;
    assert!(
        !runs(&read(&old_server), later(0)),
        "edits are not counted, and any may have been made"
    );
    assert!(!runs(&read(&pod(2, 2, "old", later(0))), later(60)));
}

#[test]
fn a_container_is_the_one_after_an_edit_when_another_ran_before_and_the_kubelet_knows_of_it() {
    let since = later(2);
    assert!(runs(&edited(2, "new", since), later(17)));
    assert!(
        !runs(&edited(1, "new", since), later(600)),
        "it ended by itself, and the kubelet has not heard of the edit"
    );
    assert!(
        !runs(&edited(2, "old", later(-1000)), later(600)),
        "the one from before has yet to end"
    );
    assert!(
        !runs(&edited(2, "new", since), later(16)),
        "it may have started before the kubelet heard of the edit, which ends it soon"
    );
}

#[test]
fn the_name_of_the_image_is_enough() {
    let mut named = pod(2, 1, "new", later(1));
    named["status"]["initContainerStatuses"][0]["image"] = json!(ALSO);
    assert!(runs(&read(&named), later(1)));
}

#[test]
fn after_an_edit_of_somebody_else_only_names_count() {
    let before = edited(2, "new", later(2));
    let other = noted(
        pod(3, 3, "newer", later(9)),
        &read(&pod(1, 1, "old", later(-1000))),
    );
    assert!(!runs(&read(&other), later(600)), "the third is not noted");
    let ours = noted(pod(3, 3, "newer", later(9)), &before);
    assert!(runs(&read(&ours), later(600)));
    let upon = noted(pod(4, 4, "newest", later(9)), &read(&other));
    assert!(!runs(&read(&upon), later(600)), "not all edits are known");
}
