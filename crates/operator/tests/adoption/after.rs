//! What happens to a node later that was taken over: it is approved again, rolls once for an edit,
//! and nothing of the original's is left in its objects then.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Service};
use keelson_api::SeiNode;
use keelson_cluster::{comparable, owned};
use keelson_render::{Node, Platform, proxy_config, service, stateful_set};
use keelson_wire::TaskType;
use kube::ResourceExt;
use serde::Serialize;
use serde_json::{Value, json};

use crate::operator::Operator;
use crate::original::{Original, platforms};
use crate::stage::objects::tls_by_issuer;
use crate::stage::{Scene, Stage};

/// An archive of the original, taken over.
async fn taken(scene: &Scene, original: &Original, platform: Platform) -> Operator {
    original.make(scene, "archive").await;
    original.approve(scene, "archive").await;
    // From here on tokens are shown to the API server.
    scene.script("archive", |script| script.reviews = true);
    let operator = Operator::start(scene, platform).await;
    scene.settled("archive").await;
    operator
}

/// What of an object is ours is what we render, and nobody else has anything in it.
fn is_ours_alone(live: &impl Serialize, rendered: &impl Serialize) {
    let live = serde_json::to_value(live).expect("a value");
    let rendered = serde_json::to_value(rendered).expect("a value");
    let name = &live["metadata"]["name"];
    let ours = owned(&live, "seinode-controller");
    let (ours, wanted) = (sorted(&ours), sorted(&comparable(&rendered)));
    assert_eq!(ours, wanted, "{name}");
    let managers = live["metadata"]["managedFields"].as_array();
    let foreign: Vec<_> = managers
        .into_iter()
        .flatten()
        .filter(|it| it["subresource"] != "status")
        .map(|it| it["manager"].as_str().unwrap_or_default())
        .filter(|it| *it != "seinode-controller")
        .collect();
    assert_eq!(foreign, Vec::<&str>::new(), "{name}");
}

/// In a form in which the order of fields does not count.
fn sorted(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut lines: Vec<_> = fields
                .iter()
                // A delay of nothing is not kept by the server.
                .filter(|(name, value)| *name != "initialDelaySeconds" || **value != 0)
                .map(|(name, value)| format!("{name:?}: {}", sorted(value)))
                .collect();
            lines.sort();
            format!("{{{}}}", lines.join(",\n"))
        }
        Value::Array(all) => {
            let all: Vec<_> = all.iter().map(sorted).collect();
            format!("[{}]", all.join(", "))
        }
        value => value.to_string(),
    }
}

async fn no_leftover(scene: &Scene, platform: &Platform) {
    let object = scene.api::<SeiNode>().get("archive").await.expect("a node");
    let node = Node::read(&object).expect("a node");
    let set = scene.api::<StatefulSet>().get("archive").await;
    let rendered = stateful_set::stateful_set(&node, platform).expect("a StatefulSet");
    is_ours_alone(&set.expect("a StatefulSet"), &rendered);
    let live = scene.api::<Service>().get("archive").await;
    is_ours_alone(&live.expect("a Service"), &service::service(&node));
    let live = scene.api::<ConfigMap>();
    let live = live.get("archive-rbac-proxy-config").await;
    let rendered = proxy_config::config_map(&node, platform);
    is_ours_alone(&live.expect("a ConfigMap"), &rendered);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sidecar_that_lost_its_approval_is_approved_again() {
    let Some(original) = Original::read() else {
        return;
    };
    for (name, platform) in platforms() {
        let scene = Stage::shared().await.scene(name).await;
        let _operator = taken(&scene, &original, platform).await;
        for times in 1..=2 {
            scene.crash("archive", "sei-sidecar");
            // Nothing tells an operator of it but the pod's status.
            let again = |seen: &crate::stage::ledger::Seen| {
                let marks = seen.types();
                let marks = marks.iter().filter(|it| **it == TaskType::MarkReady);
                marks.count() == 1 + times
            };
            scene.until_seen("another approval", "archive", again).await;
            scene
                .until_pod("its readiness", "archive-0", crate::original::is_ready)
                .await;
            scene.settled("archive").await;
        }
        let seen = scene.seen("archive");
        assert_eq!((seen.created.len(), seen.process_starts), (1, 1), "{name}");
        assert_eq!(seen.restarted("seid"), 0);
        assert_eq!(scene.violations(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_image_edit_rolls_an_adopted_pod_once_and_leaves_nothing_of_the_originals() {
    let Some(original) = Original::read() else {
        return;
    };
    for (name, platform) in platforms() {
        let scene = Stage::shared().await.scene(name).await;
        let _operator = taken(&scene, &original, platform.clone()).await;
        let image = "registry.example/seid:v6.1.0";
        scene.edit("archive", json!({ "image": image })).await;
        let node = scene.settled("archive").await;
        let status = node.status.expect("a status");
        assert_eq!(status.current_image.as_deref(), Some(image));
        let said = |type_: &str| {
            let mut all = status.conditions.iter();
            all.find(|it| it.type_ == type_).map(|it| it.reason.clone())
        };
        let reason = said("NodeUpdateInProgress");
        assert_eq!(reason.as_deref(), Some("UpdateComplete"));
        let reason = said("TemplateOutdated");
        assert_eq!(reason.as_deref(), Some("TemplateCurrent"));
        let seen = scene.seen("archive");
        assert_eq!((seen.created.len(), seen.deleted.len()), (2, 1), "{name}");
        assert_eq!(seen.restarts.len(), 0);
        // What follows by itself is of the new template.
        let pod = scene.api::<Pod>().get("archive-0").await.expect("a pod");
        let set = scene.api::<StatefulSet>().get("archive").await;
        let status = set.expect("a StatefulSet").status.expect("a status");
        let revision = pod.labels().get("controller-revision-hash");
        assert_eq!(revision, status.update_revision.as_ref());
        no_leftover(&scene, &platform).await;
        assert_eq!(scene.violations(), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_on_an_adopted_pod_cycles_it_once() {
    let Some(original) = Original::read() else {
        return;
    };
    for (name, platform) in platforms() {
        let scene = Stage::shared().await.scene(name).await;
        scene.issuer("ca").await;
        let _operator = taken(&scene, &original, platform.clone()).await;
        scene
            .edit("archive", json!({ "sidecar": tls_by_issuer("ca") }))
            .await;
        let node = scene.settled("archive").await;
        let status = node.status.expect("a status");
        let tls = status.current_sidecar_tls.expect("TLS that was seen");
        assert_eq!(tls.issuer_name.as_deref(), Some("ca"));
        let seen = scene.seen("archive");
        assert_eq!((seen.created.len(), seen.deleted.len()), (2, 1), "{name}");
        assert_eq!(seen.restarts.len(), 0);
        assert_eq!(scene.serving("archive").map(|it| it.0), Some("required"));
        no_leftover(&scene, &platform).await;
        assert_eq!(scene.violations(), Vec::<String>::new());
    }
}
