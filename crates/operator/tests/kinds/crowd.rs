//! A node whose sidecar hangs is nobody else's trouble.

use std::time::{Duration, Instant};

use keelson_api::SeiNode;
use keelson_api::node_status::NodePhase;
use serde_json::json;

use crate::operator::Operator;
use crate::stage::{Fault, Stage, platform};

const OTHERS: usize = 30;

#[tokio::test(flavor = "multi_thread")]
async fn a_sidecar_that_hangs_delays_none_of_thirty_nodes_made_with_it() {
    let scene = Stage::shared().await.scene("crowd").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene.fault("hangs", Some(Fault::BlackHole));
    scene.full_node("hangs", json!({})).await;
    // It hangs before the others are there.
    scene
        .until_pod("its pod", "hangs-0", |pod| {
            let status = pod.status.as_ref();
            status.and_then(|it| it.phase.as_deref()) == Some("Running")
        })
        .await;
    let begun = Instant::now();
    let names: Vec<String> = (0..OTHERS).map(|number| format!("node-{number}")).collect();
    let made = names.iter().map(|name| scene.full_node(name, json!({})));
    futures::future::join_all(made).await;
    let settling = names.iter().map(|name| scene.settled(name));
    futures::future::join_all(settling).await;
    println!(
        "{OTHERS} nodes beside one that hangs: {:?}",
        begun.elapsed()
    );

    let hangs = scene
        .api::<SeiNode>()
        .get("hangs")
        .await
        .expect("the node that hangs");
    let status = hangs.status.expect("a status");
    assert_eq!(status.phase, Some(NodePhase::Initializing));
    // Nothing waits in silence: the plan says what for.
    let plan = status.plan.expect("a plan");
    let waits = plan.tasks.iter().find_map(|it| it.waiting_on.clone());
    let waits = waits.unwrap_or_default();
    assert!(waits.contains("hangs-0"), "{waits}");

    scene.fault("hangs", None);
    let mended = Instant::now();
    scene.settled("hangs").await;
    assert!(mended.elapsed() < Duration::from_secs(30));
    assert_eq!(scene.violations(), Vec::<String>::new());
}
