//! Everything that can go wrong between the operator and the API server, in the middle of an edit of
//! image and TLS.

use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use keelson_api::node_condition::NodeCondition;
use keelson_testbed::faults::{Fault, On, Pause};
use serde_json::json;
use tokio::time::sleep;

use crate::operator::Operator;
use crate::stage::objects::tls_by_issuer;
use crate::stage::{Scene, Stage, platform};
use crate::toll::Toll;

/// How long something is out of order. Nothing tells that a caller who waits has noticed.
const OUTAGE: Duration = Duration::from_secs(2);

/// How many calls an edit may take, failures and watches that are opened again included. Without a
/// fault it takes some twenty.
const CALLS: usize = 60;

/// What goes wrong.
#[derive(Clone, Debug)]
enum Trouble {
    Refuse,
    BlackHole,
    Distrust,
    Freeze,
    CutWatches,
    ExpireWatches,
    /// Every call that is made.
    Calls(Fault),
    /// Every call that writes.
    Writes(Fault),
}

impl Trouble {
    /// Has it happen, and returns when it is over.
    async fn happen(&self, scene: &Scene) {
        let faults = scene.faults();
        let rule = match self {
            Self::Refuse => return outage(faults.refuse()).await,
            Self::BlackHole => return outage(faults.black_hole()).await,
            Self::Distrust => return outage(faults.distrust()).await,
            Self::Freeze => return outage(faults.freeze()).await,
            Self::CutWatches => return assert!(faults.cut_watches() > 0),
            Self::ExpireWatches => return assert!(faults.expire_watches() > 0),
            Self::Calls(fault) => faults.inject(fault.clone(), On::every()),
            Self::Writes(fault) => faults.inject(fault.clone(), On::writes()),
        };
        rule.hit(1).await.expect("a call that fails");
        // Whoever asks again at once asks often.
        outage(rule).await;
    }
}

async fn outage<T>(outage: T) {
    sleep(OUTAGE).await;
    drop(outage);
}

async fn an_edit_survives(trouble: Trouble) {
    let scene = Stage::shared().await.scene("fault").await;
    scene.issuer("issuer").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene.full_node("node", json!({})).await;
    scene.settled("node").await;
    let before = Toll::of(&scene.seen("node"));
    scene.faults().forget();
    let image = "registry.example/seid:v6.1.0";
    let edit = json!({ "image": image, "sidecar": tls_by_issuer("issuer") });
    scene.edit("node", edit).await;
    let faults = scene.faults();
    let began = faults.called("a first write", |call| call.verb.writes());
    began.await.expect("the edit's beginning");
    trouble.happen(&scene).await;
    let node = scene.settled("node").await;
    let status = node.status.expect("a status");
    assert_eq!(status.current_image.as_deref(), Some(image), "{trouble:?}");
    assert!(status.current_sidecar_tls.is_some(), "{trouble:?}");
    let toll = Toll::of(&scene.seen("node")).since(&before);
    assert_eq!((toll.pods, toll.processes), (1, 1), "{trouble:?}: {toll:?}");
    let calls = scene.faults().calls().len();
    println!("{trouble:?}: {calls} calls");
    assert!(calls <= CALLS, "{trouble:?}: {calls} calls");
    let violations = scene.violations();
    assert_eq!(violations, Vec::<String>::new(), "{trouble:?}");
}

/// One scene for each trouble. They are large for one stack.
async fn all_at_once(troubles: impl IntoIterator<Item = Trouble>) {
    let scenes = troubles.into_iter();
    join_all(scenes.map(|trouble| Box::pin(an_edit_survives(trouble)))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_image_and_tls_comes_through_every_outage_with_one_pod_deletion() {
    let troubles = [
        Trouble::Refuse,
        Trouble::BlackHole,
        Trouble::Distrust,
        Trouble::Freeze,
        Trouble::CutWatches,
        Trouble::ExpireWatches,
    ];
    all_at_once(troubles).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edit_of_image_and_tls_comes_through_every_answer_with_one_pod_deletion() {
    let pause = Pause::For(Duration::from_millis(500));
    let retry_after = Duration::from_secs(1);
    let troubles = [
        Trouble::Calls(Fault::Unauthorized),
        Trouble::Calls(Fault::Forbidden),
        Trouble::Writes(Fault::Conflict),
        Trouble::Calls(Fault::Gone),
        Trouble::Calls(Fault::TooManyRequests { retry_after }),
        Trouble::Calls(Fault::Internal),
        Trouble::Calls(Fault::Unavailable),
        Trouble::Calls(Fault::Garbage),
        Trouble::Calls(Fault::Expired),
        Trouble::Calls(Fault::BlackHole),
        Trouble::Calls(Fault::SlowRequest(pause)),
        Trouble::Calls(Fault::SlowAnswer(pause)),
        Trouble::Writes(Fault::LostAnswer),
        Trouble::Writes(Fault::Reset),
        Trouble::Writes(Fault::CutAnswer),
    ];
    all_at_once(troubles).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deletion_whose_answer_is_lost_is_the_only_one() {
    let scene = Stage::shared().await.scene("lost").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene.full_node("node", json!({})).await;
    scene.settled("node").await;
    let deletions = On::verb(keelson_testbed::faults::Verb::Delete).resource("pods");
    let rule = scene.faults().inject(Fault::LostAnswer, deletions.next(1));
    let edit = json!({ "image": "registry.example/seid:v6.1.0" });
    scene.edit("node", edit).await;
    scene.settled("node").await;
    assert_eq!(rule.clear(), 1);
    assert_eq!(scene.seen("node").deleted.len(), 1);
    assert_eq!(scene.violations(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_template_the_server_refuses_costs_no_pod_and_is_named() {
    let scene = Stage::shared().await.scene("refused").await;
    let _operator = Operator::start(&scene, platform()).await;
    scene.full_node("node", json!({})).await;
    scene.settled("node").await;
    let before = Toll::of(&scene.seen("node"));
    let sets = On::writes().resource("statefulsets");
    let rule = scene.faults().inject(Fault::Forbidden, sets);
    let image = "registry.example/seid:v6.1.0";
    scene.edit("node", json!({ "image": image })).await;
    let named = |it: &Condition| {
        it.type_ == NodeCondition::Reconciling.as_str()
            && it.message.contains("apply-statefulset")
            && it.message.contains("applying StatefulSet")
            && it.message.contains("was refused")
    };
    scene
        .until_status("naming the refusal", "node", |_, status| {
            status.conditions.iter().any(named)
        })
        .await;
    rule.hit(2).await.expect("another attempt");
    let toll = Toll::of(&scene.seen("node")).since(&before);
    assert_eq!((toll.pods, toll.processes), (0, 0), "{toll:?}");
    drop(rule);
    let node = scene.settled("node").await;
    let status = node.status.expect("a status");
    assert_eq!(status.current_image.as_deref(), Some(image));
    let toll = Toll::of(&scene.seen("node")).since(&before);
    assert_eq!((toll.pods, toll.processes), (1, 1), "{toll:?}");
}
