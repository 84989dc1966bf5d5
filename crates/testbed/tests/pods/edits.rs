//! Edits of running nodes, and nodes that go and come back.

use crate::mark::Mark;
use crate::world::{NEW, SEID, world};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use keelson_testbed::{Product, until};
use kube::Api;
use serde_json::json;

#[tokio::test]
async fn a_bad_image_is_named_a_good_one_mends_it_and_the_others_go_on() {
    let chain = world().await.chain("image").await;
    chain.apply(&chain.validator());
    chain.running("validator").await;
    let mut node = chain.node("full", json!({ "fullNode": {} }));
    chain.apply(&node);
    chain.running("full").await;
    let before = chain.makes_blocks("full", 2).await;
    let other = Mark::of(&chain, "validator").await;

    node["spec"]["image"] = json!("localhost/seid:missing");
    chain.apply(&node);
    chain
        .until("full", "why it is stalled", |seen| {
            let conditions = seen.status.iter().flat_map(|it| &it.conditions);
            let mut stalled = conditions
                .into_iter()
                .filter(|it| it.type_ == "Stalled" && it.status == "True");
            stalled.any(|it| it.message.contains("ImagePullBackOff"))
        })
        .await;
    chain.makes_blocks("validator", 2).await;

    node["spec"]["image"] = json!(NEW);
    chain.apply(&node);
    let seen = chain
        .until("full", "the good image", |seen| {
            let status = seen.status.as_ref();
            status.is_some_and(|it| it.current_image.as_deref() == Some(NEW) && it.plan.is_none())
        })
        .await;
    assert!(seen.metadata.deletion_timestamp.is_none());
    let after = chain.makes_blocks("full", 2).await;
    assert!(after > before, "{after} after {before}");
    assert_eq!(Mark::of(&chain, "validator").await, other);
}

#[tokio::test]
async fn a_node_that_is_deleted_leaves_its_volume_and_another_of_its_name_goes_on_with_it() {
    let chain = world().await.chain("volume").await;
    chain.apply(&chain.validator());
    chain.running("validator").await;
    let before = chain.makes_blocks("validator", 5).await;
    let claims =
        Api::<PersistentVolumeClaim>::namespaced(chain.world.cluster.client(), &chain.name);
    let claim = claims.get("data-validator").await.expect("a claim");

    let place = ["--namespace", &chain.name, "delete", "seinode", "validator"];
    chain.world.kubectl.run(&place).expect("a deletion");
    let gone = until(
        "the pod's end",
        crate::world::PATIENCE,
        async || match chain.pod("validator").await {
            Ok(_) => Err("it is there".to_owned()),
            Err(_) => Ok(()),
        },
    );
    gone.await.expect("a pod that is gone");
    let kept = claims.get("data-validator").await.expect("the claim");
    assert_eq!(kept.metadata.uid, claim.metadata.uid);
    assert!(kept.metadata.deletion_timestamp.is_none());

    chain.apply(&chain.validator());
    let seen = chain.running("validator").await;
    let after = chain.makes_blocks("validator", 2).await;
    assert!(after > before, "{after} after {before}");
    assert_eq!(
        seen.status.and_then(|it| it.current_image).as_deref(),
        Some(SEID)
    );
    let kept = claims.get("data-validator").await.expect("the claim");
    assert_eq!(kept.metadata.uid, claim.metadata.uid);
}

#[tokio::test]
async fn a_new_image_of_the_sidecar_restarts_the_sidecar_alone() {
    let world = world().await;
    let chain = world.chain("sidecar").await;
    let next = "localhost/keelson-sidecar:next";
    world.bring(Product::Sidecar, next);
    let mut node = chain.validator();
    chain.apply(&node);
    chain.running("validator").await;
    let before = Mark::of(&chain, "validator").await;

    node["spec"]["sidecar"] = json!({ "image": next });
    chain.apply(&node);
    chain
        .until("validator", "the new sidecar", |seen| {
            let status = seen.status.as_ref();
            status.is_some_and(|it| {
                it.current_sidecar_image.as_deref() == Some(next) && it.plan.is_none()
            })
        })
        .await;
    let mut expected = before.clone();
    expected.restarts.insert("sei-sidecar".to_owned(), 1);
    assert_eq!(Mark::of(&chain, "validator").await, expected);
    chain.makes_blocks("validator", 2).await;
}
