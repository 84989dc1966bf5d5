//! An operator dies at a point, another takes over: the node comes to where it was going, and it takes
//! no more of it than if nobody had died.
//!
//! Points are those an uncut run passes. Every node of a crowd is cut at another of them, all by the
//! death of one operator. With `KEELSON_SOAK` set all points are cut at, otherwise every third, which
//! of them by `PROPTEST_RNG_SEED`.

use std::collections::BTreeMap;

use futures::future::join_all;
use tokio::sync::watch;

use crate::crowd::{Crowd, is_settled};
use crate::guard::{Guard, Spot};
use crate::kind::{BIRTHS, EDITS, ISSUERS, Kind, ORIGINAL_EDITS};
use crate::operator::{Operator, settings};
use crate::stage::{Scene, Stage};
use crate::toll::Toll;

/// How often a point is cut at that is passed again and again while something is waited for.
const TIMES: u32 = 2;

/// An uncut run: the spots it passed, and what it took of the node.
#[derive(Clone, Debug)]
struct Uncut {
    spots: Vec<Spot>,
    toll: Toll,
}

/// Runs that were not cut, as they become known.
type Runs = BTreeMap<Kind, Uncut>;

#[tokio::test(flavor = "multi_thread")]
async fn whatever_point_an_operator_dies_at_the_next_one_finishes_its_work_and_repeats_nothing() {
    let (told, runs) = watch::channel(Runs::new());
    let (births, edits, original, (), ()) = tokio::join!(
        cut_births(runs.clone()),
        cut_edits("edits", &EDITS, runs.clone()),
        cut_edits("original-edits", &ORIGINAL_EDITS, runs.clone()),
        run_uncut(&told),
        run_original_uncut(&told),
    );
    let runs = runs.borrow().clone();
    let cut: BTreeMap<Kind, usize> = [births, edits, original].into_iter().flatten().collect();
    for (kind, uncut) in &runs {
        println!(
            "{kind:?}: {} points, cut at {}, {:?}",
            uncut.spots.len(),
            cut.get(kind).copied().unwrap_or_default(),
            uncut.toll,
        );
    }
    let points: usize = runs.values().map(|uncut| uncut.spots.len()).sum();
    let cut: usize = cut.values().sum();
    println!("{points} points, cut at {cut}");
    assert!(points > 400, "only {points} points");
    // A point that is passed while something is waited for is not passed where nothing has to be.
    assert!(cut * 10 >= share(points) * 9, "cut at {cut} of {points}");
}

/// How many of so many points are cut at.
fn share(points: usize) -> usize {
    match every() {
        1 => points,
        every => points / every,
    }
}

/// Of how many points one is cut at.
fn every() -> usize {
    match std::env::var_os("KEELSON_SOAK") {
        Some(_) => 1,
        None => 3,
    }
}

/// The points that are cut at.
fn chosen(spots: &[Spot]) -> Vec<Spot> {
    let seed = std::env::var("PROPTEST_RNG_SEED").ok();
    let seed: usize = seed.and_then(|it| it.parse().ok()).unwrap_or_default();
    let chosen = spots.iter().enumerate();
    let chosen = chosen.filter(|(index, _)| (index + seed).is_multiple_of(every()));
    chosen.map(|(_, spot)| *spot).collect()
}

/// Nothing happened, after so many things before, that must not.
fn look_for_violations(scene: &Scene, kind: Kind, before: usize) {
    let found = scene.violations().split_off(before);
    assert_eq!(found, Vec::<String>::new(), "{kind:?}");
}

async fn issuers(scene: &Scene) {
    for issuer in ISSUERS {
        scene.issuer(issuer).await;
    }
}

async fn guarded(scene: &Scene, kind: Kind, guard: &Guard) -> Operator {
    let settings = settings(kind.platform(), scene.namespace());
    Operator::with(scene, scene.operator_client(), settings, guard.points()).await
}

/// Goes through every kind of plan with one node each, and through all edits with one of them.
async fn run_uncut(told: &watch::Sender<Runs>) {
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
async fn run_original_uncut(told: &watch::Sender<Runs>) {
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

async fn uncut(runs: &mut watch::Receiver<Runs>, kind: Kind) -> Uncut {
    let runs = runs.wait_for(|runs| runs.contains_key(&kind)).await;
    let runs = runs.expect("uncut runs that go on");
    runs[&kind].clone()
}

/// Cuts every birth at every point, one node for each.
async fn cut_births(runs: watch::Receiver<Runs>) -> Vec<(Kind, usize)> {
    let mut cut = Vec::new();
    for kind in BIRTHS {
        let uncut = uncut(&mut runs.clone(), kind).await;
        let scene = Stage::shared().await.scene("births").await;
        let crowd = Crowd::of(&scene);
        let spots = chosen(&uncut.spots);
        let aims = aims(spots.len(), &spots);
        cut.push((
            kind,
            cut_all(&scene, &crowd, kind, &uncut.toll, &aims).await,
        ));
    }
    cut
}

/// Has a crowd go through all edits; in each, every node is cut at another point.
async fn cut_edits(
    name: &str,
    edits: &[Kind],
    mut runs: watch::Receiver<Runs>,
) -> Vec<(Kind, usize)> {
    // Enough for the edit with the most points.
    let mut size = 0;
    for kind in edits {
        let spots = uncut(&mut runs, *kind).await.spots;
        size = size.max(chosen(&spots).len());
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
    let mut cut = Vec::new();
    for &kind in edits {
        let uncut = uncut(&mut runs, kind).await;
        let aims = aims(size, &chosen(&uncut.spots));
        cut.push((
            kind,
            cut_all(&scene, &crowd, kind, &uncut.toll, &aims).await,
        ));
    }
    cut
}

/// So many nodes, each aimed at another spot for as long as there are some.
fn aims(size: usize, spots: &[Spot]) -> Vec<(String, Option<Spot>)> {
    let aim = |index| (format!("node-{index}"), spots.get(index).copied());
    (0..size).map(aim).collect()
}

/// Brings a change about for all nodes, with an operator that dies when each has come to its spot, and
/// one that goes on. Says how many came there.
async fn cut_all(
    scene: &Scene,
    crowd: &Crowd,
    kind: Kind,
    toll: &Toll,
    aims: &[(String, Option<Spot>)],
) -> usize {
    let names: Vec<_> = aims.iter().map(|(name, _)| name.clone()).collect();
    let before = names.iter().map(|name| Toll::of(&scene.seen(name)));
    let before: Vec<_> = before.collect();
    let violated = scene.violations().len();
    let over = |node: &keelson_api::SeiNode| {
        let name = node.metadata.name.as_deref().unwrap_or_default();
        is_settled(node) && kind.is_over(scene, name)
    };
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
        assert_eq!(taken, *toll, "{kind:?} of {name}, cut {aim}");
    }
    look_for_violations(scene, kind, violated);
    names.iter().filter(|name| guard.has_cut(name)).count()
}
