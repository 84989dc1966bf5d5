//! The stage has to hold the thousand nodes the operator is measured with.

use std::time::{Duration, Instant};

use futures::{StreamExt, stream};
use serde_json::json;

use crate::caller::{Caller, task_id};
use crate::rendered::apply_all;
use crate::stage::{Stage, platform};

/// How many nodes, where the environment does not say.
const NODES: usize = 30;
/// A write of the test's, of the controller manager's and of the stage's, on a busy machine.
const EACH: Duration = Duration::from_secs(2);

#[tokio::test]
async fn many_nodes_come_up_with_one_write_for_each_change_of_a_pod() {
    let count = std::env::var("KEELSON_STAGE_NODES");
    let count = count.map_or(NODES, |it| {
        it.parse().expect("KEELSON_STAGE_NODES is a number")
    });
    let scene = Stage::shared().await.scene("many").await;
    let platform = platform();
    let names: Vec<_> = (0..count).map(|number| format!("n{number}")).collect();
    let begun = Instant::now();
    let applying = stream::iter(&names).for_each_concurrent(8, async |name| {
        let node = scene.full_node(name, json!({})).await;
        apply_all(&scene, &node, &platform).await;
    });
    applying.await;
    println!("{count} nodes applied after {:?}", begun.elapsed());
    let coming = stream::iter(&names).for_each_concurrent(8, async |name| {
        scene.until_serving(name, "off").await;
        let caller = Caller::new(&scene, name);
        let told = caller.submit(&task_id(1), "mark-ready", json!({})).await;
        assert_eq!(told.status(), Some(201), "{name}");
        scene
            .until_seen("a process", name, |seen| seen.process_starts == 1)
            .await;
    });
    coming.await;
    let took = begun.elapsed();
    println!("{count} nodes marked ready after {took:?}");
    assert!(
        took < EACH * u32::try_from(count).expect("a few"),
        "{took:?}"
    );
    for name in &names {
        let seen = scene.seen(name);
        assert_eq!(seen.created.len(), 1, "{name}");
        // Waiting for its volume, running, ready: no more than one write for each.
        assert!(seen.status_writes <= 4, "{name}: {}", seen.status_writes);
    }
    assert_eq!(scene.violations(), Vec::<String>::new());
}
