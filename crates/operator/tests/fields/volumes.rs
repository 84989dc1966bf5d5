//! The data volume: brought by somebody, kept, or gone with its node.

use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use keelson_api::SeiNode;
use keelson_api::node_condition::{NodeCondition, NodeReason};
use keelson_api::node_status::NodePhase;
use serde_json::json;

use crate::mark::{opened, said};

const IMPORT: NodeCondition = NodeCondition::ImportPvcReady;

#[tokio::test(flavor = "multi_thread")]
async fn an_imported_claim_may_come_late_and_is_used_and_not_owned() {
    let (scene, _operator) = opened("import").await;
    let import =
        json!({ "dataVolume": { "import": { "pvcName": "mine" }, "retainOnDelete": false } });
    scene.full_node("node", import).await;
    let node = scene
        .until_condition("node", IMPORT, false, NodeReason::PvcNotReady)
        .await;
    assert!(said(&node, IMPORT).message.contains("mine"));
    scene.claim("mine", "2000Gi").await;
    scene.settled("node").await;
    let node = scene
        .until_condition("node", IMPORT, true, NodeReason::PvcValidated)
        .await;
    assert_eq!(
        node.status.expect("a status").phase,
        Some(NodePhase::Running)
    );
    let claims = scene.api::<PersistentVolumeClaim>();
    let claim = claims.get("mine").await.expect("the claim");
    assert_eq!(claim.metadata.owner_references, None);
    assert!(
        claims
            .get_opt("data-node")
            .await
            .expect("an answer")
            .is_none()
    );
    // An imported claim outlives the node whatever the spec says.
    scene.delete::<SeiNode>("node").await;
    let gone = |it: Option<&StatefulSet>| it.is_none();
    scene.until_object("its end", "node", gone).await;
    assert!(
        claims
            .get("mine")
            .await
            .expect("the claim")
            .metadata
            .deletion_timestamp
            .is_none()
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_imported_claim_that_is_too_small_is_said_to_be_and_not_used() {
    let (scene, _operator) = opened("import-small").await;
    scene.claim("mine", "1Gi").await;
    let import = json!({ "dataVolume": { "import": { "pvcName": "mine" } } });
    scene.full_node("node", import).await;
    let node = scene
        .until_condition("node", IMPORT, false, NodeReason::PvcInvalid)
        .await;
    assert!(said(&node, IMPORT).message.contains("1Gi"));
    scene.until_phase("node", NodePhase::Failed).await;
    assert_eq!(scene.seen("node").created.len(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bootstrap_pod_has_the_imported_claim_too() {
    let (scene, _operator) = opened("import-bootstrap").await;
    scene.claim("mine", "2000Gi").await;
    let import = json!({ "dataVolume": { "import": { "pvcName": "mine" } } });
    scene.bootstrapped("node", 7, import).await;
    scene.settled("node").await;
    let claims = scene.api::<PersistentVolumeClaim>();
    assert!(
        claims
            .get_opt("data-node")
            .await
            .expect("an answer")
            .is_none()
    );
    // The Job's pod, and the node's own.
    assert_eq!(scene.seen("node").created.len(), 2);
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_outlives_its_node_unless_the_spec_says_no() {
    let (scene, _operator) = opened("deletion").await;
    scene.full_node("keeps", json!({})).await;
    scene
        .full_node(
            "drops",
            json!({ "dataVolume": { "retainOnDelete": false } }),
        )
        .await;
    scene.settled("keeps").await;
    scene.settled("drops").await;
    for name in ["keeps", "drops"] {
        scene.delete::<SeiNode>(name).await;
        scene
            .until_object("its end", name, |it: Option<&StatefulSet>| it.is_none())
            .await;
    }
    let gone = |it: Option<&PersistentVolumeClaim>| it.is_none();
    scene
        .until_object("the end of its claim", "data-drops", gone)
        .await;
    scene
        .until_seen("the end of its pod", "keeps", |seen| {
            seen.deleted.len() == 1
        })
        .await;
    let kept = scene.api::<PersistentVolumeClaim>().get("data-keeps").await;
    assert_eq!(kept.expect("the claim").metadata.deletion_timestamp, None);
}
