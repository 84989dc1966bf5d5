//! Fields that change one container of a running pod, and leave the node's process alone.

use k8s_openapi::api::apps::v1::StatefulSet;
use keelson_wire::TaskType::MarkReady;
use kube::ResourceExt;
use serde_json::json;

use crate::covered::Covered;
use crate::mark::{Change, Mark, look_again, pod_of, running};
use crate::operator::Operator;
use crate::stage::{Scene, platform};

pub(crate) const COVERED: Covered = &[(
    another_sidecar_image_restarts_that_container_and_nothing_else,
    &["sidecar.image"],
)];

/// The template has followed, and nobody takes the pod for one of an old template.
async fn followed(scene: &Scene, image: &str) {
    let set = scene.api::<StatefulSet>().get("node").await;
    let set = set.expect("a StatefulSet");
    let template = set.spec.expect("a spec").template.spec.expect("a pod");
    let mut all = template.init_containers.into_iter().flatten();
    let sidecar = all.find(|it| it.name == "sei-sidecar").expect("a sidecar");
    assert_eq!(sidecar.image.as_deref(), Some(image));
    let revision = set.status.and_then(|it| it.update_revision);
    let pod = pod_of(scene, "node").await;
    assert_eq!(
        pod.labels().get("controller-revision-hash"),
        revision.as_ref()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_sidecar_image_restarts_that_container_and_nothing_else() {
    let (scene, operator) = running("sidecar-image", json!({})).await;
    for image in [
        "registry.example/keelson-sidecar:2",
        "registry.example/keelson-sidecar:3",
    ] {
        let mark = Mark::of(&scene, "node").await;
        let change = mark
            .edit(&scene, json!({ "sidecar": { "image": image } }))
            .await;
        assert_eq!(change, Change::in_place("sei-sidecar", &[MarkReady]));
        let status = scene.settled("node").await.status.expect("a status");
        assert_eq!(status.current_sidecar_image.as_deref(), Some(image));
        followed(&scene, image).await;
    }
    // Taken back, the platform's comes again, in the same way.
    let mark = Mark::of(&scene, "node").await;
    let change = mark
        .edit(&scene, json!({ "sidecar": { "image": null } }))
        .await;
    assert_eq!(change, Change::in_place("sei-sidecar", &[MarkReady]));

    followed(&scene, "registry.example/keelson-sidecar:1").await;
    drop(operator);
    let _operator = Operator::start(&scene, platform()).await;
    look_again(&scene, "node").await;
    assert_eq!(
        mark.since(&scene).await,
        Change::in_place("sei-sidecar", &[MarkReady])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sidecar_image_that_comes_with_something_that_rolls_comes_with_the_new_pod() {
    let (scene, _operator) = running("image-and-port", json!({})).await;
    let mark = Mark::of(&scene, "node").await;
    let edit =
        json!({ "sidecar": { "image": "registry.example/keelson-sidecar:2", "port": 7878 } });
    let change = mark.edit(&scene, edit).await;
    assert_eq!(change, Change::rolled(&[MarkReady]));
}
