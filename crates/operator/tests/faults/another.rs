//! Two operators: both at work by mistake, or one after the other by the lease.

use std::collections::BTreeMap;
use std::future::pending;

use futures::FutureExt;
use futures::future::join_all;
use keelson_cluster::{Lease, Led, Standing, lead};
use keelson_operator::node::points::{Point, Points};
use keelson_plan::Task;
use keelson_wire::TaskType;
use kube::Client;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::operator::{Operator, settings};
use crate::stage::objects::tls_by_issuer;
use crate::stage::{Scene, Stage, platform};
use crate::toll::Toll;

fn edit() -> Value {
    let image = "registry.example/seid:v6.1.0";
    json!({
        "image": image, "sidecar": tls_by_issuer("issuer"),
        "overrides": { "logging.level": "debug" },
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn two_operators_at_once_delete_one_pod_and_begin_every_task_once() {
    let scene = &Stage::shared().await.scene("both").await;
    scene.issuer("issuer").await;
    let _one = Operator::start(scene, platform()).await;
    let _other = Operator::start(scene, platform()).await;
    let each = (0..5).map(|index| async move {
        let name = format!("node-{index}");
        let block = json!({ "snapshot": { "s3": { "targetHeight": 100 } } });
        scene.node(&name, "fullNode", block, json!({})).await;
        scene.settled(&name).await;
        let born = Toll::of(&scene.seen(&name));
        assert_eq!((born.pods, born.processes), (0, 1), "{name}: {born:?}");
        let twice: BTreeMap<_, _> = born.tasks.iter().filter(|(_, times)| **times > 1).collect();
        assert!(twice.is_empty(), "{name}: {twice:?}");
        scene.edit(&name, edit()).await;
        scene.settled(&name).await;
        let toll = Toll::of(&scene.seen(&name)).since(&born);
        assert_eq!((toll.pods, toll.processes), (1, 1), "{name}: {toll:?}");
        let restores = scene.seen(&name).begun(TaskType::SnapshotRestore);
        assert_eq!(restores, 1, "{name}");
    });
    join_all(each).await;
    assert_eq!(scene.violations(), Vec::<String>::new());
}

/// Works as an operator for as long as the lease is had.
async fn work(scene: &Scene, client: Client, points: Points) {
    let settings = settings(platform(), scene.namespace());
    let _operator = Operator::with(scene, client, settings, points).await;
    pending().await
}

fn lease(scene: &Scene, identity: &str) -> Lease {
    Lease {
        namespace: scene.namespace().to_owned(),
        name: "operators".to_owned(),
        identity: identity.to_owned(),
    }
}

/// Rings when the pod's replacement has begun; whoever came there waits for ever.
fn at_replacement(bell: &std::sync::Arc<Notify>) -> Points {
    let bell = std::sync::Arc::clone(bell);
    Points::guarded(move |_, point| match point {
        Point::AfterStep(step) if step.task == Task::ReplacePod => {
            bell.notify_one();
            pending().boxed()
        }
        _ => async {}.boxed(),
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_leader_goes_on_in_the_middle_of_an_edit() {
    let scene = &Stage::shared().await.scene("stopped").await;
    scene.issuer("issuer").await;
    let (bell, standing) = (std::sync::Arc::new(Notify::new()), Standing::new());
    let client = scene.operator_client();
    let first = lead(
        client.clone(),
        lease(scene, "first"),
        &standing,
        bell.notified(),
        work(scene, client, at_replacement(&bell)),
    );
    let test = async {
        standing.leads().await;
        scene.full_node("node", json!({})).await;
        scene.settled("node").await;
        scene.edit("node", edit()).await;
    };
    let (led, ()) = tokio::join!(first, test);
    assert_eq!(led.expect("an end"), Led::Stopped);
    let (client, standing) = (scene.operator_client(), Standing::new());
    let second = lead(
        client.clone(),
        lease(scene, "second"),
        &standing,
        pending(),
        work(scene, client, Points::default()),
    );
    tokio::select! {
        led = second => panic!("the second leader ended: {led:?}"),
        _ = scene.settled("node") => {}
    }
    let seen = scene.seen("node");
    assert_eq!((seen.deleted.len(), seen.process_starts), (1, 2));
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_is_cut_off_has_stopped_before_the_next_one_begins() {
    let scene = &Stage::shared().await.scene("cut-off").await;
    scene.issuer("issuer").await;
    let (bell, standing) = (std::sync::Arc::new(Notify::new()), Standing::new());
    let client = scene.operator_client();
    let first = lead(
        client.clone(),
        lease(scene, "first"),
        &standing,
        pending(),
        work(scene, client, at_replacement(&bell)),
    );
    let test = async {
        standing.leads().await;
        scene.full_node("node", json!({})).await;
        scene.settled("node").await;
        scene.edit("node", edit()).await;
        bell.notified().await;
        // The network is gone for the first alone.
        let outage = scene.faults().black_hole();
        let (client, standing) = (scene.client(), Standing::new());
        let second = lead(
            client.clone(),
            lease(scene, "second"),
            &standing,
            pending(),
            work(scene, client, Points::default()),
        );
        tokio::select! {
            led = second => panic!("the second leader ended: {led:?}"),
            _ = scene.settled("node") => {}
        }
        drop(outage);
    };
    let began = tokio::time::Instant::now();
    let first = first.map(|led| (led, began.elapsed()));
    let test = test.map(|()| began.elapsed());
    let ((led, lost), done) = tokio::join!(first, test);
    let led = led.expect("an end");
    assert!(matches!(led, Led::Lost(_)), "{led:?}");
    assert!(
        lost < done,
        "the first led until {lost:?}, the second was done {done:?}"
    );
    let seen = scene.seen("node");
    assert_eq!((seen.deleted.len(), seen.process_starts), (1, 2));
    assert_eq!(scene.violations(), Vec::<String>::new());
}
