//! Sidecars that do not answer as they should: their own nodes wait, and no other does.

use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use tokio::time::Instant;

use crate::operator::Operator;
use crate::stage::objects::tls_by_issuer;
use crate::stage::{Fault, Scene, Stage, platform};
use crate::toll::Toll;

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_comes_through_every_fault_of_its_sidecar_with_one_pod_deletion() {
    let scene = &Stage::shared().await.scene("sidecars").await;
    scene.issuer("issuer").await;
    let _operator = Operator::start(scene, platform()).await;
    let faults = [
        Fault::BlackHole,
        Fault::Refuse,
        Fault::Slow(Duration::from_millis(700)),
        Fault::Status(500),
        Fault::Status(503),
        Fault::UnauthorizedOnce,
        Fault::Cut,
    ];
    let each = faults.into_iter().enumerate();
    let each = each.map(|(index, fault)| async move {
        let name = format!("node-{index}");
        scene.full_node(&name, json!({})).await;
        scene.settled(&name).await;
        let before = scene.seen(&name);
        scene.fault(&name, Some(fault));
        let image = "registry.example/seid:v6.1.0";
        let edit = json!({ "image": image, "sidecar": tls_by_issuer("issuer") });
        scene.edit(&name, edit).await;
        scene
            .until_seen("a new pod", &name, |seen| seen.created.len() == 2)
            .await;
        scene.fault(&name, None);
        let node = scene.settled(&name).await;
        let status = node.status.expect("a status");
        assert_eq!(status.current_image.as_deref(), Some(image), "{fault:?}");
        assert!(status.current_sidecar_tls.is_some(), "{fault:?}");
        let toll = Toll::of(&scene.seen(&name)).since(&Toll::of(&before));
        assert_eq!((toll.pods, toll.processes), (1, 1), "{fault:?}: {toll:?}");
    });
    join_all(each).await;
    assert_eq!(scene.violations(), Vec::<String>::new());
}

/// How many nodes are well.
const WELL: usize = 20;

async fn roll(scene: &Scene, image: &str) -> Duration {
    let began = Instant::now();
    let names: Vec<_> = (0..WELL).map(|index| format!("well-{index}")).collect();
    join_all(names.iter().map(|name| async move {
        scene.edit(name, json!({ "image": image })).await;
        scene.settled(name).await;
    }))
    .await;
    began.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn sidecars_that_are_black_holes_delay_no_other_node() {
    let scene = Stage::shared().await.scene("holes").await;
    let _operator = Operator::start(&scene, platform()).await;
    let names: Vec<_> = (0..WELL).map(|index| format!("well-{index}")).collect();
    join_all(names.iter().map(|name| scene.full_node(name, json!({})))).await;
    join_all(names.iter().map(|name| scene.settled(name))).await;
    let usual = roll(&scene, "registry.example/seid:v6.1.0").await;
    let holes: Vec<_> = (0..5).map(|index| format!("hole-{index}")).collect();
    for name in &holes {
        scene.fault(name, Some(Fault::BlackHole));
        scene.full_node(name, json!({})).await;
    }
    for name in &holes {
        let asked = |seen: &crate::stage::ledger::Seen| !seen.created.is_empty();
        scene.until_seen("a pod", name, asked).await;
    }
    let beside = roll(&scene, "registry.example/seid:v6.2.0").await;
    println!("{WELL} nodes: {usual:?} alone, {beside:?} beside black holes");
    // A node that waited for one call to a black hole would take the deadline of that call longer.
    assert!(
        beside < usual * 2 + Duration::from_secs(4),
        "{beside:?} beside black holes, {usual:?} alone"
    );
    for name in &holes {
        scene.fault(name, None);
        scene.settled(name).await;
    }
    assert_eq!(scene.violations(), Vec::<String>::new());
}
