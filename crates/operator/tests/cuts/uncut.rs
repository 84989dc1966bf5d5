//! Uncut runs: the spots each kind of plan passes where nothing happens to it, and what it takes of its
//! node.

use std::collections::BTreeMap;

use futures::future::join_all;
use tokio::sync::watch;

use crate::crowd::{Crowd, is_settled};
use crate::guard::{Guard, Spot};
use crate::kind::{BIRTHS, EDITS, ISSUERS, Kind, ORIGINAL_EDITS};
use crate::operator::{Operator, settings};
use crate::stage::{Scene, Stage};
use crate::toll::Toll;

/// How often a spot counts that is passed again and again while something is waited for.
const TIMES: u32 = 2;

/// An uncut run: the spots it passed, and what it took of the node.
#[derive(Clone, Debug)]
pub(crate) struct Uncut {
    pub(crate) spots: Vec<Spot>,
    pub(crate) toll: Toll,
}

/// Runs that were not cut, as they become known.
pub(crate) type Runs = BTreeMap<Kind, Uncut>;

/// The run of a kind, as soon as it is known.
pub(crate) async fn uncut(runs: &mut watch::Receiver<Runs>, kind: Kind) -> Uncut {
    let runs = runs.wait_for(|runs| runs.contains_key(&kind)).await;
    let runs = runs.expect("uncut runs that go on");
    runs[&kind].clone()
}

/// Makes the issuers the edits take turns with.
pub(crate) async fn issuers(scene: &Scene) {
    for issuer in ISSUERS {
        scene.issuer(issuer).await;
    }
}

/// An operator on the platform of a kind, with a guard at its points.
pub(crate) async fn guarded(scene: &Scene, kind: Kind, guard: &Guard) -> Operator {
    let settings = settings(kind.platform(), scene.namespace());
    Operator::with(scene, scene.operator_client(), settings, guard.points()).await
}

/// Goes through every kind of plan with one node each, and through all edits with one of them.
pub(crate) async fn run_uncut(told: &watch::Sender<Runs>) {
    let scene = Stage::shared().await.scene("uncut").await;
    issuers(&scene).await;
    let crowd = Crowd::of(&scene);
    let guard = Guard::default();
    let _operator = guarded(&scene, Kind::Genesis, &guard).await;
    let births = BIRTHS.map(|kind| {
        let (scene, crowd, guard) = (&scene, &crowd, &guard);
        async move {
            let name = format!("{kind:?}").to_lowercase();
            run(scene, crowd, guard, kind, &name, told).await;
        }
    });
    join_all(births).await;
    for kind in EDITS {
        run(&scene, &crowd, &guard, kind, "genesis", told).await;
    }
}

/// The same with the edits of a node under the original proxy.
pub(crate) async fn run_original_uncut(told: &watch::Sender<Runs>) {
    let scene = Stage::shared().await.scene("original-uncut").await;
    issuers(&scene).await;
    let crowd = Crowd::of(&scene);
    let guard = Guard::default();
    let _operator = guarded(&scene, ORIGINAL_EDITS[0], &guard).await;
    let name = "node".to_owned();
    Kind::Genesis.begin(&scene, &name).await;
    crowd.until("its birth", [&name], is_settled).await;
    for kind in ORIGINAL_EDITS {
        run(&scene, &crowd, &guard, kind, &name, told).await;
    }
}

async fn run(
    scene: &Scene,
    crowd: &Crowd,
    guard: &Guard,
    kind: Kind,
    name: &str,
    told: &watch::Sender<Runs>,
) {
    let name = name.to_owned();
    guard.aim(&name, None);
    let before = Toll::of(&scene.seen(&name));
    kind.begin(scene, &name).await;
    let over = |node: &_| is_settled(node) && kind.is_over(scene, &name);
    crowd
        .until(&format!("an uncut {kind:?}"), [&name], over)
        .await;
    let toll = Toll::of(&scene.seen(&name)).since(&before);
    assert_eq!(
        toll.pods,
        kind.pods(),
        "pods of an uncut {kind:?}: {toll:?}"
    );
    let spots = guard.passed(&name).into_iter();
    let uncut = Uncut {
        spots: spots.filter(|spot| spot.time <= TIMES).collect(),
        toll,
    };
    told.send_modify(|runs| drop(runs.insert(kind, uncut)));
}
