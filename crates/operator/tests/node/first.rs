//! A node from its creation to `Running`.

use keelson_api::node_status::NodePhase;
use keelson_wire::TaskType;
use serde_json::json;

use crate::mark::{writes, written_at_rest};
use crate::operator::Operator;
use crate::stage::{Stage, platform};

#[tokio::test(flavor = "multi_thread")]
async fn a_full_node_comes_to_run_and_then_nothing_is_written() {
    let scene = Stage::shared().await.scene("first").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene.full_node("node", json!({})).await;
    let node = scene.settled("node").await;
    let status = node.status.expect("a status");
    assert_eq!(status.phase, Some(NodePhase::Running));
    assert_eq!(
        status.current_image.as_deref(),
        Some("registry.example/seid:v6.0.0")
    );
    let seen = scene.seen("node");
    assert_eq!(
        seen.types(),
        [
            TaskType::ConfigureGenesis,
            TaskType::ConfigApply,
            TaskType::ConfigValidate,
            TaskType::MarkReady,
        ]
    );
    assert_eq!(seen.created.len(), 1);
    assert_eq!(seen.deleted.len(), 0);
    assert!(!writes(&scene).is_empty(), "what is written is seen");
    assert_eq!(
        written_at_rest(&scene, &["node"]).await,
        Vec::<String>::new()
    );
    assert_eq!(scene.violations(), Vec::<String>::new());
}
