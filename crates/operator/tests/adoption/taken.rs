//! Running nodes are taken over, and nothing of them restarts.

use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Service};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use keelson_api::SeiNode;
use keelson_api::node_status::NodePhase;
use kube::ResourceExt;

use crate::operator::Operator;
use crate::original::{Original, platforms};
use crate::stage::{Scene, Stage};

const RUNNING: [&str; 4] = ["archive", "validator", "rpc-0", "rpc-1"];

/// Calls of the operator that change a pod, except its annotations by way of a nudge.
fn pod_writes(scene: &Scene) -> Vec<String> {
    let writes = scene.faults().writes().into_iter();
    let writes = writes.map(|it| it.to_string());
    writes.filter(|it| it.contains("/pods/")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn running_nodes_are_taken_over_and_nothing_of_them_restarts() {
    let Some(original) = Original::read() else {
        return;
    };
    for (name, platform) in platforms() {
        let scene = Stage::shared().await.scene(name).await;
        for node in RUNNING {
            original.make(&scene, node).await;
            original.approve(&scene, node).await;
        }
        let mut pods = Vec::new();
        for node in RUNNING {
            let pod = scene.api::<Pod>().get(&format!("{node}-0")).await;
            pods.push(pod.expect("a pod"));
        }
        let _operator = Operator::start(&scene, platform).await;
        for (node, before) in RUNNING.into_iter().zip(&pods) {
            let taken = scene
                .until_status("being taken over", node, |_, status| {
                    let settled =
                        |it: &&k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
                            it.type_ == "Reconciling" && it.reason == "Settled"
                        };
                    status.conditions.iter().any(|it| settled(&it))
                })
                .await;
            let status = taken.status.expect("a status");
            assert_eq!(status.phase, Some(NodePhase::Running), "{name} {node}");
            assert_eq!(status.plan, None);
            let outdated = status
                .conditions
                .iter()
                .find(|it| it.type_ == "TemplateOutdated");
            assert_eq!(outdated.map(|it| it.status.as_str()), Some("True"));
            let pod = scene.api::<Pod>().get(&format!("{node}-0")).await;
            let pod = pod.expect("a pod");
            assert_eq!(pod.uid(), before.uid());
            assert_eq!(pod.spec, before.spec, "no image is changed in place");
            let seen = scene.seen(node);
            assert_eq!((seen.created.len(), seen.deleted.len()), (1, 0));
            assert_eq!(seen.restarts.len(), 0, "{:?}", seen.restarts);
            assert_eq!(seen.process_starts, 1);
            let claim = scene.api::<PersistentVolumeClaim>();
            let claim = claim.get(&format!("data-{node}")).await.expect("a claim");
            assert_eq!(claim.owner_references(), [], "{name} {node}");
            let service = scene.api::<Service>().get(node).await.expect("a Service");
            assert_eq!(service.owner_references().len(), 1);
            let policies = scene.api::<NetworkPolicy>();
            let list = policies.list(&Default::default()).await.expect("a list");
            let of_node = |it: &&NetworkPolicy| {
                it.labels().get("sei.io/node").map(String::as_str) == Some(node)
            };
            assert_eq!(list.items.iter().filter(of_node).count(), 1);
        }
        assert_eq!(pod_writes(&scene), Vec::<String>::new(), "{name}");
        assert_eq!(scene.violations(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_was_taken_over_is_deleted_without_its_data() {
    let Some(original) = Original::read() else {
        return;
    };
    let scene = Stage::shared().await.scene("leave").await;
    original.make(&scene, "archive").await;
    original.approve(&scene, "archive").await;
    // Before anyone has looked at it: its claim is still owned and its finalizer the original's.
    scene.delete::<SeiNode>("archive").await;
    let [(_, platform), _] = platforms();
    let _operator = Operator::start(&scene, platform).await;
    scene
        .until_object("its end", "archive", |it: Option<&SeiNode>| it.is_none())
        .await;
    scene
        .until_object("its pod's end", "archive-0", |it: Option<&Pod>| {
            it.is_none()
        })
        .await;
    let claims = scene.api::<PersistentVolumeClaim>();
    let claim = claims.get("data-archive").await.expect("the claim");
    assert_eq!(claim.metadata.deletion_timestamp, None);
    assert_eq!(claim.owner_references(), []);
    let events = scene.events("archive", "VolumeRetained").await;
    assert_eq!(events.len(), 1, "{events:?}");
}
