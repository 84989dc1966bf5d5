//! An operator dies at a point, another takes over: the node comes to where it was going, and it takes
//! no more of it than if nobody had died.
//!
//! Every node of a crowd is cut at another point, all by the death of one operator. With `KEELSON_SOAK`
//! set all points are cut at, otherwise every third.

use futures::future::join_all;
use keelson_api::SeiNode;
use kube::ResourceExt;

use crate::crowd::{Crowd, is_settled};
use crate::guard::{Guard, Spot};
use crate::kind::Kind;
use crate::operator::Operator;
use crate::rounds::{self, Aims, Blow, look_for_violations};
use crate::stage::Scene;
use crate::toll::Toll;
use crate::uncut::{Uncut, guarded};

#[tokio::test(flavor = "multi_thread")]
async fn whatever_point_an_operator_dies_at_the_next_one_finishes_its_work_and_repeats_nothing() {
    let met = rounds::all(&Death).await;
    let (points, chosen, cut) = (met.spots, met.chosen, met.met);
    println!("{points} points of {} kinds, cut at {cut}", met.runs.len());
    assert!(points > 400, "only {points} points");
    // A point that is passed while something is waited for is not passed where nothing has to be.
    assert!(cut * 10 >= chosen * 9, "cut at {cut} of {chosen}");
}

/// The operator dies when each node has come to its spot, and another goes on.
struct Death;

impl Blow for Death {
    fn falls_at(&self, _: &Spot) -> bool {
        true
    }

    fn every(&self) -> usize {
        3
    }

    async fn fall(
        &self,
        scene: &Scene,
        crowd: &Crowd,
        kind: Kind,
        uncut: &Uncut,
        aims: &Aims,
    ) -> usize {
        let names: Vec<_> = aims.iter().map(|(name, _)| name.clone()).collect();
        let before = names.iter().map(|name| Toll::of(&scene.seen(name)));
        let before: Vec<_> = before.collect();
        let violated = scene.violations().len();
        let over = |node: &SeiNode| is_settled(node) && kind.is_over(scene, &node.name_any());
        let guard = Guard::default();
        aims.iter().for_each(|(name, aim)| guard.aim(name, *aim));
        {
            let _operator = guarded(scene, kind, &guard).await;
            join_all(names.iter().map(|name| kind.begin(scene, name))).await;
            let what = format!("{kind:?}, cut or done");
            crowd.until_cut(&what, &guard, &names, over).await;
        }
        let _operator = Operator::start(scene, kind.platform()).await;
        crowd
            .until(&format!("{kind:?} after a cut"), &names, over)
            .await;
        for ((name, aim), before) in aims.iter().zip(&before) {
            let aim = aim.map_or("nowhere".to_owned(), |aim| aim.to_string());
            let taken = Toll::of(&scene.seen(name)).since(before);
            assert_eq!(taken, uncut.toll, "{kind:?} of {name}, cut {aim}");
        }
        look_for_violations(scene, kind, violated);
        names.iter().filter(|name| guard.has_cut(name)).count()
    }
}
