//! Nodes from nothing.

use crate::words::read_well;
use crate::world::{SEID, world};
use k8s_openapi::api::core::v1::Pod;
use keelson_api::names::Port;
use serde_json::json;

#[tokio::test]
async fn a_validator_and_a_full_node_from_nothing_run_and_make_blocks() {
    let chain = world().await.chain("boot").await;
    chain.apply(&chain.validator());
    chain.apply(&chain.node("full", json!({ "fullNode": {} })));
    chain.running("validator").await;
    chain.makes_blocks("validator", 3).await;
    chain.running("full").await;
    chain.makes_blocks("full", 3).await;
    for node in ["validator", "full"] {
        let restarts = chain.restarts(node).await;
        assert!(restarts.values().all(|it| *it == 0), "{node}: {restarts:?}");
        let seid = chain.container(node, "seid");
        println!("{node}: {seid:?}");
    }
    read_well(&chain, &["validator", "full"]).await;
}

#[tokio::test]
async fn a_node_is_held_at_the_gate_until_it_is_set_up_and_is_ready_when_it_serves() {
    let chain = world().await.unpublished("gate").await;
    chain.apply(&chain.validator());
    // Everything but the genesis is there: the containers run, and the process does not.
    chain
        .until("validator", "a genesis is missed", |seen| {
            let plan = seen.status.as_ref().and_then(|it| it.plan.clone());
            serde_json::to_string(&plan).is_ok_and(|it| it.contains("NoSuchKey"))
        })
        .await;
    let held = chain.container("validator", "seid");
    let (status, _) = chain
        .get("validator", Port::Api, "/v0/healthz")
        .await
        .expect("an answer");
    assert_eq!(status, 503);
    assert!(chain.height("validator").await.is_err());
    assert!(!is_ready(&chain.pod("validator").await.expect("a pod")));
    let log = chain.log("validator", "seid");
    assert_eq!(log.trim(), "waiting until the sidecar lets the node start");

    chain.publish();
    let seen = chain.running("validator").await;
    let (status, _) = chain
        .get("validator", Port::Api, "/v0/healthz")
        .await
        .expect("an answer");
    assert_eq!(status, 200);
    chain.makes_blocks("validator", 2).await;
    assert_eq!(
        chain.container("validator", "seid").process,
        held.process,
        "it became the node"
    );
    chain
        .until("validator", "Ready", |seen| {
            let conditions = seen.status.iter().flat_map(|it| &it.conditions);
            conditions
                .into_iter()
                .any(|it| it.type_ == "Ready" && it.status == "True")
        })
        .await;
    assert!(is_ready(&chain.pod("validator").await.expect("a pod")));
    assert_eq!(
        seen.status.and_then(|it| it.current_image).as_deref(),
        Some(SEID)
    );
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod
        .status
        .iter()
        .flat_map(|it| it.conditions.iter().flatten());
    conditions
        .into_iter()
        .any(|it| it.type_ == "Ready" && it.status == "True")
}
