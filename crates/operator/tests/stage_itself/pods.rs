//! Pods come up, change in place and go.

use std::time::{Duration, Instant};

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{ContainerStatus, PersistentVolume, PersistentVolumeClaim, Pod};
use keelson_api::SeiNode;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::caller::{Caller, Told, task_id};
use crate::rendered::{
    apply_all, apply_claim, apply_job, apply_proxy_config, apply_set, is_ready, phase, running, uid,
};
use crate::stage::ledger::Seen;
use crate::stage::{Scene, Stage, platform};

/// The status of one container, wherever it stands.
fn status<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let init = status.init_container_statuses.iter().flatten();
    let mut all = init.chain(status.container_statuses.iter().flatten());
    all.find(|it| it.name == container)
}

async fn change_image(scene: &Scene, list: &str, container: &str, image: &str) {
    let patch = json!({ "spec": { list: [{ "name": container, "image": image }] } });
    let pods = scene.api::<Pod>();
    let patched = pods
        .patch("n-0", &PatchParams::default(), &Patch::Strategic(patch))
        .await;
    patched.expect("a patch");
}

#[tokio::test]
async fn a_pod_comes_up_when_all_it_mounts_is_there_and_is_ready_when_its_gate_is_open() {
    let scene = Stage::shared().await.scene("up").await;
    let (node, platform) = (scene.full_node("n", json!({})).await, platform());
    apply_set(&scene, &node, &platform).await;
    apply_claim(&scene, &node, &platform).await;
    let on_machine = |pod: &Pod| pod.status.as_ref().is_some_and(|it| it.pod_ip.is_some());
    let pod = scene.until_pod("an address", "n-0", on_machine).await;
    assert_eq!(phase(&pod), "Pending", "its ConfigMap is missing");
    let bound = |claim: Option<&PersistentVolumeClaim>| {
        let status = claim.and_then(|it| it.status.as_ref());
        status.is_some_and(|it| it.phase.as_deref() == Some("Bound"))
    };
    scene.until_object("binding", "data-n", bound).await;

    apply_proxy_config(&scene, &node, &platform).await;
    let pod = running(&scene, "n-0").await;
    assert!(!is_ready(&pod), "the gate is closed");
    let init = status(&pod, "seid-init").expect("seid-init");
    let ended = init.state.as_ref().and_then(|it| it.terminated.as_ref());
    assert_eq!(ended.map(|it| it.exit_code), Some(0));
    for (name, ready) in [
        ("sei-sidecar", false),
        ("kube-rbac-proxy", true),
        ("seid", false),
        ("cosmos-exporter", true),
    ] {
        let status = status(&pod, name).expect("a container");
        assert_eq!(
            (status.ready, status.started),
            (ready, Some(true)),
            "{name}"
        );
        assert!(
            status.container_id.is_some() && status.image_id.contains('@'),
            "{name}"
        );
    }
    assert_eq!(scene.seen("n").process_starts, 0);

    let caller = Caller::new(&scene, "n");
    let told = caller.submit(&task_id(1), "mark-ready", json!({})).await;
    assert_eq!(told.status(), Some(201));
    scene.until_pod("readiness", "n-0", is_ready).await;
    let seen = scene.seen("n");
    assert_eq!(
        (seen.process_starts, seen.created.len(), seen.deleted.len()),
        (1, 1, 0)
    );
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn an_image_that_is_changed_in_a_running_pod_restarts_that_container_alone() {
    let scene = Stage::shared().await.scene("in-place").await;
    let (node, platform) = (scene.full_node("n", json!({})).await, platform());
    apply_all(&scene, &node, &platform).await;
    let before = running(&scene, "n-0").await;
    change_image(
        &scene,
        "initContainers",
        "kube-rbac-proxy",
        "registry.example/keelson-proxy:2",
    )
    .await;
    let restarted =
        |pod: &Pod| status(pod, "kube-rbac-proxy").is_some_and(|it| it.restart_count == 1);
    let after = scene.until_pod("a restart", "n-0", restarted).await;
    assert_eq!(uid(&before), uid(&after));
    for name in ["sei-sidecar", "kube-rbac-proxy", "seid", "cosmos-exporter"] {
        let id = |pod| status(pod, name).and_then(|it| it.container_id.clone());
        let changed = name == "kube-rbac-proxy";
        assert_eq!(id(&before) != id(&after), changed, "{name}");
        assert_eq!(
            scene.seen("n").restarted(name),
            u32::from(changed),
            "{name}"
        );
    }
    let image = status(&after, "kube-rbac-proxy").map(|it| it.image.as_str());
    assert_eq!(image, Some("registry.example/keelson-proxy:2"));
}

#[tokio::test]
async fn an_image_that_cannot_be_had_holds_up_what_comes_after_it_until_there_is_another() {
    let scene = Stage::shared().await.scene("broken").await;
    let mut platform = platform();
    "registry.example/broken-sidecar:1".clone_into(&mut platform.sidecar.image);
    let node = scene.full_node("n", json!({})).await;
    apply_all(&scene, &node, &platform).await;
    let waits = |pod: &Pod, name: &str, why: &str| {
        let state = status(pod, name).and_then(|it| it.state.as_ref());
        let waiting = state.and_then(|it| it.waiting.as_ref());
        waiting.is_some_and(|it| it.reason.as_deref() == Some(why))
    };
    let held = |pod: &Pod| waits(pod, "sei-sidecar", "ImagePullBackOff");
    let before = scene.until_pod("a back-off", "n-0", held).await;
    assert_eq!(phase(&before), "Pending");
    for name in ["kube-rbac-proxy", "seid", "cosmos-exporter"] {
        assert!(waits(&before, name, "PodInitializing"), "{name}");
    }
    assert_eq!(
        Caller::new(&scene, "n").get("/v0/healthz").await,
        Told::Closed
    );

    change_image(
        &scene,
        "initContainers",
        "sei-sidecar",
        "registry.example/sidecar:2",
    )
    .await;
    let after = running(&scene, "n-0").await;
    assert_eq!(uid(&before), uid(&after));
    assert_eq!(
        status(&after, "sei-sidecar").map(|it| it.restart_count),
        Some(0)
    );

    change_image(
        &scene,
        "containers",
        "cosmos-exporter",
        "registry.example/broken:2",
    )
    .await;
    let held = |pod: &Pod| waits(pod, "cosmos-exporter", "ImagePullBackOff");
    let after = scene.until_pod("a back-off", "n-0", held).await;
    assert_eq!(phase(&after), "Running", "it ran before");
    assert!(status(&after, "seid").is_some_and(|it| it.restart_count == 0));
}

#[tokio::test]
async fn a_pod_that_is_made_anew_approves_itself_unless_its_start_is_another() {
    let scene = Stage::shared().await.scene("anew").await;
    let (node, platform) = (scene.full_node("n", json!({})).await, platform());
    apply_all(&scene, &node, &platform).await;
    let first = running(&scene, "n-0").await;
    let caller = Caller::new(&scene, "n");
    caller
        .submit(&task_id(1), "config-apply", json!({ "mode": "full" }))
        .await;
    caller.submit(&task_id(2), "mark-ready", json!({})).await;
    scene.until_pod("readiness", "n-0", is_ready).await;

    scene.delete::<Pod>("n-0").await;
    let other = |before: &Pod| {
        let before = uid(before).to_owned();
        move |pod: &Pod| uid(pod) != before && phase(pod) == "Running"
    };
    let second = scene.until_pod("another pod", "n-0", other(&first)).await;
    scene.until_pod("readiness", "n-0", is_ready).await;
    let seen = scene.seen("n");
    assert_eq!(
        (seen.created.len(), seen.deleted.len(), seen.process_starts),
        (2, 1, 2)
    );
    assert!(seen.deleted.contains(uid(&first)) && seen.created.contains(uid(&second)));

    let node = scene
        .edit("n", json!({ "image": "registry.example/seid:v7.0.0" }))
        .await;
    apply_set(&scene, &node, &platform).await;
    scene.delete::<Pod>("n-0").await;
    let third = scene.until_pod("a third pod", "n-0", other(&second)).await;
    assert!(!is_ready(&third), "another image is not approved");
    assert_eq!(caller.get("/v0/healthz").await.status(), Some(503));
    assert_eq!(scene.seen("n").process_starts, 2);
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test]
async fn a_job_completes_when_its_pod_was_marked_ready_and_has_replayed() {
    let scene = Stage::shared().await.scene("job").await;
    let (node, platform) = (scene.bootstrapped("n", 1000, json!({})).await, platform());
    apply_claim(&scene, &node, &platform).await;
    apply_proxy_config(&scene, &node, &platform).await;
    apply_job(&scene, &node, &platform).await;
    scene.until_serving("n", "off").await;
    let caller = Caller::new(&scene, "n");
    caller
        .submit(
            &task_id(1),
            "snapshot-restore",
            json!({ "targetHeight": 1000 }),
        )
        .await;
    let active = scene.api::<Job>().get("n-bootstrap").await.expect("a Job");
    assert_ne!(active.status.and_then(|it| it.succeeded), Some(1));
    caller.submit(&task_id(2), "mark-ready", json!({})).await;
    let complete = |job: Option<&Job>| {
        let conditions = job.and_then(|it| it.status.as_ref()?.conditions.as_ref());
        let mut all = conditions.into_iter().flatten();
        all.any(|it| it.type_ == "Complete" && it.status == "True")
    };
    scene
        .until_object("completion", "n-bootstrap", complete)
        .await;
    assert_eq!(
        caller.get("/v0/healthz").await,
        Told::Closed,
        "its pod has ended"
    );

    // What the bootstrap pod was allowed, the node's own pod is not.
    apply_set(&scene, &node, &platform).await;
    let pod = running(&scene, "n-0").await;
    assert!(!is_ready(&pod));
    assert_eq!(
        caller.task(&task_id(1)).await,
        "completed",
        "the volume is the same"
    );
    assert_eq!(scene.seen("n").process_starts, 1);
}

#[tokio::test]
async fn a_node_that_is_paused_is_left_as_it_is_until_it_is_resumed() {
    let scene = Stage::shared().await.scene("paused").await;
    let platform = platform();
    scene.pause("held");
    for name in ["held", "other"] {
        let node = scene.full_node(name, json!({})).await;
        apply_all(&scene, &node, &platform).await;
    }
    scene
        .until_seen("a pod", "held", |seen| seen.created.len() == 1)
        .await;
    running(&scene, "other-0").await;
    let held = scene.api::<Pod>().get("held-0").await.expect("a pod");
    assert_eq!(held.spec.and_then(|it| it.node_name), None);
    scene.resume("held");
    running(&scene, "held-0").await;
}

#[tokio::test]
async fn a_slow_pod_takes_its_time_to_come_and_to_go() {
    let scene = Stage::shared().await.scene("slow").await;
    let slow = Duration::from_millis(700);
    scene.script("n", |script| (script.start, script.stop) = (slow, slow));
    let (node, platform) = (scene.full_node("n", json!({})).await, platform());
    let begun = Instant::now();
    apply_all(&scene, &node, &platform).await;
    let pod = running(&scene, "n-0").await;
    assert!(begun.elapsed() >= slow, "{:?}", begun.elapsed());
    let begun = Instant::now();
    scene.delete::<Pod>("n-0").await;
    scene
        .until_object("its end", "n-0", |it: Option<&Pod>| {
            it.is_none_or(|it| uid(it) != uid(&pod))
        })
        .await;
    assert!(begun.elapsed() >= slow, "{:?}", begun.elapsed());
}

#[tokio::test]
async fn a_claim_that_is_made_anew_is_an_empty_volume() {
    let scene = Stage::shared().await.scene("claims").await;
    let (node, platform) = (scene.full_node("n", json!({})).await, platform());
    apply_all(&scene, &node, &platform).await;
    let first = running(&scene, "n-0").await;
    let caller = Caller::new(&scene, "n");
    caller.submit(&task_id(1), "mark-ready", json!({})).await;
    scene.delete::<StatefulSet>("n").await;
    scene.delete::<PersistentVolumeClaim>("data-n").await;
    let gone = |claim: Option<&PersistentVolumeClaim>| claim.is_none();
    scene.until_object("its end", "data-n", gone).await;
    apply_all(&scene, &node, &platform).await;
    let again = |pod: &Pod| uid(pod) != uid(&first) && phase(pod) == "Running";
    scene.until_pod("another pod", "n-0", again).await;
    assert_eq!(
        caller
            .get(&format!("/v0/tasks/{}", task_id(1)))
            .await
            .status(),
        Some(404)
    );
    assert_eq!(caller.get("/v0/healthz").await.status(), Some(503));
}

#[tokio::test]
async fn a_node_that_is_deleted_takes_its_pod_and_its_volume_with_it() {
    let scene = Stage::shared().await.scene("deleted").await;
    let gone_with_it = json!({ "dataVolume": { "retainOnDelete": false } });
    let (node, platform) = (scene.full_node("n", gone_with_it).await, platform());
    apply_all(&scene, &node, &platform).await;
    let pod = running(&scene, "n-0").await;
    let claim = scene.api::<PersistentVolumeClaim>().get("data-n").await;
    let volume = claim.expect("a claim").spec.and_then(|it| it.volume_name);
    let volume = volume.expect("a volume");
    scene.delete::<SeiNode>("n").await;
    let gone = |seen: &Seen| seen.deleted.contains(uid(&pod));
    scene.until_seen("the end of its pod", "n", gone).await;
    scene
        .until_object("its end", "data-n", |it: Option<&PersistentVolumeClaim>| {
            it.is_none()
        })
        .await;
    let volumes = Api::<PersistentVolume>::all(scene.client());
    let look = async || match volumes.get_opt(&volume).await {
        Ok(None) => Ok(()),
        other => Err(format!("{other:?}")),
    };
    let waited = keelson_testbed::until("its end", Duration::from_secs(20), look).await;
    waited.expect("a volume that is gone");
    assert_eq!(scene.seen("n").created.len(), 1);
}
