//! Kills at random moments, and an end that was asked for.

use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::coordination::v1::Lease;
use keelson_api::names::Lease as LeaseName;
use keelson_wire::TaskType;
use kube::api::DeleteParams;
use serde_json::{Value, json};

use crate::process::{Program, Way};
use crate::stage::objects::tls_by_issuer;
use crate::stage::{Scene, Stage};

const KILLS: u64 = 20;

/// What is edited, one after the other, and whether it replaces the pod.
fn edits() -> Vec<(Value, bool)> {
    let image = |version: u32| json!({ "image": format!("registry.example/seid:v6.{version}.0") });
    let sidecar = |version: u32| json!({ "sidecar": { "image": format!("registry.example/keelson-sidecar:{version}") } });
    vec![
        (image(1), true),
        (json!({ "sidecar": tls_by_issuer("first") }), false),
        (json!({ "overrides": { "logging.level": "debug" } }), false),
        (image(2), true),
        (sidecar(2), false),
        (json!({ "sidecar": tls_by_issuer("second") }), false),
        (image(3), true),
        (json!({ "overrides": { "logging.level": "warn" } }), false),
        (sidecar(3), false),
        (image(4), true),
    ]
}

/// The next of a row of numbers that look random.
fn draw(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

/// The lease of whoever was killed would be waited for; that it is, is tested elsewhere.
async fn forget_lease(scene: &Scene) {
    let leases = scene.api::<Lease>();
    let name = LeaseName::Sei.to_string();
    // One that was killed early has none.
    let _ = leases.delete(&name, &DeleteParams::default()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_at_random_moments_it_replaces_no_pod_twice_and_begins_no_data_task_twice() {
    let scene = Stage::shared().await.scene("killed").await;
    scene.issuer("first").await;
    scene.issuer("second").await;
    let way = Way::of(&scene).await;
    let seed = u64::from(std::process::id()) << 20 | 0x9e37;
    println!("seed {seed}");
    let mut random = seed;
    let names = ["one", "two", "three"];
    let snapshot = json!({ "snapshot": { "s3": { "targetHeight": 100 } } });
    for name in names {
        // A restore that takes longer than most operators here live.
        scene.script(name, |script| {
            script.takes(TaskType::SnapshotRestore, Duration::from_secs(3));
        });
        let node = scene.node(name, "fullNode", snapshot.clone(), json!({}));
        node.await;
    }
    let mut edits = edits().into_iter();
    let mut rolls = 0;
    for kill in 0..KILLS {
        let program = Program::start(&scene, &way, &[]);
        if kill % 2 == 1
            && let Some((edit, rolls_pod)) = edits.next()
        {
            join_all(names.map(|name| scene.edit(name, edit.clone()))).await;
            rolls += usize::from(rolls_pod);
        }
        // Some die while they start, most while they work.
        tokio::time::sleep(Duration::from_millis(draw(&mut random) % 3000)).await;
        program.kill().await;
        forget_lease(&scene).await;
    }
    let _program = Program::start(&scene, &way, &[]);
    for name in names {
        scene.settled(name).await;
        let seen = scene.seen(name);
        let pods = seen.deleted.len();
        assert!(pods <= rolls, "{name}: {pods} pods for {rolls} edits");
        assert_eq!(seen.begun(TaskType::SnapshotRestore), 1, "{name}");
        let restarts = seen.begun(TaskType::RestartSeid);
        assert!(restarts <= 2, "{name}: {restarts} restarts for two edits");
    }
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn asked_to_stop_it_lets_go_of_the_lease_and_ends_well() {
    let scene = Stage::shared().await.scene("stopped").await;
    let way = Way::of(&scene).await;
    let program = Program::start(&scene, &way, &[]);
    let name = LeaseName::Sei.to_string();
    let holder = |lease: &Lease| {
        let spec = lease.spec.as_ref();
        spec.and_then(|spec| spec.holder_identity.clone())
            .unwrap_or_default()
    };
    let held = |lease: Option<&Lease>| lease.is_some_and(|it| holder(it).starts_with("operator_"));
    scene.until_object("a holder", &name, held).await;
    let ended = program.stop().await;
    assert_eq!(ended.code(), Some(0));
    let lease = scene.api::<Lease>().get(&name).await.expect("the lease");
    assert_eq!(holder(&lease), "");
    // The next one need not wait.
    let _next = Program::start(&scene, &way, &[]);
    scene.until_object("a next holder", &name, held).await;
}
