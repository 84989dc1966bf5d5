//! Nodes whose sidecars hang are nobody else's trouble.

use std::time::Instant;

use futures::future::join_all;
use keelson_api::SeiNode;
use keelson_api::node_status::{NodePhase, SeiNodeStatus};
use serde_json::json;

use crate::operator::Operator;
use crate::stage::{Fault, Stage, platform};

/// Each look at one of them lasts until a deadline; one after the other they would take all the time.
const HANG: usize = 16;
const OTHERS: usize = 30;

fn names(of: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{of}-{number}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn sidecars_that_hang_delay_none_of_thirty_nodes_made_with_them() {
    let scene = Stage::shared().await.scene("crowd").await;
    let _operator = Operator::start(&scene, platform()).await;
    let (hang, others) = (names("hangs", HANG), names("node", OTHERS));
    hang.iter()
        .for_each(|name| scene.fault(name, Some(Fault::BlackHole)));
    join_all(hang.iter().map(|name| scene.full_node(name, json!({})))).await;
    // They hang before the others are there.
    let waits = |status: &SeiNodeStatus| {
        let tasks = status.plan.iter().flat_map(|plan| &plan.tasks);
        let mut waits = tasks.filter_map(|it| it.waiting_on.as_deref());
        waits.any(|it| it.contains("hangs-") && it.contains("does not answer"))
    };
    let hanging = hang
        .iter()
        .map(|name| scene.until_status("what it waits for", name, |_, status| waits(status)));
    join_all(hanging).await;

    let begun = Instant::now();
    join_all(others.iter().map(|name| scene.full_node(name, json!({})))).await;
    join_all(others.iter().map(|name| scene.settled(name))).await;
    println!(
        "{OTHERS} nodes beside {HANG} that hang: {:?}",
        begun.elapsed()
    );

    for name in &hang {
        let node = scene.api::<SeiNode>().get(name).await.expect("the node");
        let status = node.status.expect("a status");
        assert_eq!(status.phase, Some(NodePhase::Initializing));
        assert!(waits(&status), "nothing waits in silence");
        scene.fault(name, None);
    }
    join_all(hang.iter().map(|name| scene.settled(name))).await;
    assert_eq!(scene.violations(), Vec::<String>::new());
}
