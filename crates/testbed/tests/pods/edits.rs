//! Edits of running nodes, and nodes that go and come back.

use crate::bootstrap::began_at;
use crate::mark::Mark;
use crate::words::read_well;
use crate::world::{NEW, PATIENCE, SEID, world};
use k8s_openapi::api::core::v1::PersistentVolumeClaim;
use keelson_api::SeiNode;
use keelson_api::names::Port;
use keelson_testbed::{Product, images, until};
use kube::Api;
use serde_json::json;

/// Why a node says it is stalled.
pub(crate) fn stalled(node: &SeiNode) -> Option<String> {
    let mut conditions = node.status.iter().flat_map(|it| &it.conditions);
    let stalled = conditions.find(|it| it.type_ == "Stalled" && it.status == "True");
    stalled.map(|it| it.message.clone())
}

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
            stalled(seen).is_some_and(|why| why.contains("ImagePullBackOff"))
        })
        .await;
    chain.makes_blocks("validator", 2).await;
    read_well(&chain, &["validator", "full"]).await;

    node["spec"]["image"] = json!(NEW);
    chain.apply(&node);
    let seen = chain
        .until("full", "the good image, and nothing stalled", |seen| {
            let status = seen.status.as_ref();
            stalled(seen).is_none()
                && status
                    .is_some_and(|it| it.current_image.as_deref() == Some(NEW) && it.plan.is_none())
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
    let gone = until("the pod's end", PATIENCE, async || {
        match chain.pod("validator").await {
            Ok(_) => Err("it is there".to_owned()),
            Err(_) => Ok(()),
        }
    });
    gone.await.expect("a pod that is gone");
    let kept = claims.get("data-validator").await.expect("the claim");
    assert_eq!(kept.metadata.uid, claim.metadata.uid);
    assert!(kept.metadata.deletion_timestamp.is_none());

    chain.apply(&chain.validator());
    let seen = chain.running("validator").await;
    chain.makes_blocks("validator", 2).await;
    let began = began_at(&chain, "validator");
    assert!(began >= before, "it began at {began}, and not at {before}");
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

#[tokio::test]
async fn an_image_of_the_sidecar_that_cannot_be_pulled_is_put_back_and_a_good_one_is_taken() {
    let world = world().await;
    let chain = world.chain("pulled").await;
    let (first, missing) = (
        images::name(Product::Sidecar),
        "localhost/keelson-sidecar:missing",
    );
    let mut node = chain.validator();
    chain.apply(&node);
    chain.running("validator").await;
    let mut expected = Mark::of(&chain, "validator").await;

    node["spec"]["sidecar"] = json!({ "image": missing });
    chain.apply(&node);
    let seen = chain
        .until("validator", "that it is stalled, and as before", |seen| {
            let status = seen.status.as_ref();
            stalled(seen).is_some()
                && status.is_some_and(|it| !it.put_back.is_empty() && it.plan.is_none())
        })
        .await;
    let why = stalled(&seen).expect("a reason");
    let pull = ["ImagePullBackOff", "ErrImagePull"];
    assert!(pull.iter().any(|it| why.contains(it)), "{why}");
    assert!(why.contains(missing) && why.contains(&first), "{why}");
    println!("Stalled: {why}");
    expected.restarts.insert("sei-sidecar".to_owned(), 1);
    let again = until("the sidecar of before", PATIENCE, async || {
        let mark = Mark::of(&chain, "validator").await;
        let answer = chain.get("validator", Port::Api, "/v0/healthz").await;
        match (mark == expected, answer) {
            (true, Ok((200, _))) => Ok(()),
            (_, answer) => Err(format!("{mark:?}, {answer:?}")),
        }
    });
    again.await.expect("the sidecar again, and nothing else");
    let seen = chain.running("validator").await;
    assert_eq!(stalled(&seen), Some(why), "it is said until it is mended");
    let status = seen.status.expect("a status");
    assert_eq!(status.current_sidecar_image, Some(first.clone()));

    // What is good is the same image by another name, of which the runtime still tells the first.
    let also = "localhost/keelson-sidecar:also";
    world.cluster.tag(&first, also).expect("another name");
    node["spec"]["sidecar"] = json!({ "image": also });
    chain.apply(&node);
    chain
        .until("validator", "the good image, and nothing stalled", |seen| {
            let status = seen.status.as_ref();
            stalled(seen).is_none()
                && status.is_some_and(|it| {
                    it.current_sidecar_image.as_deref() == Some(also) && it.plan.is_none()
                })
        })
        .await;
    expected.restarts.insert("sei-sidecar".to_owned(), 2);
    assert_eq!(Mark::of(&chain, "validator").await, expected);
    chain.makes_blocks("validator", 2).await;
}
