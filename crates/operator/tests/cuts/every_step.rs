//! A spec is edited before or after a step of a plan, whatever the step: the node comes to what the last
//! spec asks for, at the cost of one more pod at most, and what fetched or made its data is not begun
//! again.
//!
//! Every node of a crowd is held at another step, edited there and let go. With `KEELSON_SOAK` set all
//! steps of all kinds of plans are edited at, otherwise every seventh.

use std::collections::{BTreeMap, BTreeSet};

use futures::future::join_all;
use k8s_openapi::api::core::v1::Pod;
use keelson_api::SeiNode;
use keelson_operator::node::points::Point;
use keelson_plan::Task;
use keelson_wire::TaskType;
use kube::ResourceExt;
use kube::api::ListParams;
use serde_json::json;

use crate::crowd::{Crowd, is_settled};
use crate::guard::{Guard, Spot};
use crate::kind::Kind;
use crate::rounds::{self, Aims, Blow, look_for_violations};
use crate::stage::Scene;
use crate::toll::Toll;
use crate::uncut::{Runs, Uncut, guarded};

#[tokio::test(flavor = "multi_thread")]
async fn whatever_step_an_edit_comes_at_the_node_settles_on_it_and_one_more_pod_is_all_it_takes() {
    let met = rounds::all(&Edit).await;
    let (points, chosen, edited) = (met.spots, met.chosen, met.met);
    println!(
        "{points} points of {} kinds, edited at {edited}",
        met.runs.len()
    );
    assert_eq!(tasks(&met.runs), Task::ALL.iter().copied().collect());
    // What is not waited for in a crowd is done before it can be edited at.
    assert!(edited * 10 >= chosen * 9, "edited at {edited} of {chosen}");
}

/// Tasks that can be edited at.
fn tasks(runs: &Runs) -> BTreeSet<Task> {
    let spots = runs.values().flat_map(|uncut| &uncut.spots);
    let tasks = spots.filter_map(|spot| match spot.point {
        Point::BeforeStep(step) | Point::AfterStep(step) => Some(step.task),
        _ => None,
    });
    tasks.collect()
}

/// Tasks that make or fetch what stays on the volume.
const ONCE: [TaskType; 3] = [
    TaskType::SnapshotRestore,
    TaskType::GenerateIdentity,
    TaskType::GenerateGentx,
];

/// The image of every node is edited when each has come to its spot.
struct Edit;

impl Blow for Edit {
    fn falls_at(&self, spot: &Spot) -> bool {
        spot.time == 1 && matches!(spot.point, Point::BeforeStep(_) | Point::AfterStep(_))
    }

    fn every(&self) -> usize {
        7
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
        let _operator = guarded(scene, kind, &guard).await;
        join_all(names.iter().map(|name| kind.begin(scene, name))).await;
        let what = format!("{kind:?}, held or done");
        crowd.until_cut(&what, &guard, &names, over).await;
        let image = format!("registry.example/seid:{kind:?}").to_lowercase();
        let spec = json!({ "image": image });
        join_all(names.iter().map(|name| scene.edit(name, spec.clone()))).await;
        guard.let_go();
        let what = format!("{kind:?} after an edit");
        crowd.until(&what, &names, over).await;

        let images = images(scene).await;
        for ((name, aim), before) in aims.iter().zip(&before) {
            let aim = aim.map_or("when it was over".to_owned(), |aim| aim.to_string());
            let told = format!("{kind:?} of {name}, edited {aim}");
            assert_eq!(images.get(name), Some(&image), "{told}");
            if let Some(mode) = kind.serves() {
                let serves = scene.serving(name).map(|(mode, _)| mode);
                assert_eq!(serves, Some(mode), "{told}");
            }
            let taken = Toll::of(&scene.seen(name)).since(before);
            assert!(taken.pods <= kind.pods() + 1, "{told}: {taken:?}");
            let processes = uncut.toll.processes + 1;
            assert!(taken.processes <= processes, "{told}: {taken:?}");
            for once in ONCE {
                let begun = |toll: &Toll| toll.tasks.get(&once).copied();
                assert_eq!(begun(&taken), begun(&uncut.toll), "{told}: {once}");
            }
            // An upload never ends: it may be called off with its plan, and is begun again.
            if kind == Kind::Publish {
                assert_eq!(uploads(scene, name), 1, "{told}");
            }
        }
        look_for_violations(scene, kind, violated);
        names.iter().filter(|name| guard.has_cut(name)).count()
    }
}

/// How many uploads the sidecar of a node knows.
fn uploads(scene: &Scene, node: &str) -> usize {
    let tasks = scene.tasks(node);
    let upload = TaskType::SnapshotUpload.as_str();
    tasks.iter().filter(|it| it.type_ == upload).count()
}

/// The image each node's process runs, as its pod has it.
async fn images(scene: &Scene) -> BTreeMap<String, String> {
    let pods = scene.api::<Pod>().list(&ListParams::default()).await;
    let pods = pods.expect("a list of pods").items.into_iter();
    let image = |pod: Pod| {
        let node = pod.name_any().strip_suffix("-0")?.to_owned();
        let containers = pod.spec?.containers.into_iter();
        let mut process = containers.filter(|it| it.name == "seid");
        Some((node, process.next()?.image?))
    };
    pods.filter_map(image).collect()
}
