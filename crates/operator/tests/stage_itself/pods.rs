//! Pods come up, change in place and go.

use k8s_openapi::api::core::v1::{ContainerStatus, PersistentVolumeClaim, Pod};
use serde_json::json;

use crate::caller::Caller;
use crate::rendered::{apply_all, apply_claim, apply_proxy_config, apply_set};
use crate::stage::{Stage, platform};

/// The status of one container, wherever it stands.
fn status<'a>(pod: &'a Pod, container: &str) -> Option<&'a ContainerStatus> {
    let status = pod.status.as_ref()?;
    let init = status.init_container_statuses.iter().flatten();
    let mut all = init.chain(status.container_statuses.iter().flatten());
    all.find(|it| it.name == container)
}

fn phase(pod: &Pod) -> &str {
    let phase = pod.status.as_ref().and_then(|it| it.phase.as_deref());
    phase.unwrap_or_default()
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .iter()
        .flat_map(|it| it.conditions.iter().flatten());
    let mut ready = conditions.filter(|it| it.type_ == "Ready");
    ready.any(|it| it.status == "True")
}

fn uid(pod: &Pod) -> &str {
    pod.metadata.uid.as_deref().unwrap_or_default()
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
    let pod = scene
        .until_pod("running", "n-0", |pod| phase(pod) == "Running")
        .await;
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
    let id = "6b1f3a5e-0000-4000-8000-000000000001";
    let told = caller.submit(id, "mark-ready", json!({})).await;
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
    let before = scene
        .until_pod("running", "n-0", |pod| phase(pod) == "Running")
        .await;
    let patch = json!({ "spec": { "initContainers": [
        { "name": "kube-rbac-proxy", "image": "registry.example/keelson-proxy:2" },
    ]}});
    let patch = kube::api::Patch::Strategic(patch);
    let pods = scene.api::<Pod>();
    let patched = pods
        .patch("n-0", &kube::api::PatchParams::default(), &patch)
        .await;
    patched.expect("a patch");
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
