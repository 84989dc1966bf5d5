//! Nodes whose sidecars hang are nobody else's trouble, not even where they outnumber the workers.

use std::time::{Duration, Instant};

use futures::future::join_all;
use keelson_api::SeiNode;
use keelson_api::node_status::{NodePhase, SeiNodeStatus};
use keelson_operator::node::world::Scope;
use serde_json::json;

use crate::operator::{Operator, settings};
use crate::stage::{Fault, Scene, Stage, platform};

/// How many nodes are looked at at once.
const WORKERS: usize = 4;
/// Each look at one of them lasts until a deadline; together they would take every worker.
const HANG: usize = 3 * WORKERS;
const OTHERS: usize = 12;

fn names(of: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{of}-{number}")).collect()
}

/// Makes nodes, and says how long it takes until they are as they should be.
async fn made(scene: &Scene, of: &str) -> Duration {
    let (names, begun) = (names(of, OTHERS), Instant::now());
    join_all(names.iter().map(|name| scene.full_node(name, json!({})))).await;
    join_all(names.iter().map(|name| scene.settled(name))).await;
    begun.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn sidecars_that_hang_delay_no_other_node_though_they_outnumber_the_workers() {
    let scene = Stage::shared().await.scene("crowd").await;
    let few = settings(platform(), scene.namespace());
    let (client, scope) = (
        scene.operator_client(),
        Scope::Namespace(scene.namespace().to_owned()),
    );
    let _operator = Operator::within(&scene, client, few, scope, |it| it.workers = WORKERS).await;
    let alone = made(&scene, "alone").await;

    let hang = names("hangs", HANG);
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

    let beside = made(&scene, "beside").await;
    println!(
        "{OTHERS} nodes with {WORKERS} workers: {alone:?} alone, {beside:?} beside {HANG} that hang"
    );
    // One that waited for a worker at each of its looks would take several deadlines longer.
    assert!(
        beside < alone * 2 + Duration::from_secs(4),
        "{beside:?} beside those that hang, {alone:?} alone"
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
