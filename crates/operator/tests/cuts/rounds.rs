//! Rounds through all kinds of plans: something befalls every node of a crowd, each at another spot of
//! those an uncut run passes.

use std::collections::BTreeMap;

use futures::future::join_all;
use tokio::sync::watch;

use crate::crowd::{Crowd, is_settled};
use crate::guard::Spot;
use crate::kind::{BIRTHS, EDITS, Kind, ORIGINAL_EDITS};
use crate::operator::Operator;
use crate::stage::{Scene, Stage};
use crate::uncut::{Runs, Uncut, issuers, run_original_uncut, run_uncut, uncut};

/// Nodes, each aimed at another spot for as long as there are some.
pub(crate) type Aims = [(String, Option<Spot>)];

/// What befalls nodes at their spots.
pub(crate) trait Blow {
    /// Of the spots of an uncut run, those it may fall at.
    fn falls_at(&self, spot: &Spot) -> bool;

    /// Of how many such spots it falls at one, where not all are tried.
    fn every(&self) -> usize;

    /// Brings a plan about for all nodes, has it befall each of them at its spot, and looks at what
    /// came of it. Says how many came to their spot.
    async fn fall(
        &self,
        scene: &Scene,
        crowd: &Crowd,
        kind: Kind,
        uncut: &Uncut,
        aims: &Aims,
    ) -> usize;
}

/// What was met in all rounds.
pub(crate) struct Met {
    /// The runs nothing befell.
    pub(crate) runs: Runs,
    /// Spots it may fall at.
    pub(crate) spots: usize,
    /// Spots that were to be met.
    pub(crate) chosen: usize,
    /// Spots that were met.
    pub(crate) met: usize,
}

/// Goes through all kinds of plans.
pub(crate) async fn all(blow: &impl Blow) -> Met {
    let (told, runs) = watch::channel(Runs::new());
    // Boxed, because together they are larger than a test's stack.
    let (births, edits, original, (), ()) = tokio::join!(
        Box::pin(all_births(blow, runs.clone())),
        Box::pin(all_edits(blow, "edits", &EDITS, runs.clone())),
        Box::pin(all_edits(
            blow,
            "original-edits",
            &ORIGINAL_EDITS,
            runs.clone()
        )),
        Box::pin(run_uncut(&told)),
        Box::pin(run_original_uncut(&told)),
    );
    let runs = runs.borrow().clone();
    let met: BTreeMap<Kind, usize> = [births, edits, original].into_iter().flatten().collect();
    let (mut spots, mut chosen) = (0, 0);
    for (kind, uncut) in &runs {
        let possible = uncut.spots.iter().filter(|it| blow.falls_at(it)).count();
        let met = met.get(kind).copied().unwrap_or_default();
        println!("{kind:?}: {possible} points, met {met}, {:?}", uncut.toll);
        spots += possible;
        chosen += self::chosen(blow, uncut).len();
    }
    Met {
        runs,
        spots,
        chosen,
        met: met.values().sum(),
    }
}

/// The spots it falls at: with `KEELSON_SOAK` set all, otherwise some, which of them by
/// `PROPTEST_RNG_SEED`.
fn chosen(blow: &impl Blow, uncut: &Uncut) -> Vec<Spot> {
    let every = match std::env::var_os("KEELSON_SOAK") {
        Some(_) => 1,
        None => blow.every(),
    };
    let seed = std::env::var("PROPTEST_RNG_SEED").ok();
    let seed: usize = seed.and_then(|it| it.parse().ok()).unwrap_or_default();
    let possible = uncut.spots.iter().filter(|it| blow.falls_at(it));
    let chosen = possible.enumerate();
    let chosen = chosen.filter(|(index, _)| (index + seed).is_multiple_of(every));
    chosen.map(|(_, spot)| *spot).collect()
}

/// Every birth, with one node for every spot.
async fn all_births(blow: &impl Blow, runs: watch::Receiver<Runs>) -> Vec<(Kind, usize)> {
    let mut met = Vec::new();
    for kind in BIRTHS {
        let uncut = uncut(&mut runs.clone(), kind).await;
        let scene = Stage::shared().await.scene("births").await;
        let crowd = Crowd::of(&scene);
        let spots = chosen(blow, &uncut);
        let aims = aims(spots.len(), &spots);
        met.push((kind, blow.fall(&scene, &crowd, kind, &uncut, &aims).await));
    }
    met
}

/// Has a crowd go through all edits; in each, every node is met at another spot.
async fn all_edits(
    blow: &impl Blow,
    name: &str,
    edits: &[Kind],
    mut runs: watch::Receiver<Runs>,
) -> Vec<(Kind, usize)> {
    // Enough for the edit with the most spots.
    let mut size = 0;
    for kind in edits {
        let uncut = uncut(&mut runs, *kind).await;
        size = size.max(chosen(blow, &uncut).len());
    }
    let scene = Stage::shared().await.scene(name).await;
    issuers(&scene).await;
    let crowd = Crowd::of(&scene);
    let names: Vec<_> = aims(size, &[]).into_iter().map(|(name, _)| name).collect();
    {
        let _operator = Operator::start(&scene, edits[0].platform()).await;
        join_all(names.iter().map(|name| Kind::Genesis.begin(&scene, name))).await;
        crowd.until("the crowd's birth", &names, is_settled).await;
    }
    let mut met = Vec::new();
    for &kind in edits {
        let uncut = uncut(&mut runs, kind).await;
        let aims = aims(size, &chosen(blow, &uncut));
        met.push((kind, blow.fall(&scene, &crowd, kind, &uncut, &aims).await));
    }
    met
}

fn aims(size: usize, spots: &[Spot]) -> Vec<(String, Option<Spot>)> {
    let aim = |index| (format!("node-{index}"), spots.get(index).copied());
    (0..size).map(aim).collect()
}

/// Nothing happened, after so many things before, that must not.
pub(crate) fn look_for_violations(scene: &Scene, kind: Kind, before: usize) {
    let found = scene.violations().split_off(before);
    assert_eq!(found, Vec::<String>::new(), "{kind:?}");
}
