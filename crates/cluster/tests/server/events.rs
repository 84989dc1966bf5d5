//! Events: the right note, counted where it is the same, and never waited for.

use crate::stage::{Stage, holds, soon};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use keelson_api::event::Severity;
use keelson_cluster::Recorder;
use keelson_testbed::Program;
use keelson_testbed::faults::{Fault, On};
use kube::api::ListParams;
use kube::{Api, Resource};
use std::process::Command;

async fn about(stage: &Stage) -> ObjectReference {
    let map = stage.put("atlas", "1").await;
    map.object_ref(&())
}

async fn written(stage: &Stage) -> Vec<(String, Option<i32>)> {
    let api: Api<Event> = Api::namespaced(stage.cluster.client(), stage.name());
    let list = api.list(&ListParams::default()).await.expect("events");
    let mut events = list.items;
    events.sort_by_key(|event| event.event_time.clone().map(|time| time.0));
    events
        .into_iter()
        .map(|event| {
            let count = event.series.map(|series| series.count);
            (event.note.unwrap_or_default(), count)
        })
        .collect()
}

#[tokio::test]
async fn the_same_is_counted_and_a_new_note_is_a_new_event() {
    let stage = Stage::new("events-series").await;
    let about = about(&stage).await;
    let (recorder, writing) = Recorder::new(stage.client(), "seinode-controller", "pod-1");
    for note in ["image", "image", "image, TLS", "image"] {
        recorder.say(&about, Severity::Normal, "PlanStarted", note.to_owned());
    }
    recorder.say(&about, Severity::Warning, "NodeFailed", "x".repeat(3000));
    drop(recorder);
    soon("the events", writing).await;
    let events = written(&stage).await;
    let (last, first) = events.split_last().expect("events");
    let expected = [
        ("image".to_owned(), Some(3)),
        ("image, TLS".to_owned(), None),
    ];
    assert_eq!(first, expected);
    assert_eq!(last.0.len(), 1024);
    let kubeconfig = stage.cluster.folder().join("events-series.kubeconfig");
    std::fs::write(&kubeconfig, stage.cluster.kubeconfig()).expect("a kubeconfig");
    let shown = Command::new(stage.cluster.program(Program::Kubectl))
        .args([
            "--namespace",
            stage.name(),
            "describe",
            "configmap",
            "atlas",
        ])
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .output()
        .expect("kubectl");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    let line = shown.lines().find(|line| line.ends_with("  image"));
    let line = line.unwrap_or_else(|| panic!("no such event: {shown}"));
    for word in ["Normal", "PlanStarted", "(x3 over ", "seinode-controller"] {
        assert!(line.contains(word), "{word}: {line}");
    }
}

#[tokio::test]
async fn an_event_the_server_forgot_is_written_anew() {
    let stage = Stage::new("events-forgotten").await;
    let about = about(&stage).await;
    let (recorder, writing) = Recorder::new(stage.client(), "seinode-controller", "pod-1");
    let writing = tokio::spawn(writing);
    recorder.say(&about, Severity::Normal, "PlanStarted", "image".to_owned());
    let created =
        |call: &keelson_testbed::faults::Call| call.resource == "events" && call.code == Some(201);
    let seen = stage.faults.called("the first event", created).await;
    seen.expect("the first event");
    let api: Api<Event> = Api::namespaced(stage.cluster.client(), stage.name());
    let every = ListParams::default();
    let gone = api.delete_collection(&Default::default(), &every).await;
    gone.expect("no events any more");
    recorder.say(&about, Severity::Normal, "PlanStarted", "image".to_owned());
    drop(recorder);
    soon("the events", writing).await.expect("no panic");
    assert_eq!(written(&stage).await, [("image".to_owned(), None)]);
}

#[tokio::test]
async fn a_full_queue_drops_and_counts_and_a_failing_server_does_too() {
    let stage = Stage::new("events-full").await;
    let about = about(&stage).await;
    let (recorder, writing) = Recorder::new(stage.client(), "seinode-controller", "pod-1");
    // Nobody writes yet, and saying does not wait.
    for number in 0..1003 {
        let note = format!("note {}", number / 1000);
        recorder.say(&about, Severity::Normal, "PlanStarted", note);
    }
    assert_eq!(recorder.dropped(), 3);
    let rule = stage
        .faults
        .inject(Fault::Unavailable, On::writes().next(2));
    let writing = tokio::spawn(writing);
    let watcher = recorder.clone();
    drop(recorder);
    rule.hit(2).await.expect("two failures");
    holds("what failed is counted", || watcher.dropped() == 5).await;
    writing.abort();
}
