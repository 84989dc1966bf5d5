//! Nodes of other modes and with TLS are as silent as a plain full node, under the operator that set
//! them up and under the next.

use serde_json::json;

use crate::mark::{look_again, opened, writes, written_at_rest};
use crate::operator::Operator;
use crate::stage::objects::tls_by_issuer;
use crate::stage::platform;

#[tokio::test(flavor = "multi_thread")]
async fn an_archive_a_validator_and_a_node_with_tls_are_silent_once_they_are_settled() {
    let (scene, operator) = opened("silent").await;
    scene.issuer("x").await;
    let nodes = ["archive", "validator", "tls"];
    scene.archive("archive", json!({})).await;
    scene.validator("validator", json!({})).await;
    let tls = json!({ "sidecar": tls_by_issuer("x") });
    scene.full_node("tls", tls).await;
    for node in nodes {
        scene.settled(node).await;
    }
    assert!(!writes(&scene).is_empty(), "what is written is seen");
    assert_eq!(written_at_rest(&scene, &nodes).await, Vec::<String>::new());
    assert_eq!(scene.serving("tls").map(|(mode, _)| mode), Some("required"));
    drop(operator);
    let _operator = Operator::start(&scene, platform()).await;
    for node in nodes {
        look_again(&scene, node).await;
    }
    assert_eq!(writes(&scene), Vec::<String>::new());
    assert_eq!(scene.violations(), Vec::<String>::new());
}
